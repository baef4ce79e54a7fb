"""A bound on the header of a request, which uvicorn has with h11, but not with httptools.

By the time an application sees a header it is in memory whole.

Source: RFC 6585 section 5 (431 Request Header Fields Too Large).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol.errors import INVALID_REQUEST
from funcmcp.transports.http.status import refuse

if TYPE_CHECKING:
    import asyncio

    _Behind = asyncio.Protocol
else:
    _Behind = object  # which of uvicorn's protocols it is, is known only later


def with_bound(protocol: type[asyncio.Protocol], header_bytes: int) -> type[asyncio.Protocol]:
    """Return one of uvicorn's HTTP protocols with a bound on the bytes of a header that is not whole yet."""
    return type("Bounded" + protocol.__name__, (_Bounded, protocol), {"_most": header_bytes})


class _Bounded(_Behind):
    """Stands before a protocol of uvicorn, which has the request that came last in `cycle`."""

    _most: int
    _size = 0

    cycle: Any
    transport: Any

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, and look how large its header has become."""
        before = self.cycle
        in_header = before is None or not before.more_body
        super().data_received(data)
        if not in_header or self.cycle is not before:
            self._size = 0
            return
        self._size += len(data)
        if self._size > self._most and not self.transport.is_closing() and self.transport.get_protocol() is self:
            if before is None or before.response_complete:  # else the answer to another request is on its way
                self.transport.write(_too_large(self._most))
            self.transport.close()


def _too_large(most: int) -> bytes:
    refusal = refuse(431, INVALID_REQUEST, f"The header may have {most} bytes.")
    body = refusal.body if isinstance(refusal.body, bytes) else b""
    fields = [*refusal.headers, ("content-length", str(len(body))), ("connection", "close")]
    lines = b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in fields)
    return b"HTTP/1.1 431 Request Header Fields Too Large\r\n%b\r\n%b" % (lines, body)
