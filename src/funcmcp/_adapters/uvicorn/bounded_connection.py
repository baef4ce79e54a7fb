"""Bounds for one connection, in time and in size, which uvicorn's HTTP protocols do not have.

How it works: `BoundedConnection` is the common base of `httptools_protocol.HttpToolsServerProtocol` and
`h11_protocol.H11ServerProtocol`, each of which also inherits from uvicorn's protocol for that parser. `http_protocol`
creates subclasses of them with the limits of a server.

- *Time of a request.* A timer runs from the moment when a connection is accepted, and later from the first byte of a
  request, until the request's last byte (trailers included). When it fires, the answer is 408 and the connection ends.
- *Time of an answer.* A timer runs while the transport has too many unsent bytes (`pause_writing`), and after the
  connection was closed with bytes unsent. When it fires, the connection is aborted: closing it would wait for the
  client to read.
- *Bytes of answers.* `UnsentBytes` bounds the unsent bytes of all connections together.
- *One request at a time.* The subclass parses received data in slices of `SLICE_BYTES`. When a request waits for the
  response before it, the subclass calls `hold` and stops parsing. Data is still read, so that the server notices
  when the client leaves, until `HIGH_WATER_LIMIT` bytes wait; then reading stays paused, even if the application asks
  for more of its own request. After the response the subclass calls `go_on`.

Source: RFC 9110 section 15.5.9 (408), RFC 6585 section 5 (431), RFC 9112 section 9.3.2 (pipelining).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._transports.http.status import refuse

if TYPE_CHECKING:
    from funcmcp._server.limits import Limits

    _Base = asyncio.Protocol
else:
    _Base = object  # uvicorn's protocol comes behind it in the order of bases

SLICE_BYTES = 2048
"""Bytes parsed at once. They bound the requests that wait on one connection, each of which has at least 18 bytes."""

MAX_FIELDS = 500
"""Fields of a header, or of trailers, that is not complete yet. Each takes about 150 bytes besides its text."""

_INVALID = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 30\r\n"
    b"connection: close\r\n\r\nInvalid HTTP request received."
)
_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class HeldFlow(FlowControl):
    """uvicorn's flow control, with reading that can stay paused, and with an event only while writing is paused.

    Args:
        transport: The transport of the connection.

    Attributes:
        held: Whether `resume_reading` has no effect.
    """

    held = False

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False
        self._writable: asyncio.Event | None = None

    async def drain(self) -> None:
        """Return when writing is not paused."""
        if self._writable is not None:
            await self._writable.wait()

    def pause_writing(self) -> None:
        """Pause writing."""
        if not self.write_paused:
            self.write_paused = True
            self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        """Resume writing."""
        if self._writable is not None:
            self.write_paused = False
            self._writable.set()
            self._writable = None

    def hold(self) -> None:
        """Pause reading until `release`."""
        self.held = True
        self.pause_reading()

    def release(self) -> None:
        """Resume reading."""
        self.held = False
        self.resume_reading()

    def resume_reading(self) -> None:
        """Resume reading unless it is held; a request's task calls this when it wants more of its body."""
        if self.read_paused and not self.held:
            super().resume_reading()


