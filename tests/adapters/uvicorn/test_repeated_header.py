"""Headers that are compared with that of an earlier request."""

from __future__ import annotations

import pytest

from funcmcp._adapters.uvicorn.repeated_header import RepeatedHeader, repeated_header
from funcmcp._transports.http.messages import RequestHeader

BEFORE, AFTER = b"POST /mcp HTTP/1.1\r\nhost: a\r\nContent-Length: ", b"\r\naccept: b\r\n\r\n"
PAIRS = [(b"host", b"a"), (b"content-length", b"2"), (b"accept", b"b")]


def header(checked: str | None = None) -> RepeatedHeader:
    data = BEFORE + b"2" + AFTER + b"{}"
    first = RequestHeader(PAIRS)
    first.checked = checked
    made = repeated_header(data, b"{}", first)
    assert made is not None
    return made


@pytest.mark.parametrize("body", [b"{}", b"[]", b"", b"x" * 12, b"\r\n\r\n{}"])
def test_a_request_with_the_same_header_and_another_length_matches(body: bytes) -> None:
    digits = b"%d" % len(body)
    match = header().match(BEFORE + digits + AFTER + body)
    assert match is not None
    assert match[0] == body
    assert match[1].pairs == [(b"host", b"a"), (b"content-length", digits), (b"accept", b"b")]
    assert match[1].fields == {b"host": b"a", b"content-length": digits, b"accept": b"b"}


@pytest.mark.parametrize(("body", "checked"), [(b"{}", "passed"), (b"{ }", "passed"), (b"x" * 10, None)])
def test_a_header_of_the_same_size_need_not_be_checked_again(body: bytes, checked: str | None) -> None:
    match = header("passed").match(BEFORE + b"%d" % len(body) + AFTER + body)
    assert match is not None
    assert match[1].checked == checked


@pytest.mark.parametrize("body", [b"{}", b"{ }", b"x" * 10])
def test_the_digest_of_the_credentials_is_kept_for_a_header_that_repeats_them(body: bytes) -> None:
    data = BEFORE + b"2" + AFTER + b"{}"
    first = RequestHeader(PAIRS)
    repeated = repeated_header(data, b"{}", first)
    assert repeated is not None
    first.credentials_digest = b"digest"  # it is needed after the header was stored
    match = repeated.match(BEFORE + b"%d" % len(body) + AFTER + body)
    assert match is not None
    assert match[1].credentials_digest == b"digest"


@pytest.mark.parametrize(
    "data",
    [
        BEFORE + b"2" + AFTER + b"{",
        BEFORE + b"2" + AFTER + b"{}\r\n",
        BEFORE + b"2" + AFTER + b"{}" + BEFORE + b"2" + AFTER + b"{}",
        BEFORE + b"2" + AFTER[:-2] + b"x: y\r\n\r\n{}",
        BEFORE + b"2" + AFTER.replace(b"b", b"c") + b"{}",
        BEFORE.replace(b"a", b"b") + b"2" + AFTER + b"{}",
        BEFORE + b"2 " + AFTER + b"{}",
        BEFORE + b"+2" + AFTER + b"{}",
        BEFORE + b"-2" + AFTER + b"",
        BEFORE + b"" + AFTER + b"{}",
        BEFORE + b"\xb2" + AFTER + b"{}",
        BEFORE + b"0" * 9 + b"2" + AFTER + b"{}",
        BEFORE + b"2",
        BEFORE,
        b"",
    ],
)
def test_anything_else_does_not_match(data: bytes) -> None:
    assert header().match(data) is None


@pytest.mark.parametrize(
    ("data", "pairs"),
    [
        (BEFORE + b"2" + AFTER + b"{}\r\n", PAIRS),
        (b"\r\n" + BEFORE + b"2" + AFTER + b"{}" + b"x", PAIRS),
        (BEFORE + b"2" + AFTER.replace(b"\r\n\r\n", b"\r\n\n") + b"{}", PAIRS),
        (BEFORE + b"2" + AFTER + b"{}", [*PAIRS, (b"content-length", b"3")]),
        (BEFORE + b"2" + AFTER.replace(b"b", b"b" * 2048) + b"{}", PAIRS),
        (BEFORE.replace(b"host: a", b"Content-Length: 2") + b"2" + AFTER + b"{}", PAIRS),
        (BEFORE.replace(b"Content-Length", b"Content-Lengths") + b"2" + AFTER + b"{}", PAIRS),
    ],
    ids=["bytes behind", "bytes around", "line feeds", "two values", "too large", "two lines", "another name"],
)
def test_some_headers_are_not_remembered(data: bytes, pairs: list[tuple[bytes, bytes]]) -> None:
    assert repeated_header(data, b"{}", RequestHeader(pairs)) is None
