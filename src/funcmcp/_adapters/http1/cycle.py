"""One request of a connection, and its response.

How it works: the connection creates a `Cycle` when the header of a request is complete, adds the parts of its body, and
starts a task, which answers the request by ASGI (`_run_application`) or without it (`_answer`). Both ways read the body
with `next_part`, and write with `start_response`, `send_part` and `end_response`, so the bytes of a response, the
pauses for clients that do not read, and the end of the connection have one home.

The states of the request and of the response are those of the tables in `states.py`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote

from funcmcp._adapters.asgi.application import SEPARATES_TRAILERS, ClientDisconnectedError, close_body, close_unsent
from funcmcp._adapters.http1.parser import InvalidRequestError
from funcmcp._adapters.http1.responses import (
    CONTINUE,
    LAST_CHUNK,
    STATUS_LINES,
    chunk,
    encode,
    encode_text,
)
from funcmcp._adapters.http1.states import Framing, RequestState, ResponseState
from funcmcp._protocol.http_rules import WITHOUT_LENGTH
from funcmcp._server.run import Run, RunCancelledError
from funcmcp._transports.http.messages import BodyTooLargeError, HttpRequest, HttpResponse
from funcmcp._transports.http.status import JSON_HEADERS, unanswered

if TYPE_CHECKING:
    import logging
    from collections.abc import AsyncIterator

    from funcmcp._adapters.asgi.application import Message
    from funcmcp._adapters.http1.direct_path import Application, DirectPath
    from funcmcp._adapters.http1.responses import Fields
    from funcmcp._transports.http.messages import Received, RequestHeader

_ENDED = HttpResponse(503, JSON_HEADERS, unanswered(None))
_OK = 200

# A lookup in an enumeration takes longer than one in the module, and the states are compared in each request.
_EXPECTING, _BODY, _COMPLETE, _READ = RequestState
_WAITING, _RUNNING, _STARTED, _RESPONSE_ENDED, _LOST, _CUT = ResponseState
_NO_BODY, _LENGTH, _CHUNKED, _CLOSE = Framing

_TEXT = (("content-type", "text/plain; charset=utf-8"),)
_SCHEMES = {b"http", b"https"}
_FAILED = HttpResponse(500, _TEXT, b"Internal Server Error")
BUSY = HttpResponse(503, _TEXT, b"Service Unavailable")
"""The response to a request beyond uvicorn's `limit_concurrency`."""


