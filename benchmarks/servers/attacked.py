"""The server that is attacked: `attacked.py LIBRARY PORT`, served the way the library's own documentation shows."""

import sys
from typing import Any

CERTIFICATE = "x-client-certificate"
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/Node"}},
    "$defs": {
        "Node": {
            "anyOf": [
                {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "kind": {"const": kind}}}
                for kind in ("a", "b")
            ]
        }
    },
}
"""A schema that refers to itself in two alternatives: checking a value of depth n takes 2^n steps."""


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def big() -> str:
    """Return 5 MB of text."""
    return "x" * 5_000_000


async def count(numbers: set[int]) -> int:
    """Count different numbers."""
    return len(numbers)


async def size(value: list[Any]) -> int:
    """Return the number of items."""
    return len(value)


def serve_funcmcp(port: int) -> None:
    """Serve with `MCPServer.run`."""
    from funcmcp import Context, MCPServer

    mcp = MCPServer("attacked", version="1")
    for function in (add, big, count, size):
        mcp.tool(function)

    @mcp.tool
    async def certificate(context: Context) -> str:
        """Return the header field that a proxy sets."""
        headers = context.http_request.headers if context.http_request else {}
        return str(headers.get(CERTIFICATE, "none"))

    try:

        @mcp.tool(input_schema=TREE)
        async def tree(arguments: dict[str, Any]) -> str:
            """Take a tree."""
            return f"{len(arguments)} arguments"

    except ValueError as error:
        print(f"tree is refused: {error}", file=sys.stderr, flush=True)

    mcp.run("http", port=port)


def serve_mcp(port: int) -> None:
    """Serve with the official SDK."""
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context

    mcp = MCPServer("attacked", version="1", log_level="ERROR")
    for function in (add, big, count, size):
        mcp.tool()(function)

    @mcp.tool()
    async def certificate(ctx: Context) -> str:
        """Return the header field that a proxy sets."""
        request: Any = ctx.request_context.request
        return str(request.headers.get(CERTIFICATE, "none"))

    mcp.run(transport="streamable-http", port=port)


def serve_fastmcp(port: int) -> None:
    """Serve with FastMCP."""
    from fastmcp import FastMCP
    from fastmcp.server.dependencies import get_http_headers

    mcp: Any = FastMCP("attacked", version="1")
    for function in (add, big, count, size):
        mcp.tool(function)

    @mcp.tool
    async def certificate() -> str:
        """Return the header field that a proxy sets."""
        return str(get_http_headers(include_all=True).get(CERTIFICATE, "none"))

    mcp.run(transport="http", port=port, show_banner=False, log_level="ERROR")


if __name__ == "__main__":
    {"funcmcp": serve_funcmcp, "mcp": serve_mcp, "fastmcp": serve_fastmcp}[sys.argv[1]](int(sys.argv[2]))
