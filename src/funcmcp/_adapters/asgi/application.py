"""ASGI: from a server's scope, receive and send to HttpRequest and HttpResponse.

Source: ASGI 3 "HTTP & WebSocket" 2.5 and "Lifespan" 2.0.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import unquote

from funcmcp._adapters.asgi.shutdown_signals import ShutdownSignals
from funcmcp._authoring.calling.lifespans import CannotStartError
from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._protocol.http_rules import WITHOUT_LENGTH
from funcmcp._server.limits import Limits
from funcmcp._server.log import log_failed_reload, log_failure, quote, types_and_texts
from funcmcp._server.run import Run, RunCancelledError, Waiting, begin, is_failure
from funcmcp._transports.http.endpoints.application_response import ApplicationResponse
from funcmcp._transports.http.messages import BodyTooLargeError, HttpRequest, HttpResponse
from funcmcp._transports.http.status import refuse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from funcmcp._server.load import Budget
    from funcmcp._transports.http.messages import Exchange, Received

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


SEPARATES_TRAILERS: dict[str, dict[object, object]] = {"funcmcp.separates_trailers": {}}
"""Extensions of a scope whose server never adds trailers, or parts of a body, to the headers of a request."""

IN_PROCESS = "funcmcp.in_process"
"""The extension of a scope that a test has sent in this process. Only an application around this one adds it."""

_MERGES_TRAILERS = "uvicorn.protocols.http.httptools_impl"
"""A module of uvicorn; see `_refusal_for_framing`."""

_SLASH = re.compile("/|%2[Ff]")
_ENCODED_CHARACTER = 12
"""Characters that a percent-encoded one has at most: four bytes of UTF-8."""

_OK = 200
_LENGTH = b"content-length"
_MAX_MESSAGE = 2000
_CHUNKED = "Chunked bodies are not accepted: send Content-Length. (Operators: see docs/guides/security.md#servers.)"
_CLOSE = (("connection", "close"),)
_TWO_LENGTHS = "Send Content-Length or Transfer-Encoding, not both."
_UPGRADE = "Requests with Upgrade are not accepted. (Operators: see docs/guides/security.md#servers.)"


class ClientDisconnectedError(Exception):
    """The client disconnected before its request was complete, or does not read the response."""


class HTTPRuntime:
    """What serves an ASGI application: an exchange, and the steps of its lifetime, in which this class does nothing.

    Args:
        exchange: Answers every HTTP request.
        limits: How much one process accepts.

    Attributes:
        has_begun: Whether `begin` was called.
        has_websocket: Whether there is an endpoint for WebSockets.
        has_predecessor: Whether this process replaces another one, which may still use its ports.
        has_successor: Whether another process serves on the same sockets, so that clients need not go elsewhere.
        shutdown_signals: Calls `drain` when a signal asks the process to end while streams are open.
    """

    def __init__(self, exchange: Exchange, limits: Limits | None = None) -> None:
        self.exchange = exchange
        self.limits: Limits = limits or Limits()
        self.shutdown_signals: ShutdownSignals = ShutdownSignals(self.drain)
        self.has_begun: bool = False
        self.has_websocket = False
        self.has_predecessor = False
        self.has_successor = False
        self._had_request = False
        self._stops: dict[Callable[[], None], None] = {}

    @property
    def endpoint(self) -> str | None:
        """The path that most requests are for; None if no path stands out."""
        return None

    @property
    def headers(self) -> Budget | None:
        """The memory of headers that have not ended; None if it is not counted."""
        return None

    @property
    def has_proxies(self) -> bool:
        """Whether connections come from proxies, so that their addresses are not those of clients."""
        return False

    def answer(self, request: HttpRequest) -> Awaitable[HttpResponse]:
        """Return what to await for the response to an HTTP request."""
        if not self._had_request:
            self._had_request = True
            self.on_first_request(request.server)
        return self.exchange(request)

    def begin(self) -> None:
        """Prepare for requests: the process is about to serve."""
        self.has_begun = True

    async def start(self) -> None:
        """Begin, and enter what lives as long as the application. Raises RuntimeError if that fails."""
        self.begin()

    def on_listening(self, address: str) -> None:
        """Take note of the address that the ASGI server listens on."""

    def show_tracebacks(self) -> None:
        """Allow the page to show tracebacks: only this machine reaches the server."""

    def on_first_request(self, address: str | None) -> None:
        """Take note of the first HTTP request, and of the address that it came to, if the ASGI server knows it."""

    @contextmanager
    def stoppable(self, stop: Callable[[], None]) -> Iterator[None]:
        """Have `stop` call a function while the block runs. The function can be called from any thread."""
        self._stops[stop] = None
        try:
            yield
        finally:
            del self._stops[stop]

    def stop(self) -> None:
        """Stop the servers of this process that serve the application and can be stopped. From any thread."""
        for stop in list(self._stops):
            stop()

    def drain(self) -> None:
        """End the open streams, because the server shuts down. It can be called from any thread."""

    def hurry(self) -> None:
        """End at once what `drain` lets end in its own time. It can be called from any thread."""

    async def aclose(self) -> None:
        """Close what lives as long as the application; called when its server stops."""

    async def serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - for subclasses
        """Close a WebSocket before it opens."""
        await receive()
        await send({"type": "websocket.close"})


class ASGIApplication:
    """An ASGI application around an exchange.

    Args:
        runtime: Answers the requests.
    """

    def __init__(self, runtime: HTTPRuntime) -> None:
        self._http_runtime = runtime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            await self._serve_other(scope, receive, send)
            return
        runtime = self._http_runtime
        seconds = runtime.limits.write_seconds
        request = ASGIRequest(scope, receive, send, seconds)
        try:
            fields = request.fields
            response = None
            if b"transfer-encoding" in fields or b"upgrade" in fields:
                response = _refusal_for_framing(fields, scope)
            response = response or await runtime.answer(request)
            if request.has_early_response:
                await request.end_early(response)
                return
            if isinstance(response, ApplicationResponse):
                failure = await response.run(dict(scope), receive, request.send)
                if failure is None:
                    return
                response = failure
            body = response.body
            if isinstance(body, bytes):
                sending = begin(_send_complete(send, response, body))
                if isinstance(sending, Waiting):
                    await _finish(sending, seconds)
                return
            with runtime.shutdown_signals.watched():
                await _send_in_parts(response, body, receive, send, seconds=seconds)
        except ClientDisconnectedError:
            return

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a WebSocket or the lifespan of the application."""
        if scope["type"] == "websocket":
            with self._http_runtime.shutdown_signals.watched():
                await self._http_runtime.serve_websocket(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        else:
            raise ValueError(f"An MCP server serves http and websocket, not {scope['type']}.")

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await _report("startup", self._http_runtime.start, send, is_reload=self._http_runtime.has_predecessor)
            elif message["type"] == "lifespan.shutdown":
                await _report("shutdown", self._http_runtime.aclose, send)
                return


async def _report(step: str, run: Callable[[], Awaitable[None]], send: Send, *, is_reload: bool = False) -> None:
    """Run a step of the lifespan, and send whether it is complete or has failed."""
    try:
        await run()
    except BaseException as error:
        if is_failure(error) and is_reload:
            log_failed_reload(error)
            await send({"type": f"lifespan.{step}.failed", "message": ""})
        elif isinstance(error, CannotStartError):
            await send({"type": f"lifespan.{step}.failed", "message": quote(str(error), _MAX_MESSAGE)})
        elif is_failure(error):
            log_failure(error, "", f"lifespan {step}")
            text = quote(types_and_texts(error), _MAX_MESSAGE)
            await send({"type": f"lifespan.{step}.failed", "message": f"{text} (the log of funcmcp has the traceback)"})
        raise
    await send({"type": f"lifespan.{step}.complete"})


def http_runtime_of(app: object) -> HTTPRuntime | None:
    """Return the runtime of an ASGI application of this module; None for other applications."""
    return app._http_runtime if isinstance(app, ASGIApplication) else None  # noqa: SLF001 - no name of MCPServer's public API


class ASGIRequest(HttpRequest):
    """The request of a scope; its body is still to be read.

    Args:
        scope: The scope.
        receive: Returns the next event.
        send: Sends an event.
        seconds: The time within which the client has to read each part of the response; None without a limit.
    """

    __slots__ = ("_first", "_receive", "_scope", "_seconds", "_send")
    begins_early = True

    def __init__(self, scope: Scope, receive: Receive, send: Send, seconds: float | None = None) -> None:
        path, mount, server, lines = scope["path"], scope.get("root_path"), scope.get("server"), scope["headers"]
        if mount:
            path = _path_below(mount, path)
        pairs = lines if type(lines) is list else list(lines)
        super().__init__(scope["method"], path, pairs, server[0] if server else None)
        self._scope = scope
        self._receive = receive
        self._send = send
        self._seconds = seconds
        self._first: Message | Waiting[Message] | None = None  # the first event, if `take_body` has asked for it

    def take_body(self) -> bytes | None:
        """Return the body if all of it has arrived; otherwise `read` continues from here."""
        self._first = first = begin(_next(self._receive))
        if isinstance(first, Waiting) or first.get("more_body") or first["type"] != "http.request":
            return None
        body: bytes = first.get("body", b"")
        return body

    async def read(self, limit: int, received: Received | None = None) -> bytes:
        """Read the body; raise BodyTooLargeError, or ClientDisconnectedError if the client disconnected."""
        first = self._first
        if first is None:
            first = await self._receive()
        message = await first if isinstance(first, Waiting) else first
        body: bytes = message.get("body", b"")
        if message.get("more_body") or message["type"] != "http.request":
            return await _body_in_parts(message, self._receive, limit, received)
        if len(body) > limit:
            raise BodyTooLargeError
        return body

    async def body_parts(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body in parts; raise BodyTooLargeError, or ClientDisconnectedError if the client disconnected."""
        size = 0
        more_body = True
        while more_body:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ClientDisconnectedError
            part: bytes = message.get("body", b"")
            more_body = message.get("more_body", False)
            size += len(part)
            if size > limit:
                raise BodyTooLargeError
            yield part

    async def send(self, message: Message) -> None:
        """Send an event; raise ClientDisconnectedError if the client does not read it in time."""
        await send_in_time(self._send, message, seconds=self._seconds)

    async def disconnected(self) -> None:
        """Return when the client has disconnected."""
        await _disconnected(self._receive)

    async def send_early(self, headers: tuple[tuple[str, str], ...], part: bytes) -> None:
        """Send a part of the response before the exchange returns it."""
        if not self.has_early_response:
            self.has_early_response = True
            await self.send({"type": "http.response.start", "status": _OK, "headers": _encoded(headers).lines})
        await self.send({"type": "http.response.body", "body": part, "more_body": True})

    async def end_early(self, response: HttpResponse) -> None:
        """Send the body of a response as the last part of one that has begun early."""
        await self.send({"type": "http.response.body", "body": response.body, "more_body": False})

    @property
    def is_in_process(self) -> bool:  # type: ignore[override] # of each scope
        """Whether a test has sent it in this process."""
        return IN_PROCESS in (self._scope.get("extensions") or ())

    @property
    def peer(self) -> str | None:
        """The address that the connection came from, or None if unknown."""
        client = self._scope.get("client")
        return client[0] if client else None

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        scheme: str = self._scope.get("scheme", "http")
        return scheme

    @property
    def version(self) -> str:
        """The version of HTTP."""
        version: str = self._scope.get("http_version", "1.1")
        return version

    @property
    def mount(self) -> str:
        """The path under which the application is mounted."""
        mount: str = self._scope.get("root_path", "")
        return mount.rstrip("/")

    @property
    def raw_path(self) -> str:
        """The path below the mount as the client has sent it; made from `path` if the server does not pass it on."""
        raw_path: bytes | None = self._scope.get("raw_path")
        if raw_path is None:
            return super().raw_path
        text = raw_path.partition(b"?")[0].decode("latin-1")
        if not self.mount or unquote(text) == self.path:
            return text
        return _raw_path_below(self.mount, text) or super().raw_path

    @property
    def query_string(self) -> str:
        """The query of the URL, without the question mark."""
        query: bytes = self._scope.get("query_string", b"")
        return query.decode("latin-1")


def _path_below(mount: str, path: str) -> str:
    """Return the part of a path below the mount path; the path itself if it is not below, or not with whole segments.

    Servers behind a proxy may have a root path that is not part of the path.
    """
    below = path.removeprefix(mount.rstrip("/"))
    return below if not below or below[0] == "/" else path


def _raw_path_below(mount: str, raw_path: str) -> str | None:
    """Return the part of a percent-encoded path below the mount path; None if it is not below."""
    longest = _ENCODED_CHARACTER * len(mount)
    for slash in _SLASH.finditer(raw_path, 0, longest + len("%2F")):
        if unquote(raw_path[: slash.start()]) == mount:
            return raw_path[slash.start() :]
    return None


async def _next(receive: Receive) -> Message:
    """Return the next event. The function of a server may return an awaitable that is no coroutine."""
    return await receive()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Encoded(NamedTuple):
    """The header of a response as ASGI has it, and whether it has a length."""

    lines: list[tuple[bytes, bytes]]
    has_length: bool


@lru_cache(maxsize=256)
def _encoded(headers: tuple[tuple[str, str], ...]) -> _Encoded:
    lines = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]
    return _Encoded(lines, any(name.lower() == _LENGTH for name, _ in lines))


def _refusal_for_framing(fields: Mapping[bytes, bytes], scope: Scope) -> HttpResponse | None:
    """Return the refusal of a request whose headers may hold what the client sent behind them, or None.

    It has Transfer-Encoding or Upgrade. All other requests have one length, and nothing behind it.

    uvicorn with httptools adds chunked trailers to the list of headers, and takes a body behind "Upgrade" for the next
    request. A proxy in front has checked neither. An application can't tell them apart: they may be there before it
    starts. The servers of `funcmcp._adapters` do, and say so in the scope.

    A request with Content-Length and Transfer-Encoding may be an attempt at request smuggling (RFC 9112 section 6.1).
    h11 takes it.
    """
    if b"transfer-encoding" in fields and b"content-length" in fields:
        return refuse(400, INVALID_REQUEST, _TWO_LENGTHS, headers=_CLOSE)
    if _MERGES_TRAILERS not in sys.modules or not SEPARATES_TRAILERS.keys().isdisjoint(scope.get("extensions") or ()):
        return None
    if b"transfer-encoding" in fields:
        return refuse(411, INVALID_REQUEST, _CHUNKED, headers=_CLOSE)
    return refuse(400, INVALID_REQUEST, _UPGRADE, headers=_CLOSE)


async def _send_in_parts(
    response: HttpResponse, body: AsyncIterator[bytes], receive: Receive, send: Send, *, seconds: float
) -> None:
    """Send a response whose body comes in parts; raise ClientDisconnectedError if the client does not read it in time.

    Args:
        response: The response.
        body: Its body.
        receive: Returns the next event of the request, whose body has been read.
        send: Sends an event.
        seconds: The time within which the client has to read each part.
    """
    start = {"type": "http.response.start", "status": response.status, "headers": _encoded(response.headers).lines}
    try:
        await send_in_time(send, start, seconds=seconds)
    except BaseException:
        await close_unsent(body)
        raise
    await _stream(body, receive, send, seconds)


async def send_in_time(send: Send, message: Message, *, seconds: float | None) -> None:
    """Send a message; raise ClientDisconnectedError if the server can't take it in this time."""
    sending = begin(_send(send, message))
    if isinstance(sending, Waiting):
        await _finish(sending, seconds)


async def _finish(sending: Waiting[None], seconds: float | None) -> None:
    try:
        async with asyncio.timeout(seconds):
            await sending
    except TimeoutError:
        raise ClientDisconnectedError from None


async def _send(send: Send, message: Message) -> None:
    await send(message)


async def _send_complete(send: Send, response: HttpResponse, body: bytes) -> None:
    """Send a response whose body is complete, with its length if it may have one."""
    headers, has_length = _encoded(response.headers)
    if not has_length and response.status not in WITHOUT_LENGTH:
        headers = [*headers, (_LENGTH, b"%d" % len(body))]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def close_unsent(body: AsyncIterator[bytes]) -> None:
    """Close a body of which no part will be sent, so that what runs for it ends.

    Closing a generator that has not begun runs nothing of it, not even its `finally` blocks. So the body begins, and is
    cancelled at its first wait.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0):
            await anext(body, None)
    await close_body(body)


async def close_body(body: AsyncIterator[bytes]) -> None:
    """Close a body that has begun."""
    close = getattr(body, "aclose", None)
    if close is not None:
        await close()


async def _body_in_parts(message: Message, receive: Receive, limit: int, received: Received | None) -> bytes:
    """Read a body that comes in several parts, of which this is the first."""
    body = bytearray()  # not a list of parts: a part of one byte would take up 40 bytes
    while message["type"] != "http.disconnect":
        part = message.get("body", b"")
        body += part
        if len(body) > limit:
            raise BodyTooLargeError
        if received is not None:
            received(len(part))
        if not message.get("more_body"):
            return bytes(body)
        message = await receive()
    raise ClientDisconnectedError


async def _stream(body: AsyncIterator[bytes], receive: Receive, send: Send, seconds: float) -> None:
    """Send a body in parts. Stop when the client disconnects or does not read a part in time."""
    run = Run()
    has_left = False

    async def watch() -> None:
        nonlocal has_left
        await _disconnected(receive)
        has_left = True
        run.cancel()

    async def pump() -> None:
        async for part in body:
            if has_left:  # the part is the end of a stream that is cancelled, for a client that is still there
                return
            message = {"type": "http.response.body", "body": part, "more_body": True}
            await send_in_time(send, message, seconds=seconds)
            del message, part  # a long stream must not hold its last part in memory
        await send_in_time(send, {"type": "http.response.body", "body": b"", "more_body": False}, seconds=seconds)

    watching = asyncio.ensure_future(watch())
    try:
        await run.wait(pump())
    except RunCancelledError:
        return
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await close_body(body)
