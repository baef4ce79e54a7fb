"""A time limit for sending a request, which uvicorn does not have, against clients that hold connections for nothing.

uvicorn closes a connection that is silent *between* requests. One that never sends its first byte, or sends a head or
a body a byte at a time, would stay for ever.

Source: RFC 9110 section 15.5.9 (408 Request Timeout).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    _Behind = asyncio.Protocol
else:
    _Behind = object  # which of uvicorn's protocols it is, is known only later

SECONDS = 30.0
"""In which a request has to be here, from its first byte to the last one of its body; the first one of a connection
from the moment when that is accepted."""

_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def with_deadline(protocol: type[asyncio.Protocol], seconds: float = SECONDS) -> type[asyncio.Protocol]:
    """Return one of uvicorn's HTTP protocols with a time limit for sending requests."""
    return type("Deadline" + protocol.__name__, (_Deadline, protocol), {"_seconds": seconds})


class _Deadline(_Behind):
    """Stands before a protocol of uvicorn, which has the request that came last in `cycle`."""

    _seconds: float
    _timer: asyncio.TimerHandle | None = None

    cycle: Any
    loop: asyncio.AbstractEventLoop
    transport: Any

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(self._seconds, self._expire)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; all of it is here, or the time for the rest runs on."""
        before = self.cycle
        owed = before is not None and before.more_body
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and not cycle.more_body and (owed or cycle is not before):
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(self._seconds, self._expire)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop()
        super().connection_lost(exc)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return  # the connection has ended, or is a WebSocket by now
        cycle = self.cycle
        waiting_for_head = cycle is None or (cycle.response_complete and not cycle.more_body)
        if not waiting_for_head and not cycle.more_body:
            return  # a response is under way; after it, uvicorn's own limit holds
        if waiting_for_head or not cycle.response_started:
            self.transport.write(_TOO_LATE)
        self.transport.close()
