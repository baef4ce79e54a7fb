"""uvicorn's protocol on httptools, which answers a usual POST to the endpoint without ASGI.

How it works: ASGI takes a third of the time of a short request, for its scope, its events and uvicorn's
`RequestResponseCycle`. So a request goes directly from the parser to the exchange (`HttpRequest` to `HttpResponse`),
and its response to the transport in one write, if

- it is a POST to the path of the endpoint in HTTP/1.1, without a query, Expect, Transfer-Encoding or Upgrade,
- no earlier request of its connection waits for its response, and
- its body has at most `_MAX_BODY` bytes or arrives with the end of the header, and it arrives within `body_seconds` of
  it. Many clients send header and body in two writes.

The decision has two steps:

- `on_headers_complete` decides by the header. A request that may go directly is `_incoming` until its last byte, and
  uvicorn does not know of it. If the last byte does not arrive in time, the request becomes uvicorn's: `_start_asgi`
  makes the calls of uvicorn that were left out. Every other request is uvicorn's from here on.
- `on_message_complete` starts the task that answers it. The connection's `cycle` is then a `DirectCycle`, which has
  what uvicorn and `BoundedConnection` read from a cycle. So keep-alive, pipelining, timers, disconnects and shutdown
  need no second implementation.

The header of a request that went directly is kept. If the next request has the same one (`repeated_header`), it needs
no parser: `data_received` starts its task. One timer for many responses measures the idle time of a connection. When it
fires, it looks at the time of the last response; uvicorn would start and stop a timer for each.

A stream is sent in chunks, as uvicorn would send it. While it is open, its cycle has a `Run`, which is cancelled when
the client disconnects. So a stream needs no second task that waits for that.

All other responses are sent through ASGI: one with fields about the connection, one behind bytes that the client has
not read, and the one to an exception. For these, `DirectCycle.become_asgi` makes the cycle a complete one of uvicorn,
which runs an ASGI application that sends only.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import get_client_addr

from funcmcp._adapters.asgi.application import ClientDisconnectedError, close_body, close_unsent, respond
from funcmcp._adapters.uvicorn.httptools_protocol import HttpToolsServerProtocol
from funcmcp._adapters.uvicorn.repeated_header import repeated_header
from funcmcp._server.run import Run, RunCancelledError
from funcmcp._transports.http.messages import HttpRequest, RequestHeader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._adapters.asgi.application import Receive, Scope, Send
    from funcmcp._adapters.uvicorn.direct_path import Application, DirectPath
    from funcmcp._adapters.uvicorn.repeated_header import RepeatedHeader
    from funcmcp._transports.http.messages import HttpResponse

_PLAIN_NAME = re.compile(rb"[a-z0-9-]+")
_PLAIN_VALUE = re.compile(rb"[\x20-\x7e\x80-\xff]*")
_CONNECTION_FIELDS = {b"connection", b"content-length", b"transfer-encoding"}
_WITHOUT_LENGTH = {204, 304}
_MAX_BODY = 65_536
"""Bytes of a body that may arrive after its header. uvicorn pauses reading when more bytes wait."""

_MAX_DIGITS = 20
"""Digits of a Content-Length that are read."""


class DirectRequest(HttpRequest):
    """A request that goes to the exchange directly.

    Args:
        header: Its header.
        connection: The connection that it came on.

    Attributes:
        body: The body. It is complete before the exchange gets the request.
        cycle: The cycle of the request, from then on.
    """

    __slots__ = ("_connection", "cycle")

    body: bytes
    cycle: DirectCycle
    header: RequestHeader

    def __init__(self, header: RequestHeader, connection: DirectHttpToolsProtocol) -> None:
        server = connection.server
        HttpRequest.__init__(self, "POST", connection.direct.path, header.pairs, server[0] if server else None, header)
        self.body = b""
        self._connection = connection

    async def disconnected(self) -> None:
        """Return when the client has disconnected."""
        await self.cycle.message_event.wait()

    @property
    def peer(self) -> str | None:
        """The address that the connection came from, or None if unknown."""
        client = self._connection.client
        return client[0] if client else None

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return self._connection.scheme or "http"

    def make_scope(self) -> Any:
        """Return the scope of ASGI, for the part of ASGI that sends the response."""
        connection, path = self._connection, self.path
        return {
            "type": "http",
            "asgi": {"version": connection.config.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": connection.server,
            "client": connection.client,
            "scheme": connection.scheme,
            "method": self.method,
            "root_path": "",
            "path": path,
            "raw_path": path.encode("ascii"),
            "query_string": b"",
            "headers": self.pairs,
            "state": connection.app_state.copy(),
        }


class DisconnectEvent(asyncio.Event):
    """Is set when the client disconnects, and after the response. It cancels the stream that is open then.

    Args:
        cycle: The cycle of the request.
    """

    def __init__(self, cycle: DirectCycle) -> None:
        super().__init__()
        self._cycle = cycle

    def set(self) -> None:
        """Wake those who wait, and cancel the stream once."""
        super().set()
        stream, self._cycle.stream = self._cycle.stream, None
        if stream is not None:
            stream.cancel()


class DirectCycle(RequestResponseCycle):
    """The connection's view of a request that is complete. It has only what a connection reads, until `become_asgi`.

    Args:
        keep_alive: Whether the connection remains open after the response.

    Attributes:
        stream: Sends the parts of the response; None unless they are being sent.
        task: The task that answers the request.
    """

    disconnected = False
    more_body = False
    response_started = False
    response_complete = False
    body: Any = b""  # the request has it
    event: asyncio.Event | None = None
    stream: Run | None = None
    task: asyncio.Task[None] | None = None

    def __init__(self, *, keep_alive: bool) -> None:
        self.keep_alive = keep_alive

    @property
    def message_event(self) -> asyncio.Event:
        """Is set when the client disconnects, and after the response. Few requests wait for it, so it is made late."""
        if self.event is None:
            self.event = DisconnectEvent(self)
        return self.event

    @message_event.setter
    def message_event(self, event: asyncio.Event) -> None:
        self.event = event

    def complete(self) -> None:
        """Mark the response as sent."""
        self.response_started = self.response_complete = True
        if self.event is not None:
            self.event.set()

    def become_asgi(self, request: DirectRequest, connection: DirectHttpToolsProtocol) -> None:
        """Become a complete cycle of uvicorn, whose request has been read, and whose response may be a stream."""
        disconnected, started, event = self.disconnected, self.response_started, self.message_event
        RequestResponseCycle.__init__(
            self,
            scope=request.make_scope(),
            transport=connection.transport,
            flow=connection.flow,
            logger=connection.logger,
            access_logger=connection.access_logger,
            access_log=connection.access_log,
            default_headers=connection.server_state.default_headers,
            message_event=event,
            expect_100_continue=False,
            keep_alive=self.keep_alive,
            on_response=connection.on_response_complete,
        )
        self.disconnected, self.response_started, self.more_body = disconnected, started, False
        self.chunked_encoding = True if started else None


class DirectHttpToolsProtocol(HttpToolsServerProtocol):
    """An HTTP connection; see the module's docstring.

    Attributes:
        direct: What answers requests without ASGI.
        body_seconds: The time in which a body has to arrive after its header.
    """

    direct: ClassVar[DirectPath]
    body_seconds: ClassVar[float] = 0.01

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        is_wrapped = self.config.loaded_app != self.direct.app  # by uvicorn, such as for proxy headers
        through_asgi = is_wrapped or self.root_path or self.limit_concurrency is not None
        self._target = None if through_asgi else self.direct.target
        self._incoming: DirectRequest | None = None
        self._parts: list[bytes] = []
        self._body_timer: asyncio.TimerHandle | None = None
        self._latest: DirectRequest | None = None  # a request that `parse` has started
        self._header: RepeatedHeader | None = None
        self._idle_since = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._default_headers: object = None
        self._default_lines = b""

    @property
    def timers(self) -> int:
        """The number of timers that run."""
        return super().timers + sum(timer is not None for timer in (self._idle_timer, self._body_timer))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and forget a request whose body is incomplete."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        self._cancel_body_timer()
        self._incoming = None
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection after its last response, which a request whose body is incomplete still gets."""
        self._body_expired()
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        """Answer a request whose header repeats that of an earlier request; parse any other data."""
        if self._header is not None and self._complete and self.cycle.response_complete and not self.held:
            repeated = self._header.match(data)
            if repeated is not None and not self.transport.is_closing():
                if self.timeout_keep_alive_task is not None:
                    self._unset_keepalive_if_required()
                body, header = repeated
                request = DirectRequest(header, self)
                request.body = body
                self._start(request, DirectCycle(keep_alive=True))
                return
        HttpToolsServerProtocol.data_received(self, data)

    def parse(self, data: bytes) -> None:
        """Parse data. A request whose body has not arrived completely becomes uvicorn's if it does not arrive soon."""
        is_beginning = self._complete
        HttpToolsServerProtocol.parse(self, data)
        if self._incoming is not None and self._body_timer is None:
            if self._ended() or not _has_small_body(self._incoming):
                self._start_asgi(self._incoming)
            else:
                self._body_timer = self.loop.call_later(self.body_seconds, self._body_expired)
        request, self._latest = self._latest, None
        if request is not None and is_beginning and self._complete and request.cycle.keep_alive:
            self._header = repeated_header(data, request.body, request.header)

    def on_message_begin(self) -> None:
        """Prepare for a request. The scope of ASGI is made in `on_headers_complete` if the request needs it."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_headers_complete(self) -> None:
        """Decide by the header whether the request may go directly."""
        if self.url == self._target and self._is_plain():
            request = DirectRequest(RequestHeader(self.headers), self)
            if b"transfer-encoding" not in request.fields and b"upgrade" not in request.fields:
                self._incoming, self._parts = request, []
                self._progress, self._complete, self._upgrade_ignored = True, False, False
                self.headers = []
                return
        self._continue_with_uvicorn()

    def on_body(self, body: bytes) -> None:
        """Add to the body."""
        if self._incoming is None:
            HttpToolsServerProtocol.on_body(self, body)
            return
        self._progress = True
        self._parts.append(body)

    def on_message_complete(self) -> None:
        """Answer the request if it goes directly."""
        request = self._incoming
        if request is None:
            HttpToolsServerProtocol.on_message_complete(self)
            return
        self._incoming, self._latest = None, request
        self._cancel_body_timer()
        self._progress = self._complete = True
        request.body = self._take_body()
        self._start(request, DirectCycle(keep_alive=self.parser.should_keep_alive()))

    def _start(self, request: DirectRequest, cycle: DirectCycle) -> None:
        """Start the task that answers a request."""
        self.cycle = self._answering = request.cycle = cycle
        cycle.task = self.loop.create_task(self._answer(request, cycle))
        self.tasks.add(cycle.task)

    def _is_plain(self) -> bool:
        """Return whether the current request, as far as the parser knows it, may go directly."""
        cycle, parser = self.cycle, self.parser
        return (
            (cycle is None or cycle.response_complete)
            and not self.expect_100_continue
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
        )

    def _continue_with_uvicorn(self) -> None:
        """Make the calls that `on_message_begin` and `on_headers_complete` have left out."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        self.url, self.headers, self.expect_100_continue = url, headers, expects
        self.scope["headers"] = headers
        HttpToolsServerProtocol.on_headers_complete(self)

    def _cancel_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _body_expired(self) -> None:
        """Make a request uvicorn's if its body is incomplete."""
        self._cancel_body_timer()
        if self._incoming is not None:
            self._start_asgi(self._incoming)

    def _start_asgi(self, request: DirectRequest) -> None:
        """Make a request uvicorn's whose body has not arrived completely."""
        self._incoming = None
        if self._ended():
            return
        self.headers = request.pairs
        self._continue_with_uvicorn()
        body = self._take_body()
        if body:
            HttpToolsServerProtocol.on_body(self, body)

    def _take_body(self) -> bytes:
        """Return what has arrived of the body, and forget it: the connection may remain open for long."""
        body, self._parts = b"".join(self._parts), []
        return body

    async def _answer(self, request: DirectRequest, cycle: DirectCycle) -> None:
        """Answer a request."""
        try:
            try:
                response = await self.direct.served.answer(request)
                body = response.body
                if isinstance(body, bytes):
                    is_sent = self._write(cycle, response, body)
                else:
                    request.body = b""  # it would take up memory while the stream is open
                    is_sent = await self._stream(cycle, response, body)
                if not is_sent:
                    seconds = self.limits.write_seconds
                    await self._finish(request, cycle, partial(_respond, response, seconds))
            except BaseException as error:  # noqa: BLE001 - `run_asgi` handles each, cancellation included
                await self._finish(request, cycle, partial(_raise, error))
        finally:
            self.tasks.discard(cycle.task)

    def _write(self, cycle: DirectCycle, response: HttpResponse, body: bytes) -> bool:
        """Send a response; return False if it has to be sent through ASGI."""
        if cycle.disconnected:
            return True
        header = self._header_of(response)
        if header is None:
            return False
        closing = b"" if cycle.keep_alive else b"connection: close\r\n"
        self.transport.write(b"%bcontent-length: %d\r\n%b\r\n%b" % (header, len(body), closing, body))
        self._complete_response(cycle)
        return True

    async def _stream(self, cycle: DirectCycle, response: HttpResponse, body: AsyncIterator[bytes]) -> bool:
        """Send a response in parts; return False if it has to be sent through ASGI.

        Stop when the client disconnects or does not read a part in time.
        """
        if cycle.disconnected:
            await close_unsent(body)
            return True
        header = self._header_of(response)
        if header is None:
            return False
        self._header = None  # it would take up memory while the stream is open
        closing = b"" if cycle.keep_alive else b"connection: close\r\n"
        run = cycle.stream = Run()
        try:
            cycle.response_started = True
            self.transport.write(b"%b%btransfer-encoding: chunked\r\n\r\n" % (header, closing))
            await run.wait(self._send_parts(body))
            cycle.stream = None
            self._complete_response(cycle)
        except RunCancelledError:
            pass
        except ClientDisconnectedError:
            self.transport.close()
            self.expect_end()
        finally:
            cycle.stream = None
            await close_body(body)
        return True

    async def _send_parts(self, body: AsyncIterator[bytes]) -> None:
        """Send the parts of a body as chunks."""
        async for part in body:
            if self.flow.write_paused:
                await self._wait_for_client()
            if self.transport.is_closing():
                raise ClientDisconnectedError  # asyncio logs each part that is written from here on
            if part:
                self.transport.write(b"%x\r\n%b\r\n" % (len(part), part))
            del part  # a long stream must not hold its last part in memory
        if self.flow.write_paused:
            await self._wait_for_client()
        self.transport.write(b"0\r\n\r\n")

    async def _wait_for_client(self) -> None:
        """Wait until the client has read what it was sent; raise ClientDisconnectedError if it takes too long."""
        try:
            async with asyncio.timeout(self.limits.write_seconds):
                await self.flow.drain()
        except TimeoutError:
            raise ClientDisconnectedError from None

    def _header_of(self, response: HttpResponse) -> bytes | None:
        """Return the status line and the header fields of a response; None if it has to be sent through ASGI."""
        status = response.status
        status_line, lines = STATUS_LINE.get(status), _encoded(response.headers)
        if status_line is None or lines is None or status in _WITHOUT_LENGTH or self.flow.write_paused:
            return None
        default_headers = self.server_state.default_headers
        if default_headers is not self._default_headers:  # uvicorn makes a new list each second, for the date
            self._default_headers = default_headers
            self._default_lines = b"".join(b"%b: %b\r\n" % field for field in default_headers)
        if self.access_log:
            self._log(status)
        return b"%b%b%b" % (status_line, self._default_lines, lines)

    def _complete_response(self, cycle: DirectCycle) -> None:
        """Do what is to be done after a response."""
        cycle.complete()
        if not cycle.keep_alive:
            self.transport.close()
        if self.pipeline or self.held or self.transport.is_closing():
            self.on_response_complete()
        else:
            self._wait_for_request()

    def _wait_for_request(self) -> None:
        """Do what `on_response_complete` does if no request waits, with one timer for many responses."""
        self.server_state.total_requests += 1
        if self.flow.read_paused:
            self.flow.resume_reading()
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._idle_expired)

    def _idle_expired(self) -> None:
        """Close the connection if it is idle for long enough."""
        self._idle_timer = None
        is_idle = self._complete and self.cycle.response_complete and not self._ended()
        if not is_idle or self.timeout_keep_alive_task is not None:
            return  # a request is under way, or uvicorn's timer runs for a later response
        remaining = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if remaining > 0:
            self._idle_timer = self.loop.call_later(remaining, self._idle_expired)
        else:
            self.timeout_keep_alive_handler()

    def _log(self, status: int) -> None:
        """Write the line of uvicorn's access log."""
        address = get_client_addr({"client": self.client})  # type: ignore[arg-type]  # it reads nothing else
        self.access_logger.info('%s - "%s %s HTTP/%s" %d', address, "POST", self.direct.path, "1.1", status)

    async def _finish(self, request: DirectRequest, cycle: DirectCycle, app: Application) -> None:
        """Send a response through ASGI."""
        cycle.become_asgi(request, self)
        await cycle.run_asgi(partial(self.direct.run, app))


