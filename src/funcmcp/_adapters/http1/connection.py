"""An HTTP/1 connection: an `asyncio.Protocol` for uvicorn's public option ``Config(http=...)``.

How it works. Data is fed to a parser in slices of `SLICE_BYTES`. The parser reports requests, which become cycles
(`cycle.Cycle`), and one of them is answered at a time:

- While a complete request is answered (HELD), received data is stored, not parsed. It is still read, so that the server
  notices when the client leaves, until `HIGH_WATER_BYTES` wait. A slice may hold several requests; those behind the
  first one wait in a list.
- A request whose body has not arrived at the end of the data is answered meanwhile, and reads the parts as they come.
  Reading pauses while `HIGH_WATER_BYTES` of it are unread.
- A usual POST to the endpoint needs no ASGI (`is_direct`).

The states are the tables in `states.py`, with the rule of timers. Apart from that, in every state, `write_seconds` run
while the client does not read (`unsent_bytes.BoundedWriting`), and after the connection was closed with bytes unsent.

A connection that is closed before its client has sent everything lingers: it sends its end, and reads on for
`LINGER_SECONDS`. Otherwise the kernel would reset it, and the client could not read the answer (RFC 9112 section 9.6).
TLS has no end of one direction, so such a connection closes at once.

uvicorn's interface: it calls the class with ``config``, ``server_state``, ``app_state`` and ``_loop``, calls `shutdown`
on the members of ``server_state.connections``, waits for those and for ``server_state.tasks``, and counts
``total_requests``.

Source: RFC 9110 sections 7.8 (upgrade), 10.1.1 (Expect) and 15.5.9 (408), RFC 6585 section 5 (431), RFC 9112 section 9.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from funcmcp._adapters.asgi.application import ClientDisconnectedError
from funcmcp._adapters.http1.cycle import BUSY, Cycle, allows_keep_alive, location_of
from funcmcp._adapters.http1.parser import (
    MAX_FIELDS,
    SLICE_BYTES,
    HeaderTooLargeError,
    InvalidRequestError,
    WebSocketUpgrade,
)
from funcmcp._adapters.http1.plain_requests import PlainRequests
from funcmcp._adapters.http1.responses import FULL, INVALID, TOO_LATE, TOO_MUCH, header_too_large
from funcmcp._adapters.http1.states import TIMED, Ending, RequestState, ResponseState, State
from funcmcp._adapters.http1.unsent_bytes import BoundedWriting, ask_from_first_byte
from funcmcp._transports.http.messages import RequestHeader

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from funcmcp._adapters.http1.direct_path import DirectPath
    from funcmcp._adapters.http1.parser import Parser

HIGH_WATER_BYTES = 65_536
"""Bytes that wait, for their turn or for being read, before reading pauses."""

LINGER_SECONDS = 2.0
"""How long a connection that is closed reads on."""

LAST_REQUEST_SECONDS = 0.5
"""How long a connection waits for its first request when the server stops."""

_NOT_DIRECT = (b"expect", b"transfer-encoding", b"upgrade")
"""Fields of requests that go through ASGI."""


# A lookup in an enumeration takes longer than one in the module, and the states are compared in each request.
_RECEIVING, _HELD, _REFUSING, _IDLE, _LINGERING, _ENDED = State
_COMPLETE = RequestState.COMPLETE
_WAITING, _RUNNING, _, _RESPONSE_ENDED, _, _ = ResponseState
_OPEN, _LAST, _HURRIED = Ending


class HTTPConnection(BoundedWriting, asyncio.Protocol):
    """An HTTP connection; see the module's docstring.

    Attributes:
        limits: `message_seconds`, `write_seconds` and `header_bytes` are used.
        parser_class: The parser.
        direct: What answers requests without ASGI; None if all of them go through ASGI.
        closes_soon: Whether connections close after their next response: the server ends, and another one serves.
        cycle: The request that is answered, or was answered last.
        state: What the connection waits for.
        ending: How the connection ends.
        waiting: Requests behind the one that is answered, the oldest first.
        unparsed: The data behind them.
        parser: Parses the requests.
        tcp: The transport below that of TLS; None without TLS.
        writable: Is set when the client has read what was sent; None if it has.
    """

    parser_class: ClassVar[type[Parser]]
    direct: ClassVar[DirectPath | None]
    closes_soon: ClassVar[bool] = False

    def __init__(
        self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        if not config.loaded:
            config.load()
        self.config = config
        self.app = config.loaded_app
        self.app_state = app_state
        self.root_path: str = config.root_path
        self.loop = _loop or asyncio.get_running_loop()
        self.server_state = server_state
        self.tasks: set[asyncio.Task[Any] | None] = server_state.tasks
        self.logger = logging.getLogger("uvicorn.error")
        self.access_log = _access_log.hasHandlers()
        self._limit: int | None = config.limit_concurrency
        self._resets_context: bool = getattr(config, "reset_contextvars", False)  # of newer versions
        self.accepts_websocket = config.ws_protocol_class is not None
        self._target = self._direct_target()
        self._plain = None if self._target is None else PlainRequests(self._target)
        self.parser: Parser = self.parser_class(self, self.limits)
        self.transport: Any = None
        self.tcp: Any = None
        self.server: tuple[str, int | None] | None = None
        self.client: tuple[str, int] | None = None
        self.scheme = "http"
        self.cycle: Cycle | None = None
        self.state = _RECEIVING
        self._incoming: Cycle | None = None  # the request whose end has not arrived
        self.ending = _LAST if self.closes_soon else _OPEN
        self.waiting: list[Cycle] = []
        self.unparsed = bytearray()
        self._unfinished_bytes = 0  # those that `open_connections` counts
        self._is_reading_paused = False
        self.writable: asyncio.Event | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = 0.0
        self._deadline = 0.0  # the end of the state's time
        self._default_headers: object = None
        self._default_lines = b""

    def _direct_target(self) -> bytes | None:
        """Return the request target of requests that go without ASGI; None if uvicorn has to do more for requests."""
        direct, config = self.direct, self.config
        if (
            direct is None
            or config.loaded_app != direct.app
            or config.root_path
            or config.limit_concurrency is not None
        ):
            return None
        return direct.target

    @property
    def timers(self) -> int:
        """The number of timers that run."""
        return sum(timer is not None for timer in (self._timer, self._write_timer))

    @property
    def has_ended(self) -> bool:
        """Whether the connection was closed, or is a WebSocket now."""
        state = self.state
        return state is _LINGERING or state is _ENDED or bool(self.transport.is_closing())

    # What asyncio calls

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        self.transport = transport
        ask_from_first_byte(transport)  # any unsent byte holds the data that it is a part of
        self.server_state.connections.add(self)
        self.server = _address(transport, "sockname")
        client = _address(transport, "peername")
        self.client = client if client is None else (client[0], client[1] or 0)
        self.scheme = "https" if transport.get_extra_info("sslcontext") else "http"
        self._set_deadline(self.limits.message_seconds)
        if not self.open_connections.add(self):
            self.give_way()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the requests that nothing can be sent any more."""
        self.server_state.connections.discard(self)
        super().connection_lost(exc)
        self._let_write()
        for cycle in (self.cycle, self._incoming, *self.waiting):
            if cycle is not None:
                cycle.lose()
        if exc is None:
            self.transport.close()
        self._finish()

    def _finish(self) -> None:
        """Drop what refers back to the connection, so that its memory is free without a garbage collection."""
        self.state = _ENDED
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._stop_parsing()
        self.cycle = self._incoming = self.tcp = None
        self.waiting = []

    def _stop_parsing(self) -> None:
        """Drop what has arrived and was not parsed."""
        self.parser.close()
        self.unparsed = bytearray()
        if self._unfinished_bytes:
            self._unfinished_bytes = 0
            self.open_connections.hold(self, 0)

    def eof_received(self) -> None:
        """Close the connection, as uvicorn does."""

    def data_received(self, data: bytes) -> None:
        """Parse data, or store it while a request is answered."""
        if self.state is _LINGERING or self.state is _REFUSING:
            return
        if self.state is _HELD or self.unparsed:
            self.unparsed += data
            self._count_unfinished()
            self.update_reading()
        elif self._plain is None or not self._begin_plain(data):
            self._parse(data)

    def pause_writing(self) -> None:
        """Pause responses: the client does not read as fast as the server writes."""
        if self.writable is None:
            self.writable = asyncio.Event()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Resume responses. An idle connection is idle from now on: the client has the last response."""
        super().resume_writing()
        self._let_write()
        if self.state is _IDLE:
            self._set_deadline(self.config.timeout_keep_alive)

    def _let_write(self) -> None:
        if self.writable is not None:
            self.writable.set()
            self.writable = None

    # What uvicorn calls

    def shutdown(self) -> None:
        """Close the connection after the responses to the requests that have begun.

        A request that has begun to arrive, and the first one of a connection, may still come.
        """
        last = self.waiting[-1] if self.waiting else self._incoming or self.cycle
        if last is not None and not last.has_ended:
            last.keep_alive = False
        elif self.state is _RECEIVING:
            self.ending = _HURRIED
            self._set_deadline(LAST_REQUEST_SECONDS)
        else:
            self._close_transport()

    def close_soon(self) -> None:
        """Close the connection after the next response that says so; see `closes_soon`."""
        if self.ending is _OPEN:
            self.ending = _LAST
        last = self.waiting[-1] if self.waiting else self._incoming or self.cycle
        if last is not None and not last.has_started:
            last.keep_alive = False

    # What `open_connections.OpenConnections` calls

    @property
    def waiting_rank(self) -> tuple[int, float] | None:
        """The sort key of a connection that waits for its client: idle ones first, by their deadlines."""
        if self.state not in TIMED or self._write_timer is not None or self.transport.is_closing():
            return None
        return int(self.state is _RECEIVING), self._deadline

    def give_way(self) -> None:
        """Close: another connection gets the place. Nothing is unsent, and TLS would wait for the client's end."""
        self.state = _ENDED
        self.transport.abort()

    def refuse_unfinished(self, *, is_caller_limit: bool) -> None:
        """Refuse what has not been answered: such data of its address, or of all, takes up too much memory."""
        if not self.has_ended:
            self._refuse(TOO_MUCH if is_caller_limit else FULL)

    # What the parser calls

    def on_request(self, method: str, target: bytes, version: str, pairs: list[tuple[bytes, bytes]]) -> None:
        """Begin a request."""
        header = RequestHeader(pairs)
        keep_alive = self.ending is _OPEN and allows_keep_alive(version, header)
        cycle = Cycle(self, method, target, version, header, keep_alive=keep_alive)
        if target != self._target:
            cycle.location = location_of(target)
        self._incoming = cycle
        if self.state is _HELD:
            self.waiting.append(cycle)
        else:
            self.cycle = cycle

    def on_body(self, part: bytes) -> None:
        """Add to the body of the request."""
        if self._incoming is not None:
            self._incoming.add(part)

    def on_end(self) -> None:
        """Answer the request, unless another one is answered."""
        cycle, self._incoming = self._incoming, None
        if cycle is None:
            return
        cycle.complete()
        if cycle is not self.cycle:
            return
        if cycle.response_state is _RESPONSE_ENDED:
            self._become_idle()
            return
        self.state = _HELD
        if cycle.response_state is _WAITING:
            self._begin(cycle)

    # What a cycle calls

    @property
    def default_lines(self) -> bytes:
        """The fields that uvicorn adds to each response, as lines."""
        default_headers = self.server_state.default_headers
        if default_headers is not self._default_headers:  # uvicorn makes a new list each second, for the date
            self._default_headers = default_headers
            self._default_lines = b"".join(b"%b: %b\r\n" % field for field in default_headers)
        return self._default_lines

    def is_direct(self, cycle: Cycle) -> bool:
        """Return whether a request is answered without ASGI."""
        if cycle.target != self._target or cycle.method != "POST" or cycle.version != "1.1":
            return False
        fields = cycle.header.fields
        return not any(name in fields for name in _NOT_DIRECT)

    async def drain(self, size: int) -> None:
        """Return when the client has read what was sent. Meanwhile *size* bytes of a response count as unsent."""
        self.waiting_bytes = size
        self.unsent.check(self)
        try:
            while self.writable is not None:
                await self.writable.wait()
        finally:
            self.waiting_bytes = 0

    async def wait_for_client(self, size: int) -> None:
        """Do what `drain` does; raise ClientDisconnectedError if it takes longer than `write_seconds`."""
        try:
            async with asyncio.timeout(self.limits.write_seconds):
                await self.drain(size)
        except TimeoutError:
            raise ClientDisconnectedError from None

    def log_access(self, cycle: Cycle, status: int) -> None:
        """Write the line of uvicorn's access log."""
        path, _, query = cycle.location or location_of(cycle.target)
        place = f"{quote(path)}?{query.decode('latin-1')}" if query else quote(path)
        address = f"{self.client[0]}:{self.client[1]}" if self.client else ""
        _access_log.info('%s - "%s %s HTTP/%s" %d', address, cycle.method, place, cycle.version, status)

    def forget_header(self) -> None:
        """Free the memory of the latest header."""
        if self._plain is not None:
            self._plain.forget()

    def on_response_end(self, cycle: Cycle) -> None:
        """Close the connection, or continue with what has arrived meanwhile."""
        self.server_state.total_requests += 1
        if not cycle.keep_alive:
            self.close()
        state = self.state
        if state is _LINGERING or state is _ENDED or self.transport.is_closing():
            return
        if self.waiting:
            self.cycle = following = self.waiting.pop(0)
            self._begin(following)
            if following.is_complete:
                return
            self._receive()
        elif cycle.is_complete:  # otherwise the rest of its body is still to come, and its time runs on
            if self.unparsed or not self.parser.is_between_requests:
                self._receive()
            else:
                self._become_idle()
        if self._is_reading_paused:
            self.update_reading()
        if self.unparsed:
            self._parse_stored()

    def close(self) -> None:
        """Close the connection. It lingers if the client has not sent everything."""
        transport = self.transport
        if transport.is_closing() or self.state is _LINGERING:
            return
        is_sending = self.unparsed or not self.parser.is_between_requests
        if not is_sending or not transport.can_write_eof():
            self._close_transport()
            return
        self.state = _LINGERING
        self._stop_parsing()
        transport.write_eof()
        self.update_reading()
        self._set_deadline(LINGER_SECONDS)
        self._expect_end()

    def update_reading(self) -> None:
        """Pause reading while too much waits, and resume it otherwise."""
        incoming = self._incoming
        waiting = len(self.unparsed) + (len(incoming.body) if incoming is not None else 0)
        pauses = waiting > HIGH_WATER_BYTES
        if pauses != self._is_reading_paused and not self.transport.is_closing():
            self._is_reading_paused = pauses
            if pauses:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    # Requests

    def _parse(self, data: bytes) -> None:
        """Parse data up to its end, or until a request has to wait for the response before it."""
        try:
            self._feed(data)
        except WebSocketUpgrade:
            self._upgrade()
        except InvalidRequestError as error:
            # Not the error itself: a handler that keeps records would keep the connection.
            self.logger.warning("Invalid HTTP request received from %s: %s", self.peer, str(error))
            self._refuse(INVALID)
        except HeaderTooLargeError as error:
            self._refuse_header(has_too_many_fields=error.has_too_many_fields)
        if self.has_ended:
            return
        incoming = self._incoming
        if incoming is not None and incoming is self.cycle and incoming.response_state is _WAITING:
            self._begin(incoming)
        if (self.unparsed or not self.parser.is_between_requests) and self.state in TIMED:
            self._receive()
        self._count_unfinished()
        if incoming is not None or self._is_reading_paused:
            self.update_reading()

    def _count_unfinished(self) -> None:
        """Count the memory of a header that has not ended, and of what was not parsed, unless it is small."""
        size = self.parser.unfinished_bytes + len(self.unparsed)
        if size <= SLICE_BYTES:
            size = 0
        if size or self._unfinished_bytes:
            self._unfinished_bytes = size
            self.open_connections.hold(self, size)

    def _begin_plain(self, data: bytes) -> bool:
        """Begin a request that needs no parser; return False if *data* is something else."""
        assert self._plain is not None  # noqa: S101 - the caller has checked it
        assert self._target is not None  # noqa: S101 - as above
        if not self.parser.is_between_requests or self.transport.is_closing():
            return False
        plain = self._plain.read(data)
        if plain is None:
            return False
        header, body = plain
        self.cycle = cycle = Cycle(self, "POST", self._target, "1.1", header, keep_alive=self.ending is _OPEN)
        cycle.body = body
        cycle.request_state = _COMPLETE
        cycle.response_state = _RUNNING
        self.state = _HELD
        self._start(cycle.run(self.direct))
        return True

    def _feed(self, data: bytes) -> None:
        if len(data) <= SLICE_BYTES:
            self.parser.feed(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), SLICE_BYTES):
            is_held = self.state is _HELD
            if is_held or start == self.parser.ROUND_BYTES:
                self.unparsed += view[start:]
                self.update_reading()
                if not is_held:
                    self.loop.call_soon(self._parse_on)
                return
            self.parser.feed(view[start : start + SLICE_BYTES])

    def _parse_on(self) -> None:
        """Continue to parse in another round of the event loop."""
        if self.unparsed and self.state is not _HELD and not self.has_ended:
            self._parse_stored()

    def _parse_stored(self) -> None:
        data, self.unparsed = bytes(self.unparsed), bytearray()
        self._parse(data)

    def _begin(self, cycle: Cycle) -> None:
        """Start the task that answers a request."""
        cycle.response_state = _RUNNING
        if self._limit is not None and self._is_busy(self._limit):
            self._start(cycle.refuse(BUSY))
        else:
            self._start(cycle.run(self.direct if self.is_direct(cycle) else None))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task, for which uvicorn waits before the server ends. The cycle removes it from the tasks."""
        if self._resets_context:
            task = self.loop.create_task(work, context=contextvars.Context())
        else:
            task = self.loop.create_task(work)
        self.tasks.add(task)

    def _is_busy(self, limit: int) -> bool:
        """Return whether uvicorn's `limit_concurrency` is exceeded."""
        is_busy = len(self.server_state.connections) >= limit or len(self.tasks) >= limit
        if is_busy:
            self.logger.warning("Exceeded concurrency limit.")
        return is_busy

    def _upgrade(self) -> None:
        """Open a WebSocket. It can't begin before earlier requests are answered, so the connection then closes."""
        cycle = self._incoming
        assert cycle is not None  # noqa: S101 - the parser has just reported it
        self._incoming = None
        if self.state is _HELD:
            self._close_after_responses(cycle)
            return
        self.stop_expecting_reading()
        self.server_state.connections.discard(self)
        lines = [b"%b %b HTTP/1.1" % (cycle.method.encode("ascii"), cycle.target)]
        lines += [b"%b: %b" % field for field in cycle.header.pairs]
        protocol = self.config.ws_protocol_class(
            config=self.config, server_state=self.server_state, app_state=self.app_state
        )
        protocol.connection_made(self.transport)
        protocol.data_received(b"\r\n".join([*lines, b"", b""]))
        self.transport.set_protocol(protocol)
        if isinstance(protocol, BoundedWriting):
            self.open_connections.replace(self, protocol)
        else:
            self.open_connections.remove(self)
        self._finish()

    def _refuse(self, answer: bytes) -> None:
        """Refuse what can't be parsed, after the responses to the complete requests before it."""
        incoming, self._incoming = self._incoming, None
        if self.state is _HELD:
            self._close_after_responses(incoming)
        else:
            self._end(answer)

    def _refuse_header(self, *, has_too_many_fields: bool) -> None:
        """Refuse a header that is too large, and log the limit that it exceeds."""
        if has_too_many_fields:
            limit, option = f"{MAX_FIELDS} fields", "fixed"
        else:
            limit, option = f"{self.limits.header_bytes} bytes", "Limits.header_bytes"
        self.open_connections.refused_headers.write(
            "A request of %s is refused with 431: its header has more than %s (%s).", self.peer, limit, option
        )
        self._refuse(header_too_large(limit))

    def _close_after_responses(self, incomplete: Cycle | None) -> None:
        """Drop a request, and all that comes behind it; close the connection after the responses that are due."""
        if self.waiting and self.waiting[-1] is incomplete:
            self.waiting.pop()
        self.state = _REFUSING
        self._stop_parsing()
        last = self.waiting[-1] if self.waiting else self.cycle
        assert last is not None  # noqa: S101 - the connection is held because of it
        last.keep_alive = False

    def _end(self, answer: bytes) -> None:
        """Close the connection; send an answer before, unless a response was sent, in part or as a whole, already."""
        cycle = self.cycle
        if cycle is None or (cycle.has_ended and cycle.is_complete) or not (cycle.is_complete or cycle.has_started):
            self.write(answer)
        if cycle is not None:
            cycle.lose()
        self.close()

    # States and timers

    def _receive(self) -> None:
        """Wait for the rest of a request. Its time does not begin again if it runs already."""
        if self.state is not _RECEIVING:
            self.state = _RECEIVING
            self._set_deadline(self.limits.message_seconds)

    def _become_idle(self) -> None:
        """Wait for the next request."""
        self.state = _IDLE
        self._set_deadline(self.config.timeout_keep_alive)

    def _set_deadline(self, seconds: float) -> None:
        """Begin the time of a state."""
        self._deadline = deadline = self.loop.time() + seconds
        if self._timer is not None:
            if self._fires_at <= deadline:
                return
            self._timer.cancel()
        self._fires_at = deadline
        self._timer = self.loop.call_at(deadline, self._on_timer)

    def _on_timer(self) -> None:
        """End the state if its time is over; otherwise set the timer again, unless the state has no time."""
        self._timer = None
        if self.state not in TIMED or self.transport.is_closing():
            return
        if self.state is _IDLE and self._write_timer is not None:
            return  # until the client has read the last response
        remaining = self._deadline - self.loop.time()
        if remaining > 0:
            self._set_deadline(remaining)
        elif self.state is not _RECEIVING:
            self._close_transport()
        elif self.ending is not _HURRIED:
            self._incoming = None
            self._end(TOO_LATE)
        elif self._incoming is None:
            self.close()
        else:
            self.ending = _LAST
            self._set_deadline(self.limits.message_seconds)

    def _close_transport(self) -> None:
        """Close the connection without lingering.

        TLS then sends its "close_notify", and waits for that of the client, which may be idle for long. No party has to
        wait (RFC 8446 section 6.1). It is useful where the client still sends: as lingering, it prevents a reset.
        """
        is_refusing = self.state is _REFUSING
        self.state = _ENDED
        self.transport.close()
        self._expect_end()
        if self.tcp is None or self.transport.get_write_buffer_size():
            return
        if self.parser.is_between_requests and not self.unparsed and not is_refusing:
            self.tcp.close()

    def _expect_end(self) -> None:
        """Give the client `write_seconds` to read the unsent bytes of a closed connection."""
        if self.transport.get_write_buffer_size():
            self.expect_reading()


_access_log = logging.getLogger("uvicorn.access")


def _address(transport: Any, name: str) -> tuple[str, int | None] | None:
    """Return an address of a connection; None if it is unknown, or that of a Unix socket's client."""
    address = transport.get_extra_info(name)
    if isinstance(address, (tuple, list)) and len(address) >= 2:  # noqa: PLR2004 - host and port
        return str(address[0]), int(address[1])
    return (address, None) if isinstance(address, str) and name == "sockname" else None
