"""A second, quicker way to read a request: without a parser, if it came as a whole and is as plain as most are.

It saves 22 of 60 us of a call. How it works: the header is split into lines. Each line that looks like a field is
read once in a process and cached; most lines come again and again. A request is only read here if no rule about framing
or the connection could make a difference: a POST to the endpoint in HTTP/1.1 with a Host and a Content-Length, which is
the length of what follows the header, and no field twice. Everything else goes to the parser, which decides what it
means.

A header whose lines are those of the request before it, apart from fields that no check reads, shares the outcome of
the checks of that header (`RequestHeader`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from funcmcp._transports.http.messages import RequestHeader

_MAX_BYTES = 2048
"""Bytes of a header that is read here. The latest one stays in memory as long as its connection is open."""

_MAX_DIGITS = 9
_CONTENT_LENGTH = b"content-length"
_HOST = b"host"
_FIELD = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)"
)
_FRAMING = {b"connection", b"expect", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
_PLAIN_CONNECTION = b"keep-alive"
_UNCHECKED = {
    _CONTENT_LENGTH,
    b"baggage",
    b"request-id",
    b"traceparent",
    b"tracestate",
    b"x-correlation-id",
    b"x-request-id",
}
"""Fields that differ from request to request and that no check reads, apart from their length."""

_VISIBLE = re.compile(rb"[\x21-\x7e]+")


class PlainRequests:
    """Reads the plain requests of one connection.

    Args:
        target: The path of the endpoint.
    """

    __slots__ = ("_begin", "_header", "_lines", "_text")

    def __init__(self, target: bytes) -> None:
        self._begin = b"POST %b HTTP/1.1" % target
        self._text = b""
        self._lines: list[bytes] = []
        self._header: RequestHeader | None = None

    def read(self, data: bytes) -> tuple[RequestHeader, bytes] | None:
        """Return the header and the body if *data* is exactly one plain request, or else None."""
        header, end = self._header, len(self._text)
        if header is None or not data.startswith(self._text):
            end = data.find(b"\r\n\r\n", 0, _MAX_BYTES) + 4
            if end < 4 or not data.startswith(self._begin):  # noqa: PLR2004 - not found
                return None
            lines = data[: end - 4].split(b"\r\n")
            header = self._read_header(lines)
            if header is None:
                return None
            self._text, self._lines, self._header = data[:end], lines, header
        body = data[end:]
        return (header, body) if len(body) == int(header.fields[_CONTENT_LENGTH]) else None

    def forget(self) -> None:
        """Free the memory of the latest header."""
        self._text, self._lines, self._header = b"", [], None

    def _read_header(self, lines: list[bytes]) -> RequestHeader | None:
        """Return a header; None if a parser has to read it."""
        header = self._changed_header(lines)
        if header is None:
            if lines[0] != self._begin:
                return None
            pairs = [_field(line) for line in lines[1:]]
            if None in pairs:
                return None
            header = RequestHeader(pairs)  # type: ignore[arg-type]  # none of them is None
            if _HOST not in header.fields or len(header.fields) != len(pairs):
                return None
        length = header.fields.get(_CONTENT_LENGTH)
        return header if length is not None and length.isdigit() and len(length) <= _MAX_DIGITS else None

    def _changed_header(self, lines: list[bytes]) -> RequestHeader | None:
        """Return the latest header with other values of unchecked fields; None if *lines* differ in anything else."""
        latest, header = self._lines, self._header
        if header is None or len(lines) != len(latest) or lines[0] != latest[0]:
            return None
        pairs, fields = header.pairs.copy(), header.fields.copy()
        for index, line in enumerate(lines):
            before = latest[index]
            if line == before:
                continue
            name, value = pairs[index - 1]
            start = len(line) - len(value)
            if name not in _UNCHECKED or len(line) != len(before) or line[:start].lower() != before[:start].lower():
                return None
            match = _VISIBLE.fullmatch(line, start)
            if match is None:
                return None
            fields[name] = match[0]
            pairs[index - 1] = (name, match[0])
        result = RequestHeader(pairs, fields)
        result.checks, result.checked = header.checks, header.checked
        result.credentials_digest = header.credentials_digest
        return result


@lru_cache(maxsize=1024)
def _field(line: bytes) -> tuple[bytes, bytes] | None:
    """Return the name and the value of a plain field; None for a line that a parser has to read."""
    match = _FIELD.fullmatch(line)
    if match is None:
        return None
    name, value = match[1].lower(), match[2]
    if name in _FRAMING and not (name == b"connection" and value.lower() == _PLAIN_CONNECTION):
        return None
    return name, value
