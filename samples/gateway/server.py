"""A gateway: several servers behind one endpoint, some of them in this process and some elsewhere.

Run it with ``funcmcp run samples.gateway.server:mcp``. GATEWAY_SERVERS names the servers elsewhere, as
``prefix=URL prefix=URL``. Their tools are those that they have when the gateway starts.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from funcmcp import MCPServer
from funcmcp.client import Client
from funcmcp.content import Audio, Image, ToolResult

mcp = MCPServer("gateway")

# In this process: features appear under a prefix, with their own services, middleware and lifespans.

math = MCPServer("math")


@math.tool(read_only=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


mcp.mount(math, prefix="math")


# Elsewhere: each tool of the other server becomes one that passes the call on.


def remote_servers() -> dict[str, str]:
    """Return the URL of each server elsewhere, by its prefix."""
    pairs = (entry.partition("=") for entry in os.environ.get("GATEWAY_SERVERS", "").split())
    return {prefix: url for prefix, _, url in pairs}


@mcp.add_lifespan
async def connect() -> AsyncIterator[None]:
    """Connect to the servers elsewhere, and add their tools."""
    async with AsyncExitStack() as stack:
        for prefix, url in remote_servers().items():
            client = await stack.enter_async_context(Client(url))
            for tool in await client.list_tools():
                name = f"{prefix}_{tool.name}"
                register = mcp.tool(name, description=tool.description or "", input_schema=dict(tool.input_schema))
                register(passing_on(client, tool.name))
                stack.callback(mcp.remove_tool, name)
        yield


def passing_on(client: Client, name: str) -> Callable[[dict[str, Any]], Awaitable[ToolResult]]:
    """Return a function that calls a tool of another server with the same arguments."""

    async def call(arguments: dict[str, Any]) -> ToolResult:
        result = await client.call_tool(name, arguments)
        blocks = [block_of(block) for block in result.content]
        return ToolResult(blocks, structured_content=result.structured_content, is_error=bool(result.is_error))

    return call


def block_of(block: Any) -> str | Image | Audio:
    """Return a content block of another server; kinds other than text, images and sounds as JSON."""
    if block["type"] == "text":
        return str(block["text"])
    if block["type"] == "image":
        return Image(block.data, mime_type=block["mimeType"])
    if block["type"] == "audio":
        return Audio(block.data, mime_type=block["mimeType"])
    return json.dumps(block)


if __name__ == "__main__":
    mcp.run("http")
