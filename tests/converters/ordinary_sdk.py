"""The ordinary tools on the official SDK, as an ASGI application.

It runs in the environment of scripts/setup-differential.sh.
"""

from __future__ import annotations

from mcp.server.mcpserver import Image, MCPServer

from tests.converters import ordinary

server = MCPServer("ordinary")
for tool in [*ordinary.TOOLS, *ordinary.picture_tools(Image, lambda data: Image(data=data, format="png"))]:
    server.tool()(tool.function)
server.resource("report://today")(ordinary.report)
server.prompt()(ordinary.suggest)
mcp = server.streamable_http_app()
