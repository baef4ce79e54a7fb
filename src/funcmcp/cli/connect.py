"""A client of a target or of a URL, and what the commands do with it."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from funcmcp.cli.arguments import read_json, read_pairs, warnings_of
from funcmcp.cli.failure import Failure
from funcmcp.cli.faults import faults_of
from funcmcp.cli.output import write_line
from funcmcp.cli.terminal import Progress, answer
from funcmcp.protocol.errors import MCPError
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from funcmcp import MCPServer
    from funcmcp.cli.faults import Fault
    from funcmcp.transports.http.messages import Exchange, HttpRequest, HttpResponse

_HANDSHAKE = max(date for date, revision in REVISIONS.items() if not revision.per_request)
_SHOWN = 10
_UNAUTHORIZED = 401
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)[ \t]*")
_CLIENT_HEADERS = {"accept", "accept-encoding", "content-length", "content-type", "host", "transfer-encoding"}
_CLIENT_HEADERS |= {"mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"}
_NOT_MCP = (
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)  # what the client meets in an answer that is none


@dataclass(frozen=True, slots=True)
class Source:
    """A server that a command uses.

    Attributes:
        target: What the person named: a target or a URL.
        server: The server of a target; None for a URL.
        headers: Header fields of every request, such as credentials.
        verbose: Show log messages and progress as lines.
    """

    target: str
    server: MCPServer | None
    headers: dict[str, str] = field(default_factory=dict)
    verbose: bool = False


def open_source(
    target: str, *, headers: Sequence[str] = (), bearer: str | None = None, verbose: bool = False
) -> Source:
    """Return the server that a target or a URL names. A target is imported here, outside of any event loop.

    Args:
        target: A target or a URL.
        headers: Header fields as ``NAME:VALUE``.
        bearer: A token for ``Authorization: Bearer``.
        verbose: Show log messages and progress as lines.

    Raises:
        Failure: A header field is not valid, or the server does not exist.
    """
    fields = dict(map(_header, headers))
    if bearer is not None:
        fields |= [_header(f"authorization:Bearer {bearer}")]
    if target.startswith(("http://", "https://")):
        return Source(target, None, fields, verbose)
    from funcmcp.cli.targets import load  # noqa: PLC0415 - a URL needs no target

    return Source(target, load(target), fields, verbose)


def _header(text: str) -> tuple[str, str]:
    """Return a header field's name in lower case and its value; no message repeats the value, which may be secret."""
    match = _HEADER.fullmatch(text)
    if match is None:
        raise Failure("A header field must be NAME:VALUE in visible ASCII, such as --header 'X-Api-Key: secret'.")
    name = match[1].lower()
    if name in _CLIENT_HEADERS:
        raise Failure(f"--header {name} is not possible: the client sets this field itself.")
    return name, match[2]


async def inspect_server(source: Source) -> tuple[dict[str, Any], list[Fault]]:
    """Return what a server says of itself, and what is wrong with features of a target that it can't list.

    What it says is ``server``, ``revision``, ``capabilities``, ``instructions``, ``tools``, ``resources``,
    ``resourceTemplates``, ``prompts``.
    """
    async with _connected(source) as (client, faults):
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


async def read_resource(source: Source, uri: str) -> Any:
    """Read a resource and return its contents; raise Failure if it can't be read."""
    with Progress(verbose=source.verbose) as progress:
        async with _connected(source, progress.show) as (client, faults):
            if "resources" not in client.capabilities:
                raise Failure(f"{client.server_info.get('name')} has no resources.")
            _refuse_faulty(faults, "resource", uri)
            result = await client.read_resource(uri, meta=progress.meta)
            return result["contents"]


async def get_prompt(source: Source, name: str, pairs: Sequence[str]) -> Any:
    """Get a prompt and return its messages.

    Args:
        source: The server.
        name: the prompt's name.
        pairs: arguments as ``key=value``; all of them are texts.

    Raises:
        Failure: there is no such prompt, or its arguments do not fit.
    """
    texts = {"properties": {pair.partition("=")[0]: {"type": "string"} for pair in pairs}}
    with Progress(verbose=source.verbose) as progress:
        async with _connected(source, progress.show) as (client, faults):
            _refuse_faulty(faults, "prompt", name)
            _find("prompt", await client.list_prompts() if "prompts" in client.capabilities else [], name)
            result = await client.get_prompt(name, read_pairs(pairs, texts), meta=progress.meta)
            return result["messages"]


