"""A request header that a client repeats on its connection.

How it works: most clients send the same header with each request, except for Content-Length. A header that was parsed
once is compared with the bytes of the next request, and only the digits of Content-Length may differ. Such a request
needs no parser: it would find the same fields again. Anything that is not exactly alike goes to the parser.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Pairs: TypeAlias = list[tuple[bytes, bytes]]
Fields: TypeAlias = dict[bytes, bytes]

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
        pairs: The fields, as the parser found them.
        fields: The fields by name.
    """

    __slots__ = ("_after", "_before", "_digits", "_fields", "_pairs")

    def __init__(self, data: bytes, length: tuple[int, int], end: int, pairs: Pairs, fields: Fields) -> None:
        start, stop = length
        self._before = data[:start]
        self._digits = data[start:stop]
        self._after = data[stop:end]
        self._pairs = pairs
        self._fields = fields

    def match(self, data: bytes) -> tuple[bytes, Pairs, Fields] | None:
        """Return the body and the fields of a request if *data* is exactly one with the same header, or else None."""
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
        if digits == self._digits:
            return data[end:], self._pairs, self._fields
        pairs = [(name, digits) if name == _CONTENT_LENGTH else (name, value) for name, value in self._pairs]
        return data[end:], pairs, {**self._fields, _CONTENT_LENGTH: digits}


def repeated_header(data: bytes, body: bytes, pairs: Pairs, fields: Fields) -> RepeatedHeader | None:
    """Return the header of a request that was parsed; None if it can't be compared with later ones.

    Args:
        data: The bytes with which the request came. They begin with a request.
        body: The body of this request.
        pairs: The fields, as the parser found them.
        fields: The fields by name.
    """
    end = data.find(b"\r\n\r\n") + 4
    if end > _MAX_BYTES or end + len(body) != len(data):
        return None  # there is more than this request, or its lines end in an unusual way
    lengths = list(_LENGTH_LINE.finditer(data, 0, end))
    if len(lengths) != 1 or fields.get(_CONTENT_LENGTH) != lengths[0][1]:
        return None
    return RepeatedHeader(data, lengths[0].span(1), end, pairs, fields)
