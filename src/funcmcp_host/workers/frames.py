"""The frames that the host and a worker exchange over their socket.

A frame is a 32-bit length (big-endian), a header of that length (a JSON object), and raw parts. The header's member
``sizes`` lists the lengths of the parts; a frame without parts has no such member. Values travel as
``{"t": kind, "p": index}``, with their text or bytes in a part, or as ``{"t": kind, "v": value}``. The kinds are those
of the TypedData message of the Functions host: string, bytes, json, int, double, http and null.

The host sends ``invoke``, ``cancel`` and ``ping``. A worker sends ``ready`` or ``failed`` once, then ``begun``,
``done``, ``error``, ``log`` and ``pong``. The programs on the other side (python_main.py, node_main.cjs) import nothing
of funcmcp and have this format a second time.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

MAX_HEADER = 16 * 1024 * 1024
MAX_FRAME = 256 * 1024 * 1024
"""Bytes of a frame's parts together."""

_LENGTH = struct.Struct(">I")


class FrameError(ValueError):
    """The other side sent bytes that are not a frame."""


class Frame(NamedTuple):
    """One message between the host and a worker.

    Attributes:
        header: The JSON object.
        parts: The raw parts.
    """

    header: dict[str, Any]
    parts: list[bytes]


def encode_frame(header: dict[str, Any], parts: list[bytes]) -> bytes:
    """Return the bytes of a frame."""
    if parts:
        header = {**header, "sizes": [len(part) for part in parts]}
    text = json.dumps(header, separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *parts])


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = _LENGTH.size
        self._header: dict[str, Any] | None = None
        self._header_end = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the frames that are complete with these bytes.

        Raises:
            FrameError: The bytes are not a frame, or the frame is too large.
        """
        self._buffer += chunk
        frames = []
        start = 0
        while len(self._buffer) - start >= self._needed:
            if self._header_end == 0:
                self._header_end = self._needed = _LENGTH.size + self._header_length(start)
            elif self._header is None:
                self._header = _header_of(bytes(self._buffer[start + _LENGTH.size : start + self._header_end]))
                self._needed = self._header_end + _size_of_parts(self._header)
            if self._header is not None and len(self._buffer) - start >= self._needed:
                frames.append(Frame(self._header, self._parts(start)))
                start += self._needed
                self._needed, self._header, self._header_end = _LENGTH.size, None, 0
        if start:
            del self._buffer[:start]
        return frames

    def _header_length(self, start: int) -> int:
        length: int = _LENGTH.unpack_from(self._buffer, start)[0]
        if not 0 < length <= MAX_HEADER:
            raise FrameError(f"A header of {length} bytes is not possible.")
        return length

    def _parts(self, start: int) -> list[bytes]:
        parts = []
        position = start + self._header_end
        for size in (self._header or {}).get("sizes", ()):
            parts.append(bytes(self._buffer[position : position + size]))
            position += size
        return parts


def _header_of(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError("The header is not JSON.") from error
    if not isinstance(header, dict):
        raise FrameError("The header is not a JSON object.")
    return header


def _size_of_parts(header: dict[str, Any]) -> int:
    sizes = header.get("sizes", [])
    if not isinstance(sizes, list) or any(type(size) is not int or size < 0 for size in sizes):
        raise FrameError('"sizes" is not a list of lengths.')
    total = sum(sizes)
    if total > MAX_FRAME:
        raise FrameError(f"A frame of {total} bytes is larger than {MAX_FRAME}.")
    return total
