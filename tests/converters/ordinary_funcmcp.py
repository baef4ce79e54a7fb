"""The ordinary tools on funcmcp."""

from __future__ import annotations

from funcmcp import MCPServer, content
from tests.converters import ordinary

mcp = MCPServer("ordinary")
for tool in [
    *ordinary.TOOLS,
    *ordinary.picture_tools(content.Image, lambda data: content.Image(data, mime_type="image/png")),
]:
    mcp.tool(tool.function)
mcp.resource("report://today")(ordinary.report)
mcp.prompt(ordinary.suggest)