async def call_tool(source: Source, name: str, pairs: Sequence[str], text: str | None) -> dict[str, Any]:
    """Call a tool and return its CallToolResult.

    Args:
        source: The server.
        name: the tool's name.
        pairs: arguments as ``key=value``.
        text: all arguments as a JSON object; None where there are pairs.

    Raises:
        Failure: there is no such tool, or the arguments can't be read.
    """
    if pairs and text is not None:
        raise Failure("Give the arguments as key=value or with --json, not both.")
    given = read_json(text) if text is not None else None
    with Progress(verbose=source.verbose) as progress:
        async with _connected(source, progress.show) as (client, faults):
            _refuse_faulty(faults, "tool", name)
            tool = _find("tool", await client.list_tools(), name)
            arguments = read_pairs(pairs, tool["inputSchema"]) if given is None else given
            for warning in warnings_of(arguments, tool["inputSchema"]):
                write_line(warning, error=True)
            return await client.call_tool(name, arguments, meta=progress.meta)


def _refuse_faulty(faults: list[Fault], kind: str, key: str) -> None:
    for fault in faults:
        if (fault.kind, fault.key) == (kind, key):
            raise Failure(f"The {kind} {key} can't be used. Correct it: {fault.reason}")


def _find(kind: str, found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for feature in found:
        if feature["name"] == name:
            return feature
    names = [str(feature["name"]) for feature in found]
    near = get_close_matches(name, names, 3)
    if near:
        raise Failure(f"There is no {kind} {name!r}. Did you mean {' or '.join(near)}?")
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    raise Failure(f"There is no {kind} {name!r}. There is {', '.join(names[:_SHOWN]) or 'none'}{more}.")


@asynccontextmanager
async def _connected(
    source: Source, on_notification: Callable[[dict[str, Any]], None] | None = None
) -> AsyncIterator[tuple[Client, list[Fault]]]:
    """Connect, and look for features of a target that can't be listed.

    An error of the protocol and an answer that is not MCP become a Failure.
    """
    try:
        if source.server is None:
            from funcmcp.cli.remote import remote  # noqa: PLC0415 - httpx2 is for URLs

            async with remote(source.target) as exchange, _client(exchange, source, on_notification) as client:
                yield client, []
        else:
            try:
                faults = [fault async for fault in faults_of(source.server)]
                async with _client(source.server.exchange, source, on_notification) as client:
                    yield client, faults
            finally:
                await source.server.aclose()
    except MCPError as error:
        raise Failure(f"The server answered with error {error.code}: {_one_line(error)}") from error
    except _NOT_MCP as error:
        raise Failure(f"{source.target} does not answer as an MCP server does. {_one_line(error)}") from error


@asynccontextmanager
async def _client(
    exchange: Exchange, source: Source, on_notification: Callable[[dict[str, Any]], None] | None
) -> AsyncIterator[Client]:
    """Connect in the newest revision; with a server that does not know how, in the newest with a handshake."""

    async def checked(request: HttpRequest) -> HttpResponse:
        response = await exchange(request)
        if response.status == _UNAUTHORIZED:
            raise Failure(
                f"{source.target} asks for credentials (401). "
                "Add --bearer TOKEN or --header NAME:VALUE, with valid ones."
            )
        return response

    def client_of(revision: str | None) -> Client:
        client = Client(
            checked, revision=revision, elicit=answer, on_notification=on_notification, headers=source.headers
        )
        if source.server is not None:
            client.path = source.server.path
        return client

    client = client_of(None)
    try:
        await client.__aenter__()
    except (MCPError, *_NOT_MCP):  # servers refuse what they do not know in many ways
        client = client_of(_HANDSHAKE)
        await client.__aenter__()
    try:
        if source.verbose and "logging" in client.capabilities and not REVISIONS[client.revision].per_request:
            await client.request("logging/setLevel", {"level": "debug"})  # 2026-07-28 asks in each request instead
        yield client
    finally:
        await client.__aexit__()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