def _has_small_body(request: HttpRequest) -> bool:
    """Return whether the body of a request has at most `_MAX_BODY` bytes. The parser has checked Content-Length.

    Content-Length may have any number of leading zeros, and `int` raises ValueError for more than 4300 digits.
    """
    length = request.fields[b"content-length"]
    return len(length) <= _MAX_DIGITS and int(length) <= _MAX_BODY


@lru_cache(maxsize=256)
def _encoded(headers: tuple[tuple[str, str], ...]) -> bytes | None:
    """Return header fields as lines; None if ASGI has to check them, or they are about the connection."""
    lines = bytearray()
    for name, value in headers:
        try:
            encoded_name, encoded_value = name.encode("ascii"), value.encode("latin-1")
        except UnicodeEncodeError:
            return None
        is_plain = _PLAIN_NAME.fullmatch(encoded_name) and _PLAIN_VALUE.fullmatch(encoded_value)
        if not is_plain or encoded_name in _CONNECTION_FIELDS:
            return None
        lines += b"%b: %b\r\n" % (encoded_name, encoded_value)
    return bytes(lines)


async def _raise(error: BaseException, scope: Scope, receive: Receive, send: Send) -> None:
    """Raise an error in place of a response."""
    del scope, receive, send
    raise error


async def _respond(response: HttpResponse, seconds: float, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response, as far as the client reads it in time."""
    del scope
    with contextlib.suppress(ClientDisconnectedError):
        await respond(response, receive, send, seconds=seconds)
