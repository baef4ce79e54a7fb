"""The unsent bytes of a server's connections, of HTTP and of WebSockets together.

How it works: a connection counts from the moment when its transport asks it to pause (`pause_writing`), which it does
for the first unsent byte, or when a response waits behind unsent bytes, until the client has read them, or it ends. It
counts with what it holds: a transport keeps data as a whole until its last byte is sent. When there are too many bytes,
the address with most of them loses the connection that has been counted for longest, until the remaining bytes fit. One
connection alone may exceed the limit, because a response may be larger.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from funcmcp._state.line_limit import LineLimit

if TYPE_CHECKING:
    import asyncio

    from funcmcp._adapters.http1.open_connections import OpenConnections
    from funcmcp._server.limits import Limits

    _Base = asyncio.Protocol
else:
    _Base = object  # the protocol comes behind it in the order of bases


class UnsentBytes:
    """Counts the unsent bytes of connections.

    Args:
        limit: The unsent bytes of all connections together.

    Attributes:
        cuts: Writes the lines about clients that are cut off.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.cuts = LineLimit(logging.INFO)
        self._addresses: dict[BoundedWriting, str] = {}  # in the order in which they began to count

    def check(self, connection: BoundedWriting) -> None:
        """Count the bytes of a connection. If there are too many, abort this one or others."""
        if connection not in self._addresses:
            peer = connection.transport.get_extra_info("peername")
            self._addresses[connection] = peer[0] if peer else ""
        sizes = {counted: counted.unsent_bytes for counted in self._addresses}
        total = sum(sizes.values())
        while total > self._limit and len(sizes) > 1:
            by_address: Counter[str] = Counter()
            for counted, size in sizes.items():
                by_address[self._addresses[counted]] += size
            [(address, _)] = by_address.most_common(1)
            oldest = next(counted for counted in sizes if self._addresses[counted] == address)
            total -= sizes.pop(oldest)
            self.remove(oldest)
            oldest.cut("the unsent bytes of all clients exceed %s (Limits.unsent_bytes)", self._limit)

    def remove(self, connection: BoundedWriting) -> None:
        """Stop counting the bytes of a connection."""
        self._addresses.pop(connection, None)


class BoundedWriting(_Base):
    """Aborts a connection whose client does not read what is sent to it, and counts its unsent bytes.

    Attributes:
        limits: The limits of the server, of which `write_seconds` is used.
        unsent: The unsent bytes of all connections of the server.
        open_connections: All connections of the server.
        waiting_rank: See `open_connections.OpenConnection`; a WebSocket is never closed for another connection.
        waiting_bytes: Bytes of responses that wait until the client has read those before them.
        held_bytes: Bytes of what was written last and is not sent as a whole, or was not when it was written.
    """

    limits: ClassVar[Limits]
    unsent: ClassVar[UnsentBytes]
    open_connections: ClassVar[OpenConnections]
    waiting_bytes = 0
    held_bytes = 0
    _write_timer: asyncio.TimerHandle | None = None

    loop: asyncio.AbstractEventLoop
    transport: Any

    @property
    def unsent_bytes(self) -> int:
        """The bytes that this connection holds until its client reads them."""
        size: int = self.transport.get_write_buffer_size()
        return max(size, self.held_bytes) + self.waiting_bytes

    def write(self, data: bytes) -> None:
        """Write data to the transport."""
        self.held_bytes = len(data) if self._write_timer is None else self.held_bytes + len(data)
        self.transport.write(data)

    def pause_writing(self) -> None:
        """Start the timer: the client does not read as fast as the server writes."""
        super().pause_writing()
        self.expect_reading()
        self.unsent.check(self)

    def resume_writing(self) -> None:
        """Stop the timer."""
        self.stop_expecting_reading()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer and counting."""
        self.stop_expecting_reading()
        self.open_connections.remove(self)
        super().connection_lost(exc)

    @property
    def waiting_rank(self) -> tuple[int, float] | None:
        """See the class."""
        return None

    def give_way(self) -> None:
        """Close: another connection gets the place."""
        self.transport.abort()

    def refuse_unfinished(self, *, is_caller_limit: bool) -> None:
        """Refuse what has not been answered. A WebSocket counts no such data."""

    def expect_reading(self) -> None:
        """Give the client `write_seconds` from now to read the unsent bytes."""
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.limits.write_seconds, self._cut_reader)

    def _cut_reader(self) -> None:
        """Abort the connection: its client has not read in time."""
        self.cut("it has not read the response for %s s (Limits.write_seconds)", self.limits.write_seconds)

    def cut(self, reason: str, limit: float) -> None:
        """Abort the connection, and log why."""
        self.unsent.cuts.write(f"The client at %s is cut off: {reason}.", self.peer, limit)
        self.transport.abort()

    @property
    def peer(self) -> str:
        """The address of the client, for the log."""
        name = self.transport.get_extra_info("peername")
        return name[0] if name else "an unknown address"

    def stop_expecting_reading(self) -> None:
        """Stop the timer, and stop counting: the client has read everything, or the connection ends."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        self.unsent.remove(self)


def ask_from_first_byte(transport: Any) -> None:
    """Make a transport ask to pause for the first unsent byte, and to resume when all are sent.

    With a limit of 0, a transport with TLS would also ask to pause when nothing is unsent, and not to resume.
    """
    has_tls = transport.get_extra_info("sslcontext") is not None
    transport.set_write_buffer_limits(high=int(has_tls), low=0)
