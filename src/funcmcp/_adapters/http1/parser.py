"""What a connection and its parser of HTTP/1 know of each other.

A connection feeds at most `SLICE_BYTES` at once. The parser calls the connection's `on_request`, `on_body` and `on_end`
meanwhile, and raises one of the errors of this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from funcmcp._server.limits import Limits

SLICE_BYTES = 2048
"""Bytes parsed at once. They bound the requests that wait on one connection, each of which has at least 16 bytes."""

MAX_FIELDS = 500
"""Fields of a header, or of trailers, that is not complete yet."""

FIELD_BYTES = 150
"""Bytes of memory of such a field, besides its text."""


class InvalidRequestError(Exception):
    """The data is not HTTP/1. The message is the reason, without text of the client, which may be a secret."""


class HeaderTooLargeError(Exception):
    """A header, trailers, or the framing of chunks, exceeds `Limits.header_bytes`, or `MAX_FIELDS`.

    Args:
        has_too_many_fields: Whether it exceeds `MAX_FIELDS`.
    """

    def __init__(self, *, has_too_many_fields: bool = False) -> None:
        super().__init__()
        self.has_too_many_fields = has_too_many_fields


class WebSocketUpgrade(Exception):
    """The header that was reported last asks for a WebSocket, and the connection accepts that."""


class Receiver(Protocol):
    """A connection, as its parser sees it.

    Attributes:
        accepts_websocket: Whether a request may open a WebSocket.
    """

    accepts_websocket: bool

    def on_request(self, method: str, target: bytes, version: str, pairs: list[tuple[bytes, bytes]]) -> None:
        """Begin a request; raise InvalidRequestError. The names of *pairs* are in lower case."""

    def on_body(self, part: bytes) -> None:
        """Take a part of the body."""

    def on_end(self) -> None:
        """End the request."""


class Parser(Protocol):
    """A parser of the requests of one connection.

    Attributes:
        ROUND_BYTES: Bytes that may be parsed in one round of the event loop.
        is_between_requests: Whether no byte of an incomplete request has been fed.
        unfinished_bytes: Bytes of memory of a header, of trailers, or of a chunk's line that have not ended.
    """

    ROUND_BYTES: ClassVar[int]
    is_between_requests: bool

    @property
    def unfinished_bytes(self) -> int:
        """See the class."""

    def __init__(self, receiver: Receiver, limits: Limits) -> None: ...

    def feed(self, data: bytes | memoryview) -> None:
        """Parse a slice; raise InvalidRequestError, HeaderTooLargeError or WebSocketUpgrade."""

    def close(self) -> None:
        """Drop what has not been reported, and all that refers back to the parser or its receiver."""


def asks_for_websocket(pairs: list[tuple[bytes, bytes]]) -> bool:
    """Return whether a header asks for a WebSocket (RFC 6455 section 4.1)."""
    upgrade = b""
    tokens: list[bytes] = []
    for name, value in pairs:
        if name == b"upgrade":
            upgrade = value.lower()
        elif name == b"connection":
            tokens += [token.strip().lower() for token in value.split(b",")]
    return upgrade == b"websocket" and b"upgrade" in tokens
