"""An MCP server in a process of its own: the Functions host starts it as host.json says, and passes requests on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

from pydantic import Field

from funcmcp import MCPServer, ServerInfo

DIAL = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#39c"/></svg>'

mcp = MCPServer(
    "clock",
    version="1.0.0",
    instructions="Ask for the time with now.",
    info=ServerInfo(
        title="Clock",
        website_url="https://clock.example.com",
        icons=[{"src": f"data:image/svg+xml,{quote(DIAL)}", "mimeType": "image/svg+xml", "sizes": ["any"]}],
    ),
)


@mcp.tool(read_only=True)
def now() -> Annotated[datetime, Field(description="The time, in UTC")]:
    """Tell the time, in UTC."""
    return datetime.now(UTC)


if __name__ == "__main__":
    mcp.run()
