"""uvicorn's protocol on httptools, with the bounds and checks that httptools does not have.

How it works: httptools calls `on_message_begin`, `on_url`, `on_header` (for each field), `on_headers_complete`,
`on_body` (for each part), `on_header` again (for each trailer field) and `on_message_complete`. It can't be paused, so
data is fed to it in slices and each slice is followed by `_check_size`.

- *Trailers are dropped* (RFC 9110 section 6.5.1: a field that was not expected there must not be merged into the
  header). uvicorn appends every field to `self.headers`, which is also the list in the request's scope. So
  `on_headers_complete` assigns another list to `self.headers`, and later fields never reach the scope.
- *Everything but the body is bounded*: request line, header, chunk sizes, chunk extensions and trailers. At most
  `Limits.header_bytes` may come without a byte of body or the end of the header, and at most `MAX_FIELDS` fields.
- *An upgrade to anything but a WebSocket is ignored* (RFC 9110 section 7.8). httptools takes everything behind such a
  header for another protocol, and with it the request's body; uvicorn would parse that body as the next request, with
  header fields that a proxy in front has never checked. So the header is parsed again without its Upgrade field.

Source: llhttp 9 and httptools 0.9 (`cb_on_headers_complete` skips the body where `upgrade` is set).
"""

from __future__ import annotations

from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from funcmcp._adapters.asgi.application import SEPARATES_TRAILERS
from funcmcp._adapters.uvicorn.bounded_connection import MAX_FIELDS, SLICE_BYTES, BoundedConnection


class Pipeline(list[Any]):
    """The requests of a connection that wait for their turn, the newest first, as uvicorn's deque has them.

    It is almost always empty. An empty deque takes 760 bytes, an empty list 64.
    """

    __slots__ = ()

    def appendleft(self, request: Any) -> None:
        """Add the newest request."""
        self.insert(0, request)

    def popleft(self) -> Any:
        """Remove the newest request, and return it."""
        return self.pop(0)


class HttpToolsServerProtocol(BoundedConnection, HttpToolsProtocol):
    """An HTTP connection; see the module's docstring."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.headers = []
        self.pipeline = Pipeline()  # type: ignore[assignment]  # it has what uvicorn uses of a deque
        self._complete = True  # whether the last byte fed was the end of a request
        self._progress = False  # whether a slice had the end of a header or of a request, or a byte of a body
        self._without_progress = 0  # bytes of the slices since then
        self._upgrade_ignored = False
        self._answering: Any = None  # the request whose response is under way; `cycle` is the one that came last

    def connection_lost(self, exc: Exception | None) -> None:
        """Send the application a disconnect message. uvicorn sends it only to the request that came last."""
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def parse(self, data: bytes) -> None:
        """Parse data up to its end, or until a request has to wait for its turn."""
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        self._complete = False
        if len(data) <= SLICE_BYTES:
            self._feed(data)
        else:
            self._feed_slices(memoryview(data))
        if self.pipeline and not self.held and not self.transport.is_closing():
            self.hold()
        if self._complete or self.held or self._ended():
            if self._request_timer is not None:
                self.request_complete()
        else:
            self.expect_request()

    def on_headers_complete(self) -> None:
        """Start the application; fields that come later are trailers."""
        self._progress, self._complete = True, False
        if self.parser.should_upgrade():
            self._upgrade_ignored = not self._should_upgrade()
            if not self._upgrade_ignored:
                HttpToolsProtocol.on_headers_complete(self)
            return
        self._upgrade_ignored = False
        self.scope["extensions"] = SEPARATES_TRAILERS
        HttpToolsProtocol.on_headers_complete(self)  # cheaper than super(), for each request
        self.headers = []
        if not self.pipeline:
            self._answering = self.cycle

    def on_body(self, body: bytes) -> None:
        """Add to the body."""
        self._progress = True
        HttpToolsProtocol.on_body(self, body)

    def on_message_complete(self) -> None:
        """End a request."""
        if self._upgrade_ignored:
            return
        self._progress = self._complete = True
        HttpToolsProtocol.on_message_complete(self)
        if self.cycle is not None:
            self.cycle.more_body = False  # uvicorn leaves it where the response was complete before the body

    def on_response_complete(self) -> None:
        """Start the next request, and continue to parse once none waits."""
        if self.pipeline:
            self._answering = self.pipeline[-1][0]
        HttpToolsProtocol.on_response_complete(self)
        if self.transport.is_closing():
            self.expect_end()
        elif self.held and not self.pipeline:
            self.go_on()

    def _ended(self) -> bool:
        """Return whether the connection was closed, or is a WebSocket now."""
        return self.transport.is_closing() or self.transport.get_protocol() is not self

    def _feed_slices(self, data: memoryview) -> None:
        for start in range(0, len(data), SLICE_BYTES):
            if self.held or self._ended():
                return
            if self.pipeline:
                self.hold(bytes(data[start:]))
                return
            self._feed(data[start : start + SLICE_BYTES])

    def _feed(self, data: bytes | memoryview) -> None:
        """Parse one slice."""
        self._progress = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._switch(bytes(data[upgrade.args[0] :]))
        except httptools.HttpParserError:
            self._refuse()
        else:
            if self._progress and self._complete:
                self._without_progress = 0
            else:
                self._check_size(len(data))

    def _switch(self, remaining: bytes) -> None:
        """Open a WebSocket, or continue without an upgrade, after a header that requests one."""
        if self._upgrade_ignored:
            if self.parser.get_method() == b"CONNECT":
                self._refuse()
                return
            header = self._header_without_upgrade()
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            self._feed(header)
            if remaining and not self.transport.is_closing():
                self._feed(remaining)
        elif self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False  # a WebSocket can't begin before the earlier request is answered
            self.hold()
        else:
            self.handle_websocket_upgrade()

    def _header_without_upgrade(self) -> bytes:
        """Return the header that has just been parsed without its Upgrade fields."""
        method, version = self.parser.get_method(), self.parser.get_http_version().encode("ascii")
        lines = [b"%b %b HTTP/%b" % (method, self.url, version)]
        lines += [b"%b: %b" % field for field in self.headers if field[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def _refuse(self) -> None:
        """Refuse data that is not HTTP."""
        self.logger.warning("Invalid HTTP request received.")
        if not self._close_after_responses():
            self.refuse_invalid()

    def _close_after_responses(self) -> bool:
        """Close the connection after the responses to complete requests; return False if none is due.

        A request that waits for its turn and is not complete is dropped.
        """
        if self.pipeline and self.cycle.more_body:
            self.pipeline.popleft()  # uvicorn adds the newest request on the left
            self.cycle = self.pipeline[0][0] if self.pipeline else self._answering
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.response_complete:
            return False
        cycle.keep_alive = False
        self.hold()
        return True

    def _check_size(self, size: int) -> None:
        if self._progress:
            self._without_progress = 0
        else:
            self._without_progress += size
        too_large = self._without_progress > self.limits.header_bytes or len(self.headers) > MAX_FIELDS
        if too_large and not self._close_after_responses():
            self.refuse_large_header()
