"""uvicorn's protocol on h11, with the bounds that h11 does not have.

How it works: h11 drops trailers, bounds a header, a chunk's line and trailers by its `max_incomplete_event_size`, and
pauses by itself at the end of a request. But its buffer has no bound: data that comes while it is paused is appended.
So data is fed in slices, and none while a request is answered: `their_state` is then neither `IDLE` (between
requests, or in a header) nor `SEND_BODY` (in a body or trailers). h11 takes long for a chunk or a field of a few bytes.
So at most `ROUND_BYTES` are parsed at once, and what remains in the next round of the event loop. Lines that wait for
the end of their header, or trailers, are bounded by `MAX_FIELDS`.

Source: h11 0.16, "State machines" and "Limits".
"""

from __future__ import annotations

from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from funcmcp._adapters.asgi.application import SEPARATES_TRAILERS
from funcmcp._adapters.uvicorn.bounded_connection import MAX_FIELDS, SLICE_BYTES, BoundedConnection

ROUND_BYTES = 8 * SLICE_BYTES
"""Bytes parsed at once. A round of the event loop parses twice as many at most: the end of a read and the next read."""

_RECEIVING = {h11.IDLE, h11.SEND_BODY}


class H11ServerProtocol(BoundedConnection, H11Protocol):
    """An HTTP connection; see the module's docstring."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = h11.Connection(h11.SERVER, self.limits.header_bytes)

    def parse(self, data: bytes) -> None:
        """Parse data up to its end, or until a request has to wait for its turn."""
        self._unset_keepalive_if_required()
        for start in range(0, len(data), SLICE_BYTES):
            if self.conn.their_state not in _RECEIVING:
                self.hold(data[start:])
                return
            if start == ROUND_BYTES:
                self._postpone(data[start:])
                return
            self.conn.receive_data(data[start : start + SLICE_BYTES])
            self.handle_events()
            if self.conn.trailing_data[0].count(b"\n") > MAX_FIELDS and self.conn.their_state in _RECEIVING:
                self.refuse_large_header()
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                self.request_complete()
                return
        state = self.conn.their_state
        if state is h11.SEND_BODY or (state is h11.IDLE and self.conn.trailing_data[0]):
            self.expect_request()
        else:
            self.request_complete()

    def _postpone(self, unparsed: bytes) -> None:
        """Continue to parse in the next round of the event loop. The time of the request continues, too."""
        self.expect_request()
        self.held = True
        self.unparsed = bytearray(unparsed)
        self._pause_if_full()
        self.loop.call_soon(self._parse_on)

    def _parse_on(self) -> None:
        if self.held and not self.transport.is_closing():
            self.go_on()

    def handle_events(self) -> None:
        """Handle what h11 has parsed. It makes one new request at most, which has not reached the application yet."""
        super().handle_events()
        if self.scope is not None:
            self.scope["extensions"] = SEPARATES_TRAILERS

    def on_response_complete(self) -> None:
        """Start the next request if it was read already, and parse on once none waits."""
        super().on_response_complete()
        if self.held and self.conn.their_state in _RECEIVING and not self.transport.is_closing():
            self.go_on()

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is not HTTP, or too large. h11 can't send this in all states, such as after HEAD."""
        del msg
        if len(self.conn.trailing_data[0]) > self.limits.header_bytes:
            self.refuse_large_header()
        else:
            self.refuse_invalid()
