"""Requests that are read without a parser, beside what the parser reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from funcmcp._adapters.http1.h11_parser import H11Parser
from funcmcp._adapters.http1.httptools_parser import HttptoolsParser
from funcmcp._adapters.http1.parser import HeaderTooLargeError, InvalidRequestError
from funcmcp._adapters.http1.plain_requests import PlainRequests
from funcmcp._server.limits import Limits
from funcmcp._transports.http.messages import fields_of
from tests.adapters.http1.test_parser import Recorder

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import RequestHeader

pytestmark = pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP.")

TRACE = b"traceparent: 00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"


def post(body: bytes, *fields: bytes, length: bytes | None = None) -> bytes:
    lines = [b"POST /mcp HTTP/1.1", b"Host: here", b"Content-Length: %b" % (length or b"%d" % len(body)), *fields]
    return b"\r\n".join([*lines, b"", body])


def read(requests: PlainRequests, data: bytes) -> tuple[RequestHeader, bytes]:
    result = requests.read(data)
    assert result is not None
    return result


def test_a_plain_request_is_read() -> None:
    header, body = read(PlainRequests(b"/mcp"), post(b"{}", b"X-Name:1", b"Connection: keep-alive"))
    assert body == b"{}"
    assert header.pairs == [
        (b"host", b"here"),
        (b"content-length", b"2"),
        (b"x-name", b"1"),
        (b"connection", b"keep-alive"),
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        post(b"{}")[:-1],
        post(b"{}") + b" ",
        post(b"{}").replace(b"POST", b"GET"),
        post(b"{}").replace(b"/mcp", b"/mcp?a"),
        post(b"{}").replace(b"/mcp", b"/other"),
        post(b"{}").replace(b"1.1", b"1.0"),
        post(b"{}").replace(b"\r\nHost", b"\nHost"),
        post(b"{}", b"Transfer-Encoding: chunked"),
        post(b"{}", b"Connection: close"),
        post(b"{}", b"Connection: upgrade", b"Upgrade: h2c"),
        post(b"{}", b"Expect: 100-continue"),
        post(b"{}", b"Content-Length: 2"),
        post(b"{}", length=b"+2"),
        post(b"{}", length=b"2, 2"),
        post(b"{}").replace(b"Host", b"X-Host"),
        post(b"{}", b"x-twice: 1", b"X-Twice: 2"),
        post(b"{}", b"x-folded: a\r\n b"),
        post(b"{}", b"x-space : a"),
        post(b"{}", b"x-end: a "),
        post(b"{}", b"x-empty:"),
        post(b"{}", b"x-null: \x00"),
        post(b"{}", b"no colon"),
        post(b"{}", b"x-long: " + b"a" * 2048),
        b"POST /mcp HTTP/1.1\r\nHost: here\r\n\r\n",
    ],
)
def test_everything_else_is_left_to_the_parser(data: bytes) -> None:
    requests = PlainRequests(b"/mcp")
    assert requests.read(data) is None
    read(requests, post(b"1"))
    assert requests.read(data) is None


def checked(*fields: bytes) -> tuple[PlainRequests, RequestHeader]:
    """Return the reader of a connection whose first header has passed its checks."""
    requests = PlainRequests(b"/mcp")
    header, _ = read(requests, post(b"11", *fields))
    header.checks, header.checked, header.credentials_digest = "checks", "checked", b"digest"
    header.checked_fields = frozenset({b"host", b"origin"})
    return requests, header


def test_a_repeated_header_is_the_same_object() -> None:
    requests, header = checked(TRACE)
    assert read(requests, post(b"22", TRACE)) == (header, b"22")
    requests.forget()
    assert read(requests, post(b"22", TRACE))[0] is not header


@pytest.mark.parametrize("trace", [TRACE, TRACE.replace(b"aa", b"cc"), TRACE.replace(b"t", b"T", 1)])
def test_a_header_with_other_unchecked_fields_shares_the_outcome_of_its_checks(trace: bytes) -> None:
    requests, header = checked(TRACE)
    other, body = read(requests, post(b"33", trace))
    assert (other.checks, other.checked, other.credentials_digest) == ("checks", "checked", b"digest")
    assert other.fields[b"traceparent"] == trace.split(b": ")[1]
    assert other.pairs == [*header.pairs[:2], (b"traceparent", trace.split(b": ")[1])]
    assert body == b"33"


@pytest.mark.parametrize(
    "data",
    [
        post(b"333", TRACE, b"x: 1", length=b"03"),
        post(b"3" * 10, TRACE),
        post(b"33", TRACE + b"0"),
        post(b"33", b"X-" + TRACE[2:]),
        post(b"33", TRACE, b"x-api-key: b"),
        post(b"33"),
        post(b"33", TRACE).replace(b"here", b"evil"),
    ],
)
def test_a_header_that_differs_in_anything_else_is_checked_again(data: bytes) -> None:
    requests, _ = checked(TRACE)
    other, _ = read(requests, data)
    assert other.checks is None
    assert other.credentials_digest is None


@pytest.mark.parametrize("field", [b"host: there", b"Origin: b", b"Authorization: b"])
def test_a_field_on_which_the_outcome_depends_is_checked_again(field: bytes) -> None:
    name, _, value = field.partition(b": ")
    requests, _ = checked(b"%b: %b" % (name, value.replace(b"b", b"a"))) if name != b"host" else checked()
    data = post(b"33").replace(b"here", b"hera") if name == b"host" else post(b"33", field)
    other, _ = read(requests, data)
    assert other.checks is None
    assert other.credentials_digest is None


def test_without_a_declaration_the_outcome_depends_on_all_fields() -> None:
    requests, header = checked(TRACE)
    header.checked_fields = None
    assert read(requests, post(b"33", TRACE.replace(b"aa", b"cc")))[0].checks is None


def traced_often() -> PlainRequests:
    """Return the reader of a connection whose headers have passed their checks and differ in their `traceparent`."""
    requests, header = checked(TRACE, b"x: 1")
    for other in (b"cc", b"dd", b"ee"):
        trace = TRACE.replace(b"aa", other)
        changed, body = read(requests, post(b"33", trace, b"x: 1"))
        assert (changed.checks, changed.fields[b"traceparent"]) == ("checks", trace.split(b": ")[1])
        assert (changed.pairs[-1], body) == ((b"x", b"1"), b"33")
    assert header.fields[b"traceparent"] == TRACE.split(b": ")[1]
    return requests


@pytest.mark.parametrize(
    ("old", "new", "is_checked"),
    [
        (b"x: 1", b"x: 2", True),
        (b"here", b"hera", False),
        (b"x: 1", b"y: 1", False),
        (b"x: 1", b"x: 1\r\nz: 1", False),
    ],
)
def test_other_changes_than_the_usual_one_are_seen(old: bytes, new: bytes, is_checked: bool) -> None:
    header, _ = read(traced_often(), post(b"33", TRACE, b"x: 1").replace(old, new))
    assert header.fields == fields_of(
        read(PlainRequests(b"/mcp"), post(b"33", TRACE, b"x: 1").replace(old, new))[0].pairs
    )
    assert (header.checks is not None) == is_checked


@pytest.mark.parametrize(
    ("old", "new"), [(b"-01", b"- 1"), (b"-01", b"-\x001"), (b"-01", b"-0\xff"), (b"/1.1", b"/1.0")]
)
def test_a_value_in_the_place_of_the_usual_change_must_be_plain(old: bytes, new: bytes) -> None:
    requests, data = traced_often(), post(b"33", TRACE, b"x: 1").replace(old, new)
    result = requests.read(data)
    assert result is None or result[0].checks is None


def test_a_field_about_the_connection_is_read_again() -> None:
    requests, _ = checked(b"Connection: keep-alive")
    assert requests.read(post(b"33", b"Connection: close,abcd")) is None


def test_a_request_line_that_ends_like_the_last_field_is_no_change_of_that_field() -> None:
    requests, _ = checked(b"traceparent: 1")
    assert requests.read(post(b"33", b"traceparent: 1").replace(b"HTTP/1.1", b"HTTP/1.0")) is None


FIELDS = st.sampled_from(
    [
        TRACE,
        TRACE.replace(b"aa", b"cc"),
        b"Connection: keep-alive",
        b"Connection: close",
        b"Connection: close,abcd",  # as long as keep-alive
        b"Transfer-Encoding: chunked",
        b"content-length: 02",
        b"a: b",
        b"A:c",
        b"a:  c",
        b"a: \xff",
        b"a: b\tc",
        b" folded",
    ]
)
CHANGES = st.sampled_from([b"", b"", b"", b" ", b"\t", b"\r", b"\n", b"\r\n", b":", b"\x00", b"\xff", b"0", b"X", b"z"])


@st.composite
def requests_of_a_connection(draw: st.DrawFn) -> list[bytes]:
    """Return requests with similar headers, some of which have a small change."""
    requests = []
    for fields in draw(st.lists(st.lists(FIELDS, max_size=3), min_size=1, max_size=4)):
        data = post(draw(st.sampled_from([b"{}", b"", b"\r\n\r\n{}", b"x" * 10])), *fields)
        position, change = draw(st.integers(0, len(data) - 1)), draw(CHANGES)
        requests.append(data[:position] + change + data[position + draw(st.integers(0, 1)) :] if change else data)
    return requests


@given(requests_of_a_connection(), st.booleans())
@example([post(b"{}", b"a: bcdefgh"), post(b"{}", b"a: b", b"c: d")], True)
@example([post(b"{}", TRACE), *(post(b"{}", TRACE.replace(b"aa", other)) for other in (b"bb", b"cc", b"dd"))], True)
@example([post(b"{}", b"Connection: keep-alive"), post(b"{}", b"Connection: close,abcd")], True)
@example([post(b"{}"), post(b"{}").replace(b": 2", b": 3"), post(b"{}").replace(b": 2", b": x")], True)
@settings(max_examples=500, deadline=None)
def test_what_is_read_without_a_parser_is_what_the_parsers_read(requests: list[bytes], is_checked: bool) -> None:
    plain = PlainRequests(b"/mcp")
    for data in requests:
        result = plain.read(data)
        if result is None:
            continue
        header, body = result
        if is_checked:
            header.checked_fields = frozenset({b"host"})
        assert header.fields == fields_of(header.pairs)
        for parser_class in (HttptoolsParser, H11Parser):
            recorder = Recorder()
            parser = parser_class(recorder, Limits())
            try:
                parser.feed(data)
            except (InvalidRequestError, HeaderTooLargeError):
                pytest.fail(f"{parser_class.__name__} refuses {data!r}")
            assert parser.is_between_requests
            assert recorder.requests == [("POST", b"/mcp", "1.1", header.pairs, body)]