class UnsentBytes:
    """The unsent bytes of all connections of a server whose clients do not read as fast as it writes.

    How it works: a connection is counted from `pause_writing` to `resume_writing` or its end. When there are too many
    bytes, the address with most of them loses the connection that was paused first, until the remaining bytes fit. One
    connection alone may exceed the limit, because a response may be larger.

    Args:
        limit: The unsent bytes of all connections together.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._addresses: dict[Any, str] = {}  # by transport, in the order in which they paused

    def add(self, transport: Any) -> None:
        """Count the bytes of a transport. If there are too many, abort this one or others."""
        peer = transport.get_extra_info("peername")
        self._addresses[transport] = peer[0] if peer else ""
        sizes = {paused: paused.get_write_buffer_size() for paused in self._addresses}
        total = sum(sizes.values())
        while total > self._limit and len(sizes) > 1:
            by_address: Counter[str] = Counter()
            for paused, size in sizes.items():
                by_address[self._addresses[paused]] += size
            [(address, _)] = by_address.most_common(1)
            oldest = next(paused for paused in sizes if self._addresses[paused] == address)
            total -= sizes.pop(oldest)
            self.remove(oldest)
            oldest.abort()

    def remove(self, transport: Any) -> None:
        """Stop counting the bytes of a transport."""
        self._addresses.pop(transport, None)


class WriteDeadline(_Base):
    """Aborts a connection whose client does not read what is sent to it.

    Attributes:
        limits: The limits of the server, of which `write_seconds` is used.
        unsent: The unsent bytes of all connections of the server.
    """

    limits: ClassVar[Limits]
    unsent: ClassVar[UnsentBytes]
    _write_timer: asyncio.TimerHandle | None = None

    loop: asyncio.AbstractEventLoop
    transport: Any

    def pause_writing(self) -> None:
        """Start the timer: the client does not read as fast as the server writes."""
        super().pause_writing()
        self.expect_reading()
        self.unsent.add(self.transport)

    def resume_writing(self) -> None:
        """Stop the timer."""
        self._cancel_write_timer()
        self.unsent.remove(self.transport)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._cancel_write_timer()
        self.unsent.remove(self.transport)
        super().connection_lost(exc)

    def expect_reading(self) -> None:
        """Give the client `write_seconds` from now to read the unsent bytes."""
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def _cancel_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


class BoundedConnection(WriteDeadline):
    """The timers of an HTTP connection; see the module's docstring.

    Attributes:
        limits: `message_seconds`, `write_seconds` and `header_bytes` are used.
        flow: Replaced by a `HeldFlow`.
        held: Whether a request waits for the response before it, so that nothing is parsed.
        unparsed: The data that was received in the meantime.
    """

    flow: FlowControl
    cycle: Any
    _held_flow: HeldFlow
    held = False
    unparsed: bytearray
    _request_timer: asyncio.TimerHandle | None = None

    @property
    def timers(self) -> int:
        """The number of timers that run."""
        return sum(timer is not None for timer in (self._request_timer, self._write_timer))

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self.flow = self._held_flow = HeldFlow(transport)
        self.unparsed = bytearray()
        self.expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self.request_complete()
        self.unparsed = bytearray()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data, or store it while a request waits for the response before it."""
        if self.held:
            self.unparsed += data
            self._pause_if_full()
        else:
            self.parse(data)

    def parse(self, data: bytes) -> None:
        """Parse data up to its end, or until a request has to wait for the response before it."""
        raise NotImplementedError

    def hold(self, unparsed: bytes = b"") -> None:
        """Store *unparsed* and all further data until `go_on`. The time of the request does not run meanwhile."""
        self.held = True
        self.unparsed = bytearray(unparsed)
        self.request_complete()
        self._pause_if_full()

    def go_on(self) -> None:
        """Parse the stored data and continue to read."""
        data, self.unparsed, self.held = bytes(self.unparsed), bytearray(), False
        self._held_flow.release()
        if data:
            self.parse(data)

    def _pause_if_full(self) -> None:
        if len(self.unparsed) > HIGH_WATER_LIMIT:
            self._held_flow.hold()
        else:
            self.flow.resume_reading()  # uvicorn pauses it for each request that waits

    def handle_websocket_upgrade(self, *args: Any) -> None:
        """Hand the connection over to the WebSocket protocol, whose timer also covers the unsent bytes."""
        super().handle_websocket_upgrade(*args)  # type: ignore[misc]  # uvicorn's protocols have it
        self._cancel_write_timer()
        self.unsent.remove(self.transport)

    def on_response_complete(self) -> None:
        """Start the timer for the unsent bytes if the connection is closed."""
        super().on_response_complete()  # type: ignore[misc]  # uvicorn's protocols have it
        if self.transport.is_closing():
            self.expect_end()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, whether or not the client has read the last response."""
        super().timeout_keep_alive_handler()  # type: ignore[misc]  # uvicorn's protocols have it
        self.expect_end()

    def expect_request(self) -> None:
        """Give the client `message_seconds` from now, or from an earlier call, to send the rest of a request."""
        if self._request_timer is None:
            self._request_timer = self.loop.call_later(self.limits.message_seconds, self._request_expired)

    def request_complete(self) -> None:
        """Stop the timer of `expect_request`."""
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def refuse_large_header(self) -> None:
        """Answer 431 and end the connection."""
        self.end(_too_large(self.limits.header_bytes))

    def refuse_invalid(self) -> None:
        """Answer 400 to data that is not HTTP and end the connection."""
        self.end(_INVALID)

    def end(self, answer: bytes) -> None:
        """Close the connection; send an answer before, unless a response is under way or was sent already."""
        cycle = self.cycle
        if cycle is None:
            answerable = True
        elif cycle.more_body:
            answerable = not cycle.response_started
        else:
            answerable = cycle.response_complete
        if answerable:
            self.transport.write(answer)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # so that the application sends nothing after this answer
            cycle.message_event.set()
        self.transport.close()
        self.expect_end()

    def expect_end(self) -> None:
        """Give the client `write_seconds` to read the unsent bytes of a closed connection."""
        if self.transport.get_write_buffer_size():
            self.expect_reading()

    def _request_expired(self) -> None:
        self._request_timer = None
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return  # the connection has ended, or is a WebSocket now
        cycle = self.cycle
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            return  # a response is under way; after it, uvicorn's limit for idle connections holds
        self.end(_TOO_LATE)


def _too_large(limit: int) -> bytes:
    refusal = refuse(431, INVALID_REQUEST, f"The header may have {limit} bytes.")
    body = refusal.body if isinstance(refusal.body, bytes) else b""
    fields = [*refusal.headers, ("content-length", str(len(body))), ("connection", "close")]
    lines = b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in fields)
    return b"HTTP/1.1 431 Request Header Fields Too Large\r\n%b\r\n%b" % (lines, body)
