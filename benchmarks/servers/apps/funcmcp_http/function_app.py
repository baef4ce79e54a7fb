"""funcmcp behind an HTTP trigger, which is its own endpoint."""

from __future__ import annotations

import time

import funcmcp.azure
from funcmcp import MCPServer

mcp = MCPServer("bench", version="1.0.0")


@mcp.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
def nap() -> bool:
    """Wait for something, in a plain function."""
    time.sleep(0.05)
    return True


app = funcmcp.azure.http_app(mcp, auth_level="anonymous")
