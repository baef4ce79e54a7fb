"""An MCP server as a function app, at /api/mcp; ``func start`` serves it, and any Azure tool deploys the folder."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

from pydantic import Field

import funcmcp.azure
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


app = funcmcp.azure.http_app(mcp)
