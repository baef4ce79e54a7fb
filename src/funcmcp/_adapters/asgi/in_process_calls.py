"""Calls of ASGI applications in this process, without a network.

Source: ASGI 3.0, "HTTP Connection Scope", "Lifespan Protocol".
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from funcmcp._authoring.openapi.http_responses import Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
    from typing import TypeAlias

    Message: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    Application: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_ASGI = {"version": "3.0", "spec_version": "2.5"}
_MAX_BYTES = 16 * 1024 * 1024


class CallError(Exception):
    """The application did not answer a request as an ASGI application does."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to an application.

    Attributes:
        method: The method, in upper case.
        path: The path, percent-encoded.
        query: The query, percent-encoded.
        headers: The headers by lower-case name.
        body: The body; None for a request without one.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


async def call(app: Application, request: Request, *, base_url: str, state: Mapping[str, Any]) -> Response:
    """Send a request to an application and return its complete response.

    Args:
        app: The application.
        request: The request.
        base_url: The URL of the application, from which the Host header follows.
        state: The state of its lifespan.

    Raises:
        CallError: The application does not answer, or its answer has more than 16 MiB.
    """
    exchange = _Exchange(request.body or b"")
    await app(_scope(request, base_url, state), exchange.receive, exchange.send)
    return exchange.response()


def _scope(request: Request, base_url: str, state: Mapping[str, Any]) -> dict[str, Any]:
    url = urlsplit(base_url)
    headers = {"host": url.netloc, "accept": "*/*", **request.headers}
    if request.body is not None:
        headers["content-length"] = str(len(request.body))
    return {
        "type": "http",
        "asgi": _ASGI,
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": unquote(request.path),
        "raw_path": request.path.encode("ascii"),
        "query_string": request.query.encode("ascii"),
        "root_path": "",
        "headers": [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()],
        "client": None,  # no address, so that the application trusts it no more than other callers
        "server": (url.hostname, url.port),
        "state": dict(state),
    }


class _Exchange:
    """One request and the events of its response."""

    def __init__(self, body: bytes) -> None:
        self._waiting: bytes | None = body
        self._done = asyncio.Event()
        self._start: Message | None = None
        self._parts: list[bytes] = []
        self._size = 0

    async def receive(self) -> Message:
        if self._waiting is not None:
            body, self._waiting = self._waiting, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._done.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] == "http.response.body":
            self._parts.append(message.get("body", b""))
            self._size += len(self._parts[-1])
            if self._size > _MAX_BYTES:
                raise CallError("The application answered with more than 16 MiB.")
            if not message.get("more_body", False):
                self._done.set()

    def response(self) -> Response:
        if self._start is None or not self._done.is_set():
            raise CallError("The application did not answer.")
        headers = {bytes(name).lower(): value.decode("latin-1") for name, value in self._start.get("headers", ())}
        content_type, link = headers.get(b"content-type", ""), headers.get(b"link", "")
        return Response(self._start["status"], content_type, b"".join(self._parts), link)


@asynccontextmanager
async def lifespan(app: Application) -> AsyncIterator[dict[str, Any]]:
    """Start an application, yield the state for its requests, and shut it down.

    The application runs in a separate task, because it may be started and stopped from different tasks.

    Raises:
        CallError: The application reports that it can't start, or can't stop.
    """
    state: dict[str, Any] = {}
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": _ASGI, "state": state}
    running = asyncio.ensure_future(app(scope, to_app.get, from_app.put))
    try:
        to_app.put_nowait({"type": "lifespan.startup"})
        started = await _next_event(running, from_app)
        yield state
        if started:
            to_app.put_nowait({"type": "lifespan.shutdown"})
            await _next_event(running, from_app)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _next_event(running: asyncio.Future[None], from_app: asyncio.Queue[Message]) -> bool:
    """Wait for an event of the application; return False if it ends without one, because it has no lifespan."""
    event = asyncio.ensure_future(from_app.get())
    waiting: set[asyncio.Future[Any]] = {running, event}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not event.done() and from_app.empty():
            return False
        message = await event
    finally:
        event.cancel()
    if message["type"].endswith(".failed"):
        raise CallError(f"The application's lifespan failed: {message.get('message') or message['type']}")
    return True
