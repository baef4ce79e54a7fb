"""An MCP server in a process of its own: the Functions host starts it as host.json says, and passes requests on."""

from __future__ import annotations

from datetime import UTC, datetime

from funcmcp import MCPServer

mcp = MCPServer("clock", version="1.0.0")


@mcp.tool(read_only=True)
def now() -> datetime:
    """Tell the time, in UTC."""
    return datetime.now(UTC)


if __name__ == "__main__":
    mcp.run()
