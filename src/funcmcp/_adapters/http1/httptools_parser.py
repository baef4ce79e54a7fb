"""The parser on httptools, with the bounds and checks that httptools does not have.

How it works: httptools calls `on_message_begin`, `on_url`, `on_header` (for each field), `on_headers_complete`,
`on_body` (for each part), `on_header` again (for each field of trailers) and `on_message_complete`.

- *Trailers are dropped* (RFC 9110 section 6.5.1: a field that was not expected there must not be merged into the
  header). `on_headers_complete` passes the list of fields on and begins another one.
- *Everything but the body is bounded*: request line, header, chunk sizes, chunk extensions and trailers. At most
  `Limits.header_bytes` may come without a byte of body or the end of the header, and at most `MAX_FIELDS` fields.
- *An upgrade to anything but a WebSocket is ignored* (RFC 9110 section 7.8). httptools takes everything behind such a
  header for another protocol, and with it the request's body, which would then be parsed as the next request, with
  header fields that a proxy in front has never checked. So the header is parsed again without its Upgrade field.

Source: llhttp 9 and httptools 0.9 (`cb_on_headers_complete` skips the body where `upgrade` is set).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar

import httptools

from funcmcp._adapters.http1.parser import (
    FIELD_BYTES,
    MAX_FIELDS,
    HeaderTooLargeError,
    InvalidRequestError,
    WebSocketUpgrade,
    asks_for_websocket,
)

if TYPE_CHECKING:
    from funcmcp._adapters.http1.parser import Receiver
    from funcmcp._server.limits import Limits


class HttptoolsParser:
    """See the module's docstring and `parser.Parser`."""

    ROUND_BYTES: ClassVar[int] = sys.maxsize

    __slots__ = (
        "_has_progress",
        "_limits",
        "_parser",
        "_receiver",
        "_upgrade",
        "_url",
        "_without_progress",
        "is_between_requests",
        "pairs",
    )  # fmt: skip

    def __init__(self, receiver: Receiver, limits: Limits) -> None:
        self._receiver = receiver
        self._limits = limits
        self._url = b""
        self.pairs: list[tuple[bytes, bytes]] = []
        self._upgrade: list[tuple[bytes, bytes]] | None = None  # a header that asks for one
        self._has_progress = False  # whether this slice had the end of a header or of a request, or a byte of a body
        self._without_progress = 0  # bytes of the slices since then
        self.is_between_requests = True
        self._parser = self._new_parser()

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        # Requests behind one with "Connection: close" were sent in vain. They must not cost that one its response.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    @property
    def unfinished_bytes(self) -> int:
        """See `parser.Parser`."""
        return self._without_progress + FIELD_BYTES * len(self.pairs)

    def feed(self, data: bytes | memoryview) -> None:
        """Parse a slice."""
        self.is_between_requests = self._has_progress = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._continue_behind_upgrade(bytes(data[upgrade.args[0] :]))
            return
        except httptools.HttpParserError as error:
            raise InvalidRequestError(str(error)) from error
        if self._has_progress:
            self._without_progress = 0
            if self.is_between_requests:
                return
        else:
            self._without_progress += len(data)
        if self._without_progress > self._limits.header_bytes:
            raise HeaderTooLargeError
        if len(self.pairs) > MAX_FIELDS:
            raise HeaderTooLargeError(has_too_many_fields=True)

    def close(self) -> None:
        """See `parser.Parser`: httptools refers to the methods of its receiver."""
        self._parser = self._receiver = None  # type: ignore[assignment]  # nothing is parsed any more
        self.pairs = []
        self._without_progress = 0

    def _continue_behind_upgrade(self, remaining: bytes) -> None:
        """Report a header that asks for a WebSocket; parse one that asks for another protocol without its Upgrade."""
        header, self._upgrade = self._upgrade or [], None
        method, version = self._parser.get_method(), self._parser.get_http_version()
        if self._receiver.accepts_websocket and asks_for_websocket(header):
            self._receiver.on_request(method.decode("ascii"), self._url, version, header)
            raise WebSocketUpgrade
        if method == b"CONNECT":
            raise InvalidRequestError("CONNECT is not supported")
        lines = [b"%b %b HTTP/%b" % (method, self._url, version.encode("ascii"))]
        lines += [b"%b: %b" % field for field in header if field[0] != b"upgrade"]
        self._parser = self._new_parser()
        self.feed(b"\r\n".join([*lines, b"", b""]))
        if remaining:
            self.feed(remaining)

    def on_message_begin(self) -> None:
        """Begin a request, whose first bytes may be in one slice with the end of the request before."""
        self.is_between_requests = False
        self._url = b""
        self.pairs = []

    def on_url(self, url: bytes) -> None:
        """Add to the request target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field of the header, or of trailers."""
        self.pairs.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Report the request; fields that come later are trailers."""
        parser, pairs = self._parser, self.pairs
        self._has_progress, self.is_between_requests, self.pairs = True, False, []
        if parser.should_upgrade():
            self._upgrade = pairs  # httptools raises HttpParserUpgrade behind the header
        else:
            self._receiver.on_request(parser.get_method().decode("ascii"), self._url, parser.get_http_version(), pairs)

    def on_body(self, part: bytes) -> None:
        """Report a part of the body."""
        self._has_progress = True
        self._receiver.on_body(part)

    def on_message_complete(self) -> None:
        """Report the end of the request."""
        if self._upgrade is None:
            self._has_progress = self.is_between_requests = True
            self.pairs = []
            self._receiver.on_end()
