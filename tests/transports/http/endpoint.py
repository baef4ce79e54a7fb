"""An endpoint without any platform around it, and the client's half of an exchange."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._transports.http.endpoints.streamable import StreamableHTTP
from funcmcp._transports.http.options import HTTPOptions
from funcmcp.testing import MemoryRequest
from tests import schemas
from tests.patience import PATIENCE
from tests.server.parts import CAPABILITIES, KEYS, NEWEST, PER_REQUEST, VERSION, server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from funcmcp._server.catalog.features import Resource, Tool
    from funcmcp._state.sessions.store import SessionStore
    from funcmcp._transports.http.messages import HttpResponse

BOTH = "application/json, text/event-stream"
INITIALIZE = {
    "protocolVersion": NEWEST,
    "capabilities": {"elicitation": {}, "sampling": {}},
    "clientInfo": {"name": "client", "version": "1"},
}


@dataclass
class Got:
    """A whole response.

    Attributes:
        status: of HTTP.
        headers: by lower-case name.
        body: all of it.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def streamed(self) -> bool:
        """Whether the answer came as events."""
        return self.headers.get("content-type") == "text/event-stream"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The JSON-RPC messages in it. An event without data has none."""
        if self.streamed:
            data = [line.removeprefix(b"data: ") for line in self.body.splitlines() if line.startswith(b"data: ")]
            return [json.loads(text) for text in data if text]
        return [json.loads(self.body)] if self.body else []

    @property
    def answer(self) -> dict[str, Any]:
        """The last message, which is the answer."""
        return self.messages[-1]

    @property
    def code(self) -> int | None:
        """The error code of the answer, or None."""
        found: int | None = self.answer.get("error", {}).get("code")
        return found

    @property
    def text(self) -> str:
        """The text of a tool's first block."""
        found: str = self.answer["result"]["content"][0]["text"]
        return found


class _Request(MemoryRequest):
    """A request whose client may leave."""

    leaving: Callable[[], Awaitable[None]] | None = None

    async def disconnected(self) -> None:
        await (self.leaving or super().disconnected)()


class Endpoint:
    """A server behind Streamable HTTP.

    Args:
        tools: what it offers.
        revisions: that it speaks.
        http: options of the transport.
        sessions: the store; signed by default. One that instances share leads to the others.
        path: of the endpoint.
        options: of the server.
    """

    def __init__(
        self,
        *tools: Tool | Resource,
        revisions: Sequence[str] = schemas.REVISIONS,
        http: HTTPOptions | None = None,
        sessions: SessionStore | None = None,
        path: str = "/mcp",
        **options: Any,
    ) -> None:
        self.server = server(*tools, revisions=revisions, bus=getattr(sessions, "bus", None), **options)
        self.sessions: SessionStore = SignedSessions(KEYS) if sessions is None else sessions
        self.exchange = StreamableHTTP(self.server, self.sessions, http or HTTPOptions(), path=path)

    async def open(
        self,
        body: object = b"",
        headers: Mapping[str, str | None] | list[tuple[str, str]] | None = None,
        *,
        method: str = "POST",
        path: str = "/mcp",
        disconnected: Callable[[], Awaitable[None]] | None = None,
    ) -> HttpResponse:
        """Send a request and return its response as it begins.

        Headers replace the usual ones, or take them away where they are None; a list of pairs comes on top of them.
        """
        data = body if isinstance(body, bytes) else json.dumps(body).encode()

        usual = {"host": "127.0.0.1", "content-type": "application/json", "accept": BOTH}
        if isinstance(headers, list):
            given = [*usual.items(), *headers]
        else:
            merged: dict[str, str | None] = {**usual, **(headers or {})}
            given = [(name, value) for name, value in merged.items() if value is not None]
        lines = [(name.encode(), value.encode("latin-1")) for name, value in given]
        request = _Request(method, path, lines, data)
        request.leaving = disconnected
        async with asyncio.timeout(PATIENCE):
            return await self.exchange(request)

    async def send(self, body: object = b"", *arguments: Any, **more: Any) -> Got:
        """Send a request and read its whole response."""
        return await read_all(await self.open(body, *arguments, **more))

    async def begin(self, revision: str = NEWEST, **params: Any) -> dict[str, str]:
        """Begin a session; return the headers that its requests carry."""
        wanted = {**INITIALIZE, "protocolVersion": revision, **params}
        got = await self.send(request("initialize", wanted))
        assert got.status == 200
        schemas.validate(got.answer, got.answer["result"]["protocolVersion"], "initialize")
        return {"mcp-session-id": got.headers["mcp-session-id"]}


async def read_all(response: HttpResponse) -> Got:
    """Read a response to its end."""
    body = response.body
    if not isinstance(body, bytes):
        async with asyncio.timeout(PATIENCE):
            body = b"".join([part async for part in body])
    return Got(response.status, dict(response.headers), body)


def events(response: HttpResponse) -> AsyncIterator[bytes]:
    """Return the parts of a streamed response."""
    assert not isinstance(response.body, bytes)
    return response.body


async def parts_until_cancelled(stream: AsyncIterator[bytes]) -> bytes:
    """Return what comes on a stream if its reader is cancelled while it waits, as by a server that ends."""
    parts: list[bytes] = []

    async def read() -> None:
        async for part in stream:
            parts.append(part)  # noqa: PERF401 - the parts before the cancellation count

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    reading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait_for(reading, PATIENCE)
    assert reading.cancelled()
    return b"".join(parts)


async def next_message(stream: AsyncIterator[bytes]) -> dict[str, Any]:
    """Return the next message of a stream."""
    async with asyncio.timeout(PATIENCE):
        part = await anext(stream)
    assert part.startswith(b"event: message\ndata: ")
    assert part.endswith(b"\n\n")
    message: dict[str, Any] = json.loads(part.split(b"data: ", 1)[1])
    return message


def request(method: str, params: dict[str, Any] | None = None, request_id: str | int = 1) -> dict[str, Any]:
    """Return a request as it stands on the wire."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


def per_request(
    method: str,
    params: dict[str, Any] | None = None,
    capabilities: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a request of the per-request era."""
    envelope = {VERSION: PER_REQUEST, CAPABILITIES: capabilities or {}, **(meta or {})}
    return request(method, {"_meta": envelope, **(params or {})})


def mirrored(message: dict[str, Any], **more: str | None) -> dict[str, str | None]:
    """Return the headers that repeat a request of the per-request era."""
    params = message["params"]
    named = params.get("name") if message["method"] in {"tools/call", "prompts/get"} else params.get("uri")
    version = params["_meta"][VERSION]
    headers = {"mcp-protocol-version": version, "mcp-method": message["method"], "mcp-name": named}
    return {**headers, **{name.replace("_", "-"): value for name, value in more.items()}}
