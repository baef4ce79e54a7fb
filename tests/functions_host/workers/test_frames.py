"""Frames: any split of the bytes gives the same frames, and bytes that are not a frame are an error."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from funcmcp_host.workers import frames
from funcmcp_host.workers.frames import Frame, FrameError, FrameReader, encode_frame

MESSAGES: list[tuple[dict[str, Any], list[bytes]]] = [
    ({"m": "ping"}, []),
    ({"m": "invoke", "id": 1, "text": "ä"}, [b"", b"abc", bytes(1000)]),
    ({"m": "done"}, [b"\x00\xff"]),
]
STREAM = b"".join(encode_frame(header, parts) for header, parts in MESSAGES)


def expected() -> list[Frame]:
    return [
        Frame({**header, "sizes": [len(part) for part in parts]} if parts else header, parts)
        for header, parts in MESSAGES
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000, len(STREAM)])
def test_the_split_of_the_bytes_does_not_matter(size: int) -> None:
    reader = FrameReader()
    found = [frame for start in range(0, len(STREAM), size) for frame in reader.feed(STREAM[start : start + size])]
    assert found == expected()


def test_an_incomplete_frame_is_not_returned() -> None:
    reader = FrameReader()
    assert reader.feed(STREAM[:-1]) == expected()[:-1]
    assert reader.feed(STREAM[-1:]) == expected()[-1:]


def raw(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n", "bytes is not possible"),
        (bytes(4), "A header of 0 bytes"),
        (raw(b"{"), "not JSON"),
        (raw(b"[" * 100_000), "not JSON"),
        (raw(b"\xff\xfe"), "not JSON"),
        (raw(b"[]"), "not a JSON object"),
        (raw(b'{"sizes": 3}'), "list of lengths"),
        (raw(b'{"sizes": [-1]}'), "list of lengths"),
        (raw(b'{"sizes": [true]}'), "list of lengths"),
        (raw(json.dumps({"sizes": [frames.MAX_FRAME, 1]}).encode()), "larger than"),
    ],
)
def test_bytes_that_are_not_a_frame_are_an_error(data: bytes, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        FrameReader().feed(data)
