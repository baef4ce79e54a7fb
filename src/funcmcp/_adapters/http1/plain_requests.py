"""A second, quicker way to read a request: without a parser, if it came as a whole and is as plain as most are.

Of 62 us of CPU time for a call under ``funcmcp run`` it saves 17 if requests differ in their bodies only, and 16 if
each has another `traceparent`. How it works: the header is split into lines. Each line that looks like a field is read
once in a process and cached; most lines come again and again. A request is only read here if no rule about framing or
the connection could make a difference: a POST to the endpoint in HTTP/1.1 with a Host and a Content-Length, which is
the length of what follows the header, and no field twice. Everything else goes to the parser, which decides what it
means.

A header whose lines are those of the request before it, apart from fields on which the outcome of its checks does not
depend, shares that outcome (`RequestHeader`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

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

_VISIBLE = re.compile(rb"[\x21-\x7e]+")


class _ChangingValue(NamedTuple):
    """The value of a field that differed between the latest two headers, and on which no check of them depends.

    Attributes:
        before: The bytes of the header before it.
        start: Its place.
        end: The place behind it.
        behind: The bytes of the header behind it.
        number: The place of the field in `RequestHeader.pairs`.
    """

    before: bytes
    start: int
    end: int
    behind: bytes
    number: int


class PlainRequests:
    """Reads the plain requests of one connection.

    Args:
        target: The path of the endpoint.
    """

    __slots__ = ("_begin", "_changing", "_header", "_lines", "_text")

    def __init__(self, target: bytes) -> None:
        self._begin = b"POST %b HTTP/1.1" % target
        self._text = b""
        self._lines: list[bytes] = []
        self._header: RequestHeader | None = None
        self._changing: _ChangingValue | None = None

    def read(self, data: bytes) -> tuple[RequestHeader, bytes] | None:
        """Return the header and the body if *data* is exactly one plain request, or else None."""
        header = self._header
        if header is None or not data.startswith(self._text):
            header = self._with_changed_value(data) or self._with_changed_lines(data)
            if header is None:
                return None
        body = data[len(self._text) :]
        return (header, body) if len(body) == int(header.fields[_CONTENT_LENGTH]) else None

    def forget(self) -> None:
        """Free the memory of the latest header."""
        self._text, self._lines, self._header, self._changing = b"", [], None, None

    def _with_changed_value(self, data: bytes) -> RequestHeader | None:
        """Return the latest header with another value of the field that changed before, if no other bytes differ."""
        changing, header = self._changing, self._header
        if changing is None or header is None:
            return None
        before, start, end, behind, number = changing
        if not (data.startswith(before) and data.startswith(behind, end)):
            return None
        value = _VISIBLE.fullmatch(data, start, end)
        if value is None:
            return None
        pairs, fields = header.pairs.copy(), header.fields.copy()
        name = pairs[number][0]
        fields[name] = value[0]
        pairs[number] = (name, value[0])
        return header.changed(pairs, fields)

    def _with_changed_lines(self, data: bytes) -> RequestHeader | None:
        """Return the header at the beginning of *data* and keep it as the latest; None if a parser has to read it."""
        end = data.find(b"\r\n\r\n", 0, _MAX_BYTES) + 4
        if end < 4 or not data.startswith(self._begin):  # noqa: PLR2004 - not found
            return None
        lines = data[: end - 4].split(b"\r\n")
        header = self._read_header(lines)
        if header is not None:
            self._changing = self._changing_value(lines, header, data[:end])
            self._text, self._lines, self._header = data[:end], lines, header
        return header

    def _changing_value(self, lines: list[bytes], header: RequestHeader, text: bytes) -> _ChangingValue | None:
        """Return the value in *text* that differs from the latest header, if the rest is equal."""
        if len(text) != len(self._text) or len(lines) != len(self._lines):
            return None
        changed = [number for number, line in enumerate(lines) if line != self._lines[number]]
        if len(changed) != 1 or changed[0] == 0:  # the request line
            return None
        [line] = changed
        name, value = header.pairs[line - 1]
        if name == _CONTENT_LENGTH or _must_be_read(name, header):
            return None
        end = sum(map(len, lines[: line + 1])) + 2 * line
        start = end - len(value)
        return _ChangingValue(text[:start], start, end, text[end:], line - 1)

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
        """Return the latest header with other values of the same length; None if *lines* differ in anything else."""
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
            if (
                len(line) != len(before)
                or _must_be_read(name, header)
                or line[:start].lower() != before[:start].lower()
            ):
                return None
            match = _VISIBLE.fullmatch(line, start)
            if match is None:
                return None
            fields[name] = match[0]
            pairs[index - 1] = (name, match[0])
        return header.changed(pairs, fields)


def _must_be_read(name: bytes, header: RequestHeader) -> bool:
    """Return whether another value of a field can change more than the field."""
    return name in _FRAMING or header.depends_on(name)


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
