"""uvicorn's HTTP protocol, with bounds on how large a request's header may become, and how long it may take to come.

By the time an application sees a header it is in memory whole. uvicorn bounds it with h11, but not with httptools.

Source: RFC 6585 section 5 (431); RFC 9110 section 15.5.9 (408).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from funcmcp.protocol.errors import INVALID_REQUEST
from funcmcp.transports.http.status import refuse

if TYPE_CHECKING:
    from asyncio import TimerHandle, Transport

HEADER_SECONDS = 30.0
"""In which a header has to come, once a connection is open or its first byte is there."""

_REASONS = {408: b"Request Timeout", 431: b"Request Header Fields Too Large"}


class BoundedHeader(HttpToolsProtocol):
    """The protocol. A header that is too large or too slow is refused, and its connection ends.

    Attributes:
        header_bytes: that a header may have as it comes over the network.
    """

    header_bytes: int
    _timer: TimerHandle | None = None
    _size = 0
    _whole = True

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Begin to wait for a header."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._rest()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Note that a header has begun."""
        self._whole = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that a header has ended."""
        self._whole = True
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take what came, and look whether a header is still not whole."""
        super().data_received(data)
        if self._whole:
            if self._timer is not None or self._size:
                self._rest()
            return
        self._size += len(data)  # if the header began in the middle of it, that is a little too much
        if self._size > self.header_bytes:
            self._refuse(431, f"The header may have {self.header_bytes} bytes.")
        elif self._timer is None:
            self._wait()

    def _wait(self) -> None:
        words = f"The header has to come within {HEADER_SECONDS:g} seconds."
        self._timer = self.loop.call_later(HEADER_SECONDS, self._refuse, 408, words)

    def _rest(self) -> None:
        self._size = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, words: str) -> None:
        self._rest()
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:  # else the answer to the request before is on its way
            self.transport.write(_response(status, words))
        self.transport.close()


def bounded(header_bytes: int) -> type[BoundedHeader]:
    """Return the protocol with a bound."""
    return type("BoundedHeader", (BoundedHeader,), {"header_bytes": header_bytes})


def _response(status: int, words: str) -> bytes:
    refusal = refuse(status, INVALID_REQUEST, words)
    body = bytes(refusal.body) if isinstance(refusal.body, bytes) else b""
    fields = [*refusal.headers, ("content-length", str(len(body))), ("connection", "close")]
    lines = b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in fields)
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, _REASONS[status], lines, body)
