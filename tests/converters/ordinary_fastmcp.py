"""The ordinary tools on FastMCP, as an ASGI application.

It runs in the environment of scripts/setup-differential.sh.
"""

from __future__ import annotations

from fastmcp import FastMCP
from fastmcp.utilities.types import Image

from tests.converters import ordinary

server = FastMCP("ordinary")
for tool in [*ordinary.TOOLS, *ordinary.picture_tools(Image, lambda data: Image(data=data, format="png"))]:
    server.tool(tool.function)
server.resource("report://today")(ordinary.report)
server.prompt(ordinary.suggest)
mcp = server.http_app()
