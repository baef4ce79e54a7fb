"""The bytes of responses."""

from __future__ import annotations

import pytest

from funcmcp._adapters.http1.responses import STATUS_LINES, Fields, chunk, encode, encode_text, header_too_large

pytestmark = pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP.")


def test_fields_become_lines() -> None:
    fields = encode([(b"X-Name", b"a b"), (b"content-length", b"3"), (b"connection", b"Keep-Alive, Close")])
    lines = b"x-name: a b\r\ncontent-length: 3\r\nconnection: Keep-Alive, Close\r\n"
    assert fields == Fields(lines, 3, chunked=False, closes=True)
    assert encode([(b"transfer-encoding", b"Chunked")]) == Fields(
        b"transfer-encoding: Chunked\r\n", None, chunked=True, closes=False
    )
    assert encode_text((("x-name", "\u00e9"),)).lines == b"x-name: \xe9\r\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [(b"a b", b""), (b"", b""), (b"a:", b""), (b"a\n", b""), (b"a", b"b\r\nc: d"), (b"a", b"\x00"), (b"a", b"\n")],
)
def test_what_would_be_another_field_or_response_is_refused(name: bytes, value: bytes) -> None:
    with pytest.raises(RuntimeError, match="Invalid HTTP header"):
        encode([(name, value)])


def test_a_field_outside_of_latin_1_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode_text((("x-name", "\u20ac"),))


def test_status_lines_have_the_names_that_exist() -> None:
    assert STATUS_LINES[404] == b"HTTP/1.1 404 Not Found\r\n"
    assert STATUS_LINES[299] == b"HTTP/1.1 299 \r\n"


def test_chunks_have_their_size_in_hexadecimal_digits() -> None:
    assert chunk(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"


def test_a_header_that_is_too_large_is_431_with_the_limit() -> None:
    head, _, body = header_too_large("1000 bytes").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"connection: close" in head.splitlines()
    assert b"content-length: %d" % len(body) in head.splitlines()
    assert b"1000 bytes" in body
