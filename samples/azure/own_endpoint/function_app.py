"""An MCP server as a function app, at /api/mcp; ``func start`` serves it, and any Azure tool deploys the folder."""

from __future__ import annotations

from datetime import UTC, datetime

import funcmcp.azure
from funcmcp import MCPServer

mcp = MCPServer("clock", version="1.0.0")


@mcp.tool(read_only=True)
def now() -> datetime:
    """Tell the time, in UTC."""
    return datetime.now(UTC)


app = funcmcp.azure.http_app(mcp)
