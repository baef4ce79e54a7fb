"""As little of a server as scores well: what `tests/samples/test_audit.py` audits beside the samples."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from funcmcp import MCPServer, ServerInfo

mcp = MCPServer(
    "calculator",
    instructions="Add numbers with add.",
    info=ServerInfo(
        title="Calculator",
        website_url="https://calculator.example.com",
        icons=[{"src": "https://calculator.example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}],
    ),
)


@mcp.tool(read_only=True)
def add(a: int, b: int) -> Annotated[int, Field(description="The sum")]:
    """Add two numbers.

    Args:
        a: The first number.
        b: The number to add to it.
    """
    return a + b
