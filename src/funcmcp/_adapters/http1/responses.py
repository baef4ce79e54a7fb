"""How a response becomes bytes, through ASGI and without it.

Source: RFC 9112 sections 6 and 7 (framing), RFC 9110 sections 5.1 and 5.5 (names and values of fields).
"""

from __future__ import annotations

import re
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._transports.http.status import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

_INVALID_NAME = re.compile(rb'[\x00-\x1f\x7f()<>@,;:\[\]={} \t\\"]')
_INVALID_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

INVALID = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 30\r\n"
    b"connection: close\r\n\r\nInvalid HTTP request received."
)
TOO_MUCH = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
FULL = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def header_too_large(limit: str) -> bytes:
    """Return the refusal of a header that exceeds a limit, such as "500 fields"."""
    refusal = refuse(431, INVALID_REQUEST, f"The header may have {limit}.")
    body = refusal.body if isinstance(refusal.body, bytes) else b""
    fields = encode_text((*refusal.headers, ("content-length", str(len(body))), ("connection", "close")))
    return b"%b%b\r\n%b" % (STATUS_LINES[431], fields.lines, body)


class Fields(NamedTuple):
    """The fields of a response's header.

    Attributes:
        lines: Their lines.
        length: The value of Content-Length; None without it.
        chunked: Whether the author of the response says that the body is sent in chunks.
        closes: Whether the connection closes after the response.
    """

    lines: bytes
    length: int | None
    chunked: bool
    closes: bool


def encode(pairs: Iterable[tuple[bytes, bytes]]) -> Fields:
    """Return header fields as lines; raise RuntimeError if one of them can't be sent."""
    lines = bytearray()
    length, chunked, closes = None, False, False
    for name, value in pairs:
        if _INVALID_NAME.search(name) or not name:
            raise RuntimeError("Invalid HTTP header name.")
        if _INVALID_VALUE.search(value):
            raise RuntimeError("Invalid HTTP header value.")
        lower = name.lower()
        lines += b"%b: %b\r\n" % (lower, value)
        if lower == b"content-length" and length is None:
            length = int(value)
        elif lower == b"transfer-encoding":
            chunked = value.lower() == b"chunked"
        elif lower == b"connection":
            closes = closes or b"close" in [token.strip().lower() for token in value.split(b",")]
    return Fields(bytes(lines), None if chunked else length, chunked, closes)


@lru_cache(maxsize=256)
def encode_text(headers: tuple[tuple[str, str], ...]) -> Fields:
    """Return the header fields of an `HttpResponse` as lines; raise as `encode`, or UnicodeEncodeError."""
    return encode((name.encode("ascii"), value.encode("latin-1")) for name, value in headers)


def chunk(part: bytes) -> bytes:
    """Return a part of a body, which is not empty, as a chunk."""
    return b"%x\r\n%b\r\n" % (len(part), part)


def _status_line(status: int) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode("ascii")


STATUS_LINES = {status: _status_line(status) for status in range(100, 600)}
