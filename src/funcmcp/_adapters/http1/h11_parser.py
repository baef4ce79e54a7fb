"""The parser on h11, with the bounds that h11 does not have.

How it works: h11 drops trailers, and bounds a header, a chunk's line and trailers by its `max_incomplete_event_size`.
It does not continue behind a request before it was shown the response, so each request has an `h11.Connection` of its
own, which begins with what the one before has not read. h11 takes long for a chunk or a field of a few bytes, so at
most `ROUND_BYTES` are parsed in one round of the event loop. Lines that wait for the end of their header, or trailers,
are bounded by `MAX_FIELDS`.

Source: h11 0.16, "State machines" and "Limits".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import h11

from funcmcp._adapters.http1.parser import (
    MAX_FIELDS,
    SLICE_BYTES,
    HeaderTooLargeError,
    InvalidRequestError,
    WebSocketUpgrade,
    asks_for_websocket,
)

if TYPE_CHECKING:
    from funcmcp._adapters.http1.parser import Receiver
    from funcmcp._server.limits import Limits


_EMPTY_LINES = b"\r\n"
"""Bytes before a request that are ignored (RFC 9112 section 2.2)."""


class H11Parser:
    """See the module's docstring and `parser.Parser`."""

    ROUND_BYTES: ClassVar[int] = 8 * SLICE_BYTES

    __slots__ = ("_limits", "_receiver", "connection", "is_between_requests", "unfinished_bytes")

    def __init__(self, receiver: Receiver, limits: Limits) -> None:
        self._receiver = receiver
        self._limits = limits
        self.connection = h11.Connection(h11.SERVER, limits.header_bytes)
        self.is_between_requests = True
        self.unfinished_bytes = 0

    def feed(self, data: bytes | memoryview) -> None:
        """Parse a slice."""
        self.is_between_requests = False
        text = bytes(data)
        if self.connection.their_state is h11.IDLE and not self.connection.trailing_data[0]:
            text = text.lstrip(_EMPTY_LINES)
            if not text:
                return
        self.connection.receive_data(text)
        try:
            self._report_events()
        except h11.RemoteProtocolError as error:
            error.with_traceback(None)  # a frame of h11 in it refers to the error, and others to the connection
            if len(self.connection.trailing_data[0]) > self._limits.header_bytes:
                raise HeaderTooLargeError from error
            reason, _, _ = str(error).partition(": b")  # h11 quotes the line of the client behind it
            raise InvalidRequestError(reason) from error
        waiting = self.connection.trailing_data[0]
        self.is_between_requests = self.connection.their_state is h11.IDLE and not waiting
        self.unfinished_bytes = len(waiting)
        if waiting.count(b"\n") > MAX_FIELDS:
            raise HeaderTooLargeError(has_too_many_fields=True)

    def close(self) -> None:
        """See `parser.Parser`."""
        self._receiver = self.connection = None  # type: ignore[assignment]  # nothing is parsed any more
        self.unfinished_bytes = 0

    def _report_events(self) -> None:
        """Report what h11 has parsed."""
        receiver = self._receiver
        while (event := self.connection.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Request):
                pairs = list(event.headers)
                receiver.on_request(
                    event.method.decode("ascii"), event.target, event.http_version.decode("ascii"), pairs
                )
                if receiver.accepts_websocket and asks_for_websocket(pairs):
                    raise WebSocketUpgrade
            elif isinstance(event, h11.Data):
                receiver.on_body(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                receiver.on_end()
                remaining, _ = self.connection.trailing_data
                self.connection = h11.Connection(h11.SERVER, self._limits.header_bytes)
                if remaining := remaining.lstrip(_EMPTY_LINES):
                    self.connection.receive_data(remaining)