class Connection(Protocol):
    """What a cycle uses of its connection; see `connection.HTTPConnection`."""

    transport: Any
    config: Any
    app: Application
    app_state: dict[str, Any]
    root_path: str
    logger: logging.Logger
    server: tuple[str, int | None] | None
    client: tuple[str, int] | None
    scheme: str
    access_log: bool
    writable: asyncio.Event | None
    tasks: set[asyncio.Task[Any] | None]

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be sent any more."""

    @property
    def default_lines(self) -> bytes:
        """The fields of each response, as lines."""

    def write(self, data: bytes) -> None:
        """Write data to the transport."""

    async def drain(self, size: int) -> None:
        """Return when the client has read what was sent."""

    async def wait_for_client(self, size: int) -> None:
        """Return when the client has read what was sent; raise ClientDisconnectedError."""

    def log_access(self, cycle: Cycle, status: int) -> None:
        """Write a line of the access log."""

    def forget_header(self) -> None:
        """Free the memory of the latest header."""

    def on_response_end(self, cycle: Cycle) -> None:
        """Continue after a response."""

    def close(self) -> None:
        """Close the connection."""

    def update_reading(self) -> None:
        """Pause or resume reading."""


class Cycle:
    """A request and its response; see the module's docstring.

    Args:
        connection: The connection.
        method: The method.
        target: The request target.
        version: The version of HTTP.
        header: The header.
        keep_alive: Whether the client lets the connection remain open.

    Attributes:
        request_state: The state of the request.
        response_state: The state of the response.
        body: The part of the body that has arrived and was not read.
        keep_alive: Whether the connection remains open after the response.
        location: What *target* says; None if the request needs no ASGI.
        stream: Sends the parts of the response without ASGI; None unless they are being sent.
    """

    # Most requests change few of these, so they are no attributes of the instance before.
    response_state = _WAITING
    body = b""
    location: Location | None = None
    stream: Run | None = None
    _event: asyncio.Event | None = None
    _head = b""  # the header of the response, if it is sent together with the beginning of its body
    _framing = _CLOSE
    _remaining = 0  # bytes that the body still has, if its length is known

    def __init__(
        self,
        connection: Connection,
        method: str,
        target: bytes,
        version: str,
        header: RequestHeader,
        *,
        keep_alive: bool,
    ) -> None:
        self.connection = connection
        self.method = method
        self.target = target
        self.version = version
        self.header = header
        self.keep_alive = keep_alive
        expects = b"expect" in header.fields and _expects_continue(version, header)
        self.request_state = _EXPECTING if expects else _BODY

    @property
    def is_complete(self) -> bool:
        """Whether all of the request has arrived."""
        return self.request_state is _COMPLETE or self.request_state is _READ

    @property
    def has_started(self) -> bool:
        """Whether the header of the response is decided."""
        state = self.response_state
        return state is _STARTED or state is _RESPONSE_ENDED or state is _CUT

    @property
    def has_ended(self) -> bool:
        """Whether the response is complete."""
        return self.response_state is _RESPONSE_ENDED

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be sent any more."""
        return self.response_state is _LOST or self.response_state is _CUT

    # The request

    def add(self, part: bytes) -> None:
        """Add a part of the body, unless nobody will read it."""
        if self.response_state is not _RESPONSE_ENDED:
            self.body = self.body + part if self.body else part
            self.notify()

    def complete(self) -> None:
        """End the request."""
        self.request_state = _COMPLETE
        self.notify()

    def lose(self) -> None:
        """Note that nothing can be sent any more."""
        state = self.response_state
        if state is not _RESPONSE_ENDED:
            self.response_state = _CUT if state is _STARTED or state is _CUT else _LOST
            self.notify()
            stream, self.stream = self.stream, None
            if stream is not None:
                stream.cancel()

    def notify(self) -> None:
        """Wake those who wait for a part of the body, or for the end."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def changed(self) -> None:
        """Return when more of the body has arrived, or the request or its response has ended."""
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()

    async def next_part(self) -> bytes | None:
        """Return the next part of the body; None if it is lost. With the last part, the state becomes READ."""
        if self.request_state is _EXPECTING:
            self.request_state = _BODY
            if not self.connection.has_ended:
                self.connection.write(CONTINUE)
        while self.response_state is _RUNNING or self.response_state is _STARTED:
            is_complete = self.request_state is _COMPLETE
            if is_complete or (self.body and self.request_state is _BODY):
                part, self.body = self.body, b""
                if is_complete:
                    self.request_state = _READ
                self.connection.update_reading()
                return part
            self.connection.update_reading()
            await self.changed()
        return None

    async def lost(self) -> None:
        """Return when the client has disconnected, or the response has ended."""
        while self.response_state is _RUNNING or self.response_state is _STARTED:
            await self.changed()

    # The response

    def start_response(self, status: int, fields: Fields) -> None:
        """Begin the response. If the length of its body is known, the header is sent together with the body."""
        length = fields.length
        added = b""
        if self.method == "HEAD" or status in WITHOUT_LENGTH:
            self._framing = _NO_BODY
        elif fields.chunked:
            self._framing = _CHUNKED
        elif length is not None:
            self._framing, self._remaining = _LENGTH, length
        elif self.version == "1.1":
            self._framing, added = _CHUNKED, b"transfer-encoding: chunked\r\n"
        head = self._begin_response(status, fields, added)
        if self._framing is _LENGTH or self._framing is _NO_BODY:
            self._head = head
        else:
            self.connection.write(head)

    def _begin_response(self, status: int, fields: Fields, framing: bytes) -> bytes:
        """Return the header of the response, which has begun from here on."""
        connection = self.connection
        closing = b""
        if fields.closes:
            self.keep_alive = False
        elif not self.keep_alive:
            closing = b"connection: close\r\n"
        parts = (STATUS_LINES[status], connection.default_lines, fields.lines, framing, closing)
        self.response_state = _STARTED
        if self.request_state is _EXPECTING:
            self.request_state = _BODY  # an answer is there
        if connection.access_log:
            connection.log_access(self, status)
        return b"%b%b%b%b%b\r\n" % parts

    def send_part(self, part: bytes) -> None:
        """Send a part of the body; raise RuntimeError if it is longer than was said."""
        framing = self._framing
        if framing is _NO_BODY:  # an author may send one nevertheless
            part = b""
        elif framing is _CHUNKED:
            part = chunk(part) if part else b""
        elif framing is _LENGTH:
            if len(part) > self._remaining:
                raise RuntimeError("Response content longer than Content-Length")
            self._remaining -= len(part)
        if self._head:
            part, self._head = self._head + part, b""
        if part:
            self.connection.write(part)

    async def send_early(self, headers: tuple[tuple[str, str], ...], part: bytes) -> None:
        """Send a part of a response that is not known yet; close the connection if the client does not read it."""
        connection = self.connection
        if self.is_lost:
            return
        if not self.has_started:
            connection.forget_header()  # it would take up memory while the stream is open
            self.start_response(_OK, encode_text(headers))
        if connection.writable is not None:
            try:
                await connection.wait_for_client(len(part))
            except ClientDisconnectedError:
                connection.close()
        if not connection.has_ended:
            self.send_part(part)

    def end_response(self, part: bytes = b"") -> None:
        """Send the last part of the body, and end the response; raise RuntimeError if the body is too short."""
        if self._framing is _CHUNKED:
            self.connection.write(chunk(part) + LAST_CHUNK if part else LAST_CHUNK)
        else:
            self.send_part(part)
            if self._remaining:
                raise RuntimeError("Response content shorter than Content-Length")
        self._end()

    def respond(self, response: HttpResponse, body: bytes) -> None:
        """Send a response whose body is complete; raise RuntimeError if its fields say something else."""
        status, fields = response.status, encode_text(response.headers)
        framing = b""
        if status in WITHOUT_LENGTH:
            body = b""
        elif fields.length is None and not fields.chunked:
            framing = b"content-length: %d\r\n" % len(body)
        elif fields.length != len(body):
            raise RuntimeError("The response has another length than its Content-Length.")
        head = self._begin_response(status, fields, framing)
        self.connection.write(head if self.method == "HEAD" else head + body)
        self._end()

    def _end(self) -> None:
        """Note that the response is complete."""
        self.response_state = _RESPONSE_ENDED
        self.body = b""
        if self._event is not None:
            self.notify()
        self.connection.on_response_end(self)

    # The two ways to answer

    async def run(self, direct: DirectPath | None) -> None:
        """Answer the request, whatever happens; without ASGI if *direct* can do that."""
        try:
            if direct is not None:
                await self._answer(direct)
            else:
                await self._run_application(self.connection.app)
        except BaseException as error:  # noqa: BLE001 - each one ends the request, cancellation included
            self._end_after(error)
        finally:
            self.connection.tasks.discard(asyncio.current_task())

    async def refuse(self, response: HttpResponse) -> None:
        """Answer without reading the request."""
        self._abandon(response)
        self.connection.tasks.discard(asyncio.current_task())

    def _end_after(self, error: BaseException) -> None:
        """End a request whose answer has failed, or which the server cancels because it ends."""
        task = asyncio.current_task()
        is_cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
        if not is_cancelled:
            self.connection.logger.error("Exception in ASGI application\n", exc_info=error)
        self._abandon(_ENDED if is_cancelled else _FAILED, ends_body=is_cancelled)

    def _abandon(self, response: HttpResponse, *, ends_body: bool = False) -> None:
        """End a request with another response; if its response has begun, with the end of its body or connection."""
        if self.is_lost or self.has_ended:
            return
        self.keep_alive = False
        if not self.has_started or self._head:
            self._head = b""
            assert isinstance(response.body, bytes)  # noqa: S101 - the responses of this module
            self.respond(response, response.body)
        elif ends_body and not self._remaining:
            self.end_response()
        else:
            self.connection.close()

    async def _answer(self, direct: DirectPath) -> None:
        """Answer without ASGI."""
        request = DirectRequest(self, direct.path)
        try:
            response = await direct.served.answer(request)
            body = response.body
            if isinstance(body, bytes):
                if self.connection.writable is not None:
                    await self.connection.wait_for_client(len(body))
                state = self.response_state
                if state is _RUNNING:
                    self.respond(response, body)
                elif state is _STARTED:
                    self.end_response(body)
            else:
                request.body = None  # it would take up memory while the stream is open
                await self._send_stream(response, body)
        except ClientDisconnectedError:
            self.connection.close()

    async def _send_stream(self, response: HttpResponse, body: AsyncIterator[bytes]) -> None:
        """Send a response in parts, until the client disconnects or does not read a part in time."""
        if self.is_lost:
            await close_unsent(body)
            return
        self.connection.forget_header()  # it would take up memory while the stream is open
        run = self.stream = Run()
        try:
            await run.wait(self._send_parts(response, body))
        except RunCancelledError:
            pass
        finally:
            self.stream = None
            if self.has_started:
                await close_body(body)
            else:
                await close_unsent(body)

    async def _send_parts(self, response: HttpResponse, body: AsyncIterator[bytes]) -> None:
        connection = self.connection
        if connection.writable is not None:
            await connection.wait_for_client(0)
        self.start_response(response.status, encode_text(response.headers))
        async for part in body:
            if connection.writable is not None:
                await connection.wait_for_client(len(part))
            if connection.has_ended:
                raise ClientDisconnectedError  # asyncio logs each part that is written from here on
            self.send_part(part)
            del part  # a long stream must not hold its last part in memory
        if connection.writable is not None:
            await connection.wait_for_client(0)
        self.end_response()

    async def _run_application(self, app: Application) -> None:
        """Answer by an ASGI application."""
        await app(self.make_scope(), self.receive, self.send)
        if not self.has_ended and not self.is_lost:
            step = "completing" if self.has_started else "starting"
            self.connection.logger.error("ASGI callable returned without %s response.", step)
            self._abandon(_FAILED)

    async def receive(self) -> Message:
        """Return the next event of ASGI."""
        part = await self.next_part()
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": self.request_state is not _READ}

    async def send(self, message: Message) -> None:
        """Send an event of ASGI."""
        connection = self.connection
        if connection.writable is not None and not self.is_lost:
            await connection.drain(len(message.get("body", b"")))
        if self.is_lost:
            return
        kind = message["type"]
        expected = "http.response.body" if self.has_started else "http.response.start"
        if self.has_ended:
            raise RuntimeError(f"Unexpected ASGI message '{kind}' sent, after response already completed.")
        if kind != expected:
            raise RuntimeError(f"Expected ASGI message '{expected}', but got '{kind}'.")
        if kind == "http.response.start":
            self.start_response(message["status"], encode(message.get("headers", ())))
        elif message.get("more_body", False):
            self.send_part(message.get("body", b""))
        else:
            self.end_response(message.get("body", b""))

    def make_scope(self) -> dict[str, Any]:
        """Return the scope of ASGI."""
        connection = self.connection
        path, raw_path, query = self.location or location_of(self.target)
        root_path = connection.root_path
        return {
            "type": "http",
            "asgi": {"version": connection.config.asgi_version, "spec_version": "2.3"},
            "http_version": self.version,
            "server": connection.server,
            "client": connection.client,
            "scheme": connection.scheme,
            "method": self.method,
            "root_path": root_path,
            "path": root_path + path,
            "raw_path": root_path.encode("ascii") + raw_path,
            "query_string": query,
            "headers": self.header.pairs,
            "state": connection.app_state.copy(),
            "extensions": SEPARATES_TRAILERS,
        }


class DirectRequest(HttpRequest):
    """A request that goes to the exchange without ASGI.

    Args:
        cycle: The request.
        path: Its path.
    """

    __slots__ = ("_cycle",)
    begins_early = True

    def __init__(self, cycle: Cycle, path: str) -> None:
        server, header = cycle.connection.server, cycle.header
        HttpRequest.__init__(self, cycle.method, path, header.pairs, server[0] if server else None, header)
        self._cycle = cycle
        if cycle.request_state is _COMPLETE:
            self.body, cycle.body = cycle.body, b""

    async def read(self, limit: int, received: Received | None = None) -> bytes:
        """Read the body; raise BodyTooLargeError, or ClientDisconnectedError if the client disconnected."""
        if self.body is not None:
            return await HttpRequest.read(self, limit)
        body, cycle = bytearray(), self._cycle
        while (part := await cycle.next_part()) is not None:
            is_last_part = cycle.request_state is _READ
            is_only_part = is_last_part and not body
            body += part
            if len(body) > limit:
                raise BodyTooLargeError
            if received is not None and not is_only_part:
                received(len(part))
            if is_last_part:
                return bytes(body)
        raise ClientDisconnectedError

    async def disconnected(self) -> None:
        """Return when the client has disconnected."""
        await self._cycle.lost()

    async def send_early(self, headers: tuple[tuple[str, str], ...], part: bytes) -> None:
        """Send a part of the response before the exchange returns it."""
        self.has_early_response = True
        await self._cycle.send_early(headers, part)

    @property
    def peer(self) -> str | None:
        """The address that the connection came from, or None if unknown."""
        client = self._cycle.connection.client
        return client[0] if client else None

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return self._cycle.connection.scheme


class Location(NamedTuple):
    """A request target.

    Attributes:
        path: The path, percent-decoded.
        raw_path: The path.
        query: The query.
    """

    path: str
    raw_path: bytes
    query: bytes


def location_of(target: bytes) -> Location:
    """Return the parts of a request target (RFC 9112 section 3.2); raise InvalidRequestError."""
    raw_path, _, query = target.partition(b"#")[0].partition(b"?")
    scheme, separator, rest = raw_path.partition(b"://")
    if separator and scheme.lower() in _SCHEMES:
        raw_path = b"/" + rest.partition(b"/")[2]
    elif not raw_path.startswith(b"/") and target != b"*":
        raise InvalidRequestError("the request target is neither a path nor a URL")
    try:
        path = raw_path.decode("ascii")
    except UnicodeDecodeError:
        raise InvalidRequestError("the request target is not ASCII") from None
    return Location(unquote(path) if "%" in path else path, raw_path, query)


def allows_keep_alive(version: str, header: RequestHeader) -> bool:
    """Return whether a request lets its connection remain open (RFC 9112 section 9.3)."""
    field = header.fields.get(b"connection")
    if field is None:
        return version == "1.1"
    return version == "1.1" and b"close" not in [token.strip().lower() for token in field.split(b",")]


def _expects_continue(version: str, header: RequestHeader) -> bool:
    """Return whether a client may wait with the body for an answer (RFC 9110 section 10.1.1)."""
    return version == "1.1" and header.fields[b"expect"].lower() == b"100-continue"
