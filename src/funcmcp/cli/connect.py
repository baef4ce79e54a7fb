"""A client of a target or of a URL, and what the commands do with it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import typer

from funcmcp.cli.arguments import read_json, read_pairs, warnings_of
from funcmcp.cli.failure import Failure
from funcmcp.cli.faults import faults_of
from funcmcp.cli.show import visible
from funcmcp.cli.terminal import Progress, answer
from funcmcp.protocol.errors import MCPError
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from funcmcp import MCPServer
    from funcmcp.cli.faults import Fault
    from funcmcp.transports.http.messages import Exchange

_HANDSHAKE = max(date for date, revision in REVISIONS.items() if not revision.per_request)
_SHOWN = 10
_NOT_MCP = (
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)  # what the client meets in an answer that is none


async def inspect_server(target: str) -> tuple[dict[str, Any], list[Fault]]:
    """Return what a server says of itself, and what is wrong with features of a target that it can't list.

    What it says is ``server``, ``revision``, ``capabilities``, ``instructions``, ``tools``, ``resources``,
    ``resourceTemplates``, ``prompts``.
    """
    async with _connected(target) as (client, faults):
        offered = client.capabilities
        facts = {
            "server": client.server_info,
            "revision": client.revision,
            "capabilities": offered,
            "instructions": client.instructions,
            "tools": await client.list_tools() if "tools" in offered else [],
            "resources": await client.list_resources() if "resources" in offered else [],
            "resourceTemplates": await client.list_templates() if "resources" in offered else [],
            "prompts": await client.list_prompts() if "prompts" in offered else [],
        }
        return facts, faults


async def read_resource(target: str, uri: str) -> Any:
    """Read a resource of a target or a URL and return its contents; raise Failure if it can't be read."""
    with Progress() as progress:
        async with _connected(target, progress.show) as (client, faults):
            if "resources" not in client.capabilities:
                raise Failure(f"{visible(client.server_info.get('name'))} has no resources.")
            _refuse_faulty(faults, "resource", uri)
            result = await client.read_resource(uri, meta=progress.meta)
            return result["contents"]


async def get_prompt(target: str, name: str, pairs: Sequence[str]) -> Any:
    """Get a prompt of a target or a URL and return its messages.

    Args:
        target: a target or a URL.
        name: the prompt's name.
        pairs: arguments as ``key=value``; all of them are texts.

    Raises:
        Failure: there is no such prompt, or its arguments do not fit.
    """
    texts = {"properties": {pair.partition("=")[0]: {"type": "string"} for pair in pairs}}
    with Progress() as progress:
        async with _connected(target, progress.show) as (client, faults):
            _refuse_faulty(faults, "prompt", name)
            _find("prompt", await client.list_prompts() if "prompts" in client.capabilities else [], name)
            result = await client.get_prompt(name, read_pairs(pairs, texts), meta=progress.meta)
            return result["messages"]


async def call_tool(target: str, name: str, pairs: Sequence[str], text: str | None) -> dict[str, Any]:
    """Call a tool and return its CallToolResult.

    Args:
        target: a target or a URL.
        name: the tool's name.
        pairs: arguments as ``key=value``.
        text: all arguments as a JSON object; None where there are pairs.

    Raises:
        Failure: there is no such tool, or the arguments can't be read.
    """
    if pairs and text is not None:
        raise Failure("Give the arguments as key=value or with --json, not both.")
    given = read_json(text) if text is not None else None
    with Progress() as progress:
        async with _connected(target, progress.show) as (client, faults):
            _refuse_faulty(faults, "tool", name)
            tool = _find("tool", await client.list_tools(), name)
            arguments = read_pairs(pairs, tool["inputSchema"]) if given is None else given
            for warning in warnings_of(arguments, tool["inputSchema"]):
                typer.echo(warning, err=True)
            return await client.call_tool(name, arguments, meta=progress.meta)


def _refuse_faulty(faults: list[Fault], kind: str, key: str) -> None:
    for fault in faults:
        if (fault.kind, fault.key) == (kind, key):
            raise Failure(f"The {kind} {key} can't be used. Correct it: {fault.reason}")


def _find(kind: str, found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for feature in found:
        if feature["name"] == name:
            return feature
    names = [visible(feature["name"]) for feature in found]
    near = get_close_matches(name, names, 3)
    if near:
        raise Failure(f"There is no {kind} {name!r}. Did you mean {' or '.join(near)}?")
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    raise Failure(f"There is no {kind} {name!r}. There is {', '.join(names[:_SHOWN]) or 'none'}{more}.")


@asynccontextmanager
async def _connected(
    target: str, on_notification: Callable[[dict[str, Any]], None] | None = None
) -> AsyncIterator[tuple[Client, list[Fault]]]:
    """Connect, and look for features of a target that can't be listed.

    An error of the protocol and an answer that is not MCP become a Failure.
    """
    try:
        if target.startswith(("http://", "https://")):
            from funcmcp.cli.remote import remote  # noqa: PLC0415 - httpx2 is for URLs

            async with remote(target) as exchange, _client(exchange, on_notification) as client:
                yield client, []
        else:
            from funcmcp.cli.targets import load  # noqa: PLC0415 - a URL needs no target

            server = load(target)
            try:
                faults = [fault async for fault in faults_of(server)]
                async with _client(server, on_notification) as client:
                    yield client, faults
            finally:
                await server.aclose()
    except MCPError as error:
        raise Failure(f"The server answered with error {error.code}: {_one_line(error)}") from error
    except _NOT_MCP as error:
        raise Failure(f"{target} does not answer as an MCP server does. {_one_line(error)}") from error


@asynccontextmanager
async def _client(
    server: MCPServer | Exchange, on_notification: Callable[[dict[str, Any]], None] | None
) -> AsyncIterator[Client]:
    """Connect in the newest revision; with a server that does not know how, in the newest with a handshake."""
    client = Client(server, elicit=answer, on_notification=on_notification)
    try:
        await client.__aenter__()
    except (MCPError, *_NOT_MCP):  # servers refuse what they do not know in many ways
        client = Client(server, revision=_HANDSHAKE, elicit=answer, on_notification=on_notification)
        await client.__aenter__()
    try:
        yield client
    finally:
        await client.__aexit__()


def _one_line(error: Exception) -> str:
    return visible(" ".join(str(error).split()))
