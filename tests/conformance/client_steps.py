"""What our client does at the servers of the conformance suite, by scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp import MCPError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp.client import Client

ASKS_ON_STREAM = "test_client_elicitation_defaults"
"""A tool whose question comes on the GET stream. Its server drops it if the stream is not open yet, and the client
opens the stream in the background."""

PINGS = 20
"""Requests before the call of that tool, in whose time the stream opens."""

_VALUES = {"string": "text", "integer": 2, "number": 1.5, "boolean": True, "object": {}, "array": []}


async def confirm(_params: dict[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {"confirmed": True}}


async def accept_defaults(_params: dict[str, Any]) -> dict[str, Any]:
    return {"action": "accept"}


ELICIT: Mapping[str, Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]] = {
    "elicitation-sep1034-client-defaults": accept_defaults,
    "sep-2322-client-request-state": confirm,
}


async def decline(params: dict[str, Any]) -> dict[str, Any]:
    """Answer no question of a server."""
    raise MCPError(-1, f"The user does not answer: {params}")


def callbacks_for(scenario: str) -> dict[str, Any]:
    """Return the callbacks of the client in a scenario.

    The server of "sse-retry" sends its answer on any GET stream. A client with callbacks opens one at once.
    """
    if scenario == "sse-retry":
        return {}
    return {"elicit": ELICIT.get(scenario, decline), "sample": decline, "roots": []}


async def use(client: Client, context: Mapping[str, Any]) -> None:
    """Use what the server has: the calls that the suite defines, or each feature once."""
    tools = await client.list_tools()
    calls = context.get("toolCalls") or [
        {"name": tool.name, "arguments": arguments_of(tool.input_schema)} for tool in tools
    ]
    if any(tool.name == ASKS_ON_STREAM for tool in tools):
        for _ in range(PINGS):
            await client.ping()
    for tool in tools:
        if "schema" in tool.input_schema.get("properties", {}):  # it checks what has become of another tool's schema
            calls = [{"name": tool.name, "arguments": {"schema": tools[0].input_schema}}]
    for call in calls:
        await client.call_tool(call["name"], call["arguments"])
    if "resources" in client.capabilities:
        for resource in await client.list_resources():
            await client.read_resource(resource.uri)
    if "prompts" in client.capabilities:
        for prompt in await client.list_prompts():
            await client.get_prompt(prompt.name)


def arguments_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for the required properties of a schema."""
    properties = schema.get("properties", {})
    return {name: _VALUES[properties[name]["type"]] for name in schema.get("required", ())}
