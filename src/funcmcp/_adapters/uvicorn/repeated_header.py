"""A request header that a client repeats on its connection.

How it works: most clients send the same header with each request, except for Content-Length. A header that was parsed
once is compared with the bytes of the next request, and only the digits of Content-Length may differ. Such a request
needs no parser: it would find the same fields again. Anything that is not exactly alike goes to the parser.
"""

from __future__ import annotations

import re

from funcmcp._transports.http.messages import RequestHeader

_CONTENT_LENGTH = b"content-length"
_LENGTH_LINE = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)(?=\r\n)", re.IGNORECASE)
_MAX_BYTES = 2048
"""Bytes of a header that is remembered. It stays in memory as long as its connection is open."""

_MAX_DIGITS = 9


class RepeatedHeader:
    """The header of an earlier request.

    Args:
        data: A request, from its first byte to its last one.
        length: The range of the digits of Content-Length in it.
        end: The end of the header.
        header: The header, as the parser found it.
    """

    __slots__ = ("_after", "_before", "_digits", "_header")

    def __init__(self, data: bytes, length: tuple[int, int], end: int, header: RequestHeader) -> None:
        start, stop = length
        self._before = data[:start]
        self._digits = data[start:stop]
        self._after = data[stop:end]
        self._header = header

    def match(self, data: bytes) -> tuple[bytes, RequestHeader] | None:
        """Return the body and the header of a request if *data* is exactly one with the same header, or else None."""
        before, after = self._before, self._after
        if not data.startswith(before):
            return None
        start = len(before)
        stop = data.find(b"\r", start)
        digits = data[start:stop]
        end = stop + len(after)
        if not data.startswith(after, stop) or not digits.isdigit() or len(digits) > _MAX_DIGITS:
            return None
        if len(data) != end + int(digits):
            return None
        header = self._header
        if digits == self._digits:
            return data[end:], header
        pairs = [(name, digits) if name == _CONTENT_LENGTH else (name, value) for name, value in header.pairs]
        changed = RequestHeader(pairs, {**header.fields, _CONTENT_LENGTH: digits})
        changed.credentials_digest = header.credentials_digest  # only Content-Length differs
        if len(digits) == len(self._digits):  # the size of the header is the same, so it passes the same checks
            changed.checks, changed.checked = header.checks, header.checked
        return data[end:], changed


def repeated_header(data: bytes, body: bytes, header: RequestHeader) -> RepeatedHeader | None:
    """Return the header of a request that was parsed; None if it can't be compared with later ones.

    Args:
        data: The bytes with which the request came. They begin with a request.
        body: The body of this request.
        header: The header of this request, as the parser found it.
    """
    end = data.find(b"\r\n\r\n") + 4
    if end > _MAX_BYTES or end + len(body) != len(data):
        return None  # there is more than this request, or its lines end in an unusual way
    lengths = list(_LENGTH_LINE.finditer(data, 0, end))
    if len(lengths) != 1 or header.fields.get(_CONTENT_LENGTH) != lengths[0][1]:
        return None
    return RepeatedHeader(data, lengths[0].span(1), end, header)
