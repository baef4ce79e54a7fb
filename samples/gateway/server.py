"""A gateway: several servers behind one endpoint, some of them in this process and some elsewhere.

Run it with ``funcmcp run samples.gateway.server:mcp``. GATEWAY_SERVERS names the servers elsewhere, as
``prefix=URL prefix=URL``. Their tools are those that they have when the gateway starts.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from funcmcp import MCPServer, RegistrationError, ToolError
from funcmcp.client import Client, ClientError, ContentBlock, Tool
from funcmcp.content import Content, ToolResult

HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
"""The options for the annotations of a tool."""

PAGES = {"ui", "ui/resourceUri", "openai/outputTemplate"}
"""Members of a tool's _meta that name a resource, which the gateway does not have."""

PROTOCOL = "io.modelcontextprotocol/"
"""The prefix of members of a result's _meta that are about one connection."""

log = logging.getLogger("gateway")
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
    servers: dict[str, str] = {}
    for entry in os.environ.get("GATEWAY_SERVERS", "").split():
        prefix, _, url = entry.partition("=")
        if not url or prefix in servers:
            raise ValueError("GATEWAY_SERVERS must be prefix=URL prefix=URL, with prefixes that differ.")
        servers[prefix] = url
    return servers


@mcp.add_lifespan
async def connect() -> AsyncIterator[None]:
    """Connect to the servers elsewhere, and add their tools."""
    async with AsyncExitStack() as stack:
        for prefix, url in remote_servers().items():
            client = await stack.enter_async_context(Client(url))
            for tool in await client.list_tools():
                name = f"{prefix}_{tool.name}"
                try:
                    mcp.tool(name, **options_of(tool))(passing_on(prefix, client, tool.name))
                except RegistrationError as error:  # a name or a schema that this server may not have
                    log.warning("%s has a tool that the gateway leaves out. %s", prefix, error)
                    continue
                stack.callback(mcp.remove_tool, name)
        yield


def options_of(tool: Tool) -> dict[str, Any]:
    """Return the options that give a tool of the gateway the definition of another server's tool."""
    options: dict[str, Any] = {
        "description": tool.description or "",
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "icons": tool.get("icons", []),
        "meta": {key: value for key, value in tool.meta.items() if key not in PAGES},
    }
    title = tool.title or tool.annotations.get("title")
    if title:
        options["title"] = title
    for option, hint in HINTS.items():
        if hint in tool.annotations:
            options[option] = tool.annotations[hint]
    return options


def passing_on(prefix: str, client: Client, name: str) -> Callable[[dict[str, Any]], Awaitable[ToolResult]]:
    """Return a function that calls a tool of another server with the same arguments."""

    async def call(arguments: dict[str, Any]) -> ToolResult:
        try:
            result = await client.call_tool(name, arguments)
        except ClientError as error:
            log.warning("A call of %s has failed. %s", prefix, error)
            raise ToolError(f"The server of {prefix} does not answer. It may have started the call.") from error
        return ToolResult(
            [Block(block) for block in result.content],
            structured_content=result.structured_content,
            is_error=result.is_error,
            meta={key: value for key, value in result.meta.items() if not key.startswith(PROTOCOL)},
        )

    return call


class Block(Content):
    """A content block of another server, unchanged."""

    def __init__(self, block: ContentBlock) -> None:
        self.block = dict(block)


if __name__ == "__main__":
    mcp.run("http")
