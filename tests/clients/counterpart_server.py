"""A server of FastMCP or of the official Python SDK: ``counterpart_server.py sdk|fastmcp stdio|PORT``."""

from __future__ import annotations

import logging
import sys

logging.disable(logging.CRITICAL)  # tracebacks take longer than the requests

if sys.argv[1] == "sdk":
    from mcp.server import MCPServer as Server
else:
    from fastmcp import FastMCP as Server  # type: ignore[no-redef]

mcp = Server("Counterpart")


@mcp.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool()
def repeat(text: str, times: int) -> str:
    """Repeat a text."""
    return text * times


@mcp.tool()
def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@mcp.resource("data://text")
def text() -> str:
    return "Grüße, 世界 🎉"


@mcp.resource("data://items/{name}")
def item(name: str) -> str:
    return f"item {name}"


@mcp.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    transport = sys.argv[2]
    if transport == "stdio":
        mcp.run("stdio")
    else:
        mcp.run("streamable-http", host="127.0.0.1", port=int(transport))
