"""Requests without a client library, over stdio and over HTTP, in both eras: what arrives is compared literally."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

from tests.instances import HEADERS, NEWEST, PER_REQUEST
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

HANDSHAKE = NEWEST
ERAS = (HANDSHAKE, PER_REQUEST)
_LINE_BYTES = 64 * 1024 * 1024
_INFO = {"name": "wire", "version": "1"}
_META = "io.modelcontextprotocol/"
_OF_THE_ERA = ("resultType", "ttlMs", "cacheScope")
"""Members of a result that a server of 2026-07-28 adds."""


class Number(str):
    """A number as it is written: 1 and 1.0 differ."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """The members of an object in their order."""

    def without(self, *names: str) -> Members:
        """Return the other members."""
        return Members(member for member in self if member[0] not in names)


def literal(text: str | bytes) -> Any:
    """Parse JSON so that two values are equal only if they are written in the same way, but for blanks and escapes."""
    return json.loads(text, object_pairs_hook=Members, parse_int=Number, parse_float=Number)


def plain(value: Any) -> Any:
    """Return what `literal` parsed as values of Python."""
    if isinstance(value, Members):
        return {name: plain(member) for name, member in value}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return json.loads(value) if isinstance(value, Number) else value


class Wire(Protocol):
    """Sends requests to one server."""

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return the response, literally, without the members that differ between eras."""


def comparable(text: str) -> Any:
    """Return a response without its id and without what an era adds to a result."""
    response = literal(text).without("jsonrpc", "id")
    return Members((name, _without_era(value) if name == "result" else value) for name, value in response)


def _without_era(result: Members) -> Members:
    meta = dict(result).get("_meta")
    result = result.without(*_OF_THE_ERA, "_meta")
    if meta is not None and (end_to_end := meta.without(f"{_META}serverInfo")):
        result.append(("_meta", end_to_end))
    return result


def params_of(era: str, params: Mapping[str, Any], capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return params with the members that the era requires."""
    if era == HANDSHAKE:
        return dict(params)
    meta = {"protocolVersion": era, "clientCapabilities": capabilities, "clientInfo": _INFO}
    return {**params, "_meta": {**params.get("_meta", {}), **{_META + name: value for name, value in meta.items()}}}


def _initialize(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    return {"protocolVersion": HANDSHAKE, "capabilities": capabilities, "clientInfo": _INFO}


class StdioWire:
    """A process that is asked directly.

    Args:
        process: The server.
        era: The revision to speak.
        capabilities: What the client declares. It answers no question.
    """

    def __init__(self, process: asyncio.subprocess.Process, era: str, capabilities: Mapping[str, Any]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self._era = era
        self._capabilities = capabilities
        self._count = 0

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request, and return its response; notifications before it are left out."""
        self._count += 1
        params = params_of(self._era, params, self._capabilities)
        await self._write({"id": self._count, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE):
            while True:
                line = (await self._stdout.readline()).decode()
                assert line, f"The server ended before it answered {method}."
                message = json.loads(line)
                if message.get("id") == self._count and "method" not in message:
                    return comparable(line)

    async def begin(self) -> None:
        """Send the handshake, if the era has one."""
        if self._era == HANDSHAKE:
            await self.ask("initialize", _initialize(self._capabilities))
            await self._write({"method": "notifications/initialized"})

    async def _write(self, message: Mapping[str, Any]) -> None:
        self._stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        await self._stdin.drain()


@asynccontextmanager
async def over_stdio(
    command: Sequence[str],
    era: str,
    env: Mapping[str, str] | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AsyncIterator[StdioWire]:
    """Start a server; close its stdin and terminate it at the end, because one that has asked may wait a minute."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, env=env, limit=_LINE_BYTES
    )
    wire = StdioWire(process, era, capabilities or {})
    try:
        await wire.begin()
        yield wire
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(ProcessLookupError):  # it has ended
            process.terminate()
        async with asyncio.timeout(PATIENCE):
            await process.communicate()


class HTTPWire:
    """An endpoint that is asked over HTTP.

    Args:
        http: Sends the requests.
        url: The endpoint.
        era: The revision to speak.
        capabilities: What the client declares.
    """

    def __init__(
        self, http: httpx2.AsyncClient, url: str, era: str, capabilities: Mapping[str, Any] | None = None
    ) -> None:
        self._http = http
        self._url = url
        self._era = era
        self._capabilities = capabilities or {}
        self._session: dict[str, str] = {}
        self._count = 0

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request, and return its response; notifications before it are left out."""
        return comparable((await self.responses(method, params))[-1])

    async def responses(self, method: str, params: Mapping[str, Any]) -> list[str]:
        """Send a request, and return all messages of the answer as they are written. The last one is the response."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params_of(self._era, params, self._capabilities)}
        response = await self.post(message)
        if response.headers["content-type"].startswith("text/event-stream"):
            return [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
        return [response.text]

    async def begin(self) -> None:
        """Send the handshake, if the era has one."""
        if self._era == HANDSHAKE:
            response = await self.post({"id": 0, "method": "initialize", "params": _initialize(self._capabilities)})
            assert response.status_code == 200, response.text
            self._session = {"mcp-session-id": response.headers["mcp-session-id"]}
            await self.post({"method": "notifications/initialized"})

    async def post(self, message: Mapping[str, Any]) -> httpx2.Response:
        """Send a message."""
        fields = {**HEADERS, **self._session, "mcp-protocol-version": self._era}
        if self._era == PER_REQUEST:
            params = message["params"]
            fields["mcp-method"] = message["method"]
            named = params.get("name", params.get("uri"))
            if named is not None:
                fields["mcp-name"] = named
        return await self._http.post(self._url, json={"jsonrpc": "2.0", **message}, headers=fields)


@asynccontextmanager
async def over_http(url: str, era: str, capabilities: Mapping[str, Any] | None = None) -> AsyncIterator[HTTPWire]:
    """Connect to an endpoint."""
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        wire = HTTPWire(http, url, era, capabilities)
        await wire.begin()
        yield wire
