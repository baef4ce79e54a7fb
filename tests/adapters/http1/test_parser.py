"""What both parsers report of the same bytes, and what they refuse."""

from __future__ import annotations

from typing import TypeAlias

import pytest

from funcmcp._adapters.http1.cycle import location_of
from funcmcp._adapters.http1.h11_parser import H11Parser
from funcmcp._adapters.http1.httptools_parser import HttptoolsParser
from funcmcp._adapters.http1.parser import (
    MAX_FIELDS,
    HeaderTooLargeError,
    InvalidRequestError,
    Parser,
    WebSocketUpgrade,
    asks_for_websocket,
)
from funcmcp._server.limits import Limits

pytestmark = pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP.")

Pairs: TypeAlias = list[tuple[bytes, bytes]]

LIMITS = Limits(header_bytes=1000)
HEAD = b"POST /a?b HTTP/1.1\r\nHost: here\r\n"
WEBSOCKET = b"GET /ws HTTP/1.1\r\nHost: here\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\n"


class Recorder:
    """Records the complete requests of a connection: method, target, version, header and body."""

    def __init__(self, *, accepts_websocket: bool = False) -> None:
        self.accepts_websocket = accepts_websocket
        self.requests: list[tuple[str, bytes, str, Pairs, bytes]] = []
        self.begun: list[tuple[str, bytes, str, Pairs]] = []
        self._body = b""

    def on_request(self, method: str, target: bytes, version: str, pairs: Pairs) -> None:
        self.begun.append((method, target, version, pairs))
        self._body = b""

    def on_body(self, part: bytes) -> None:
        self._body += part

    def on_end(self) -> None:
        self.requests.append((*self.begun[-1], self._body))


@pytest.fixture(params=[HttptoolsParser, H11Parser])
def parser_class(request: pytest.FixtureRequest) -> type[Parser]:
    chosen: type[Parser] = request.param
    return chosen


def fed(parser_class: type[Parser], data: bytes, size: int) -> tuple[Recorder, Parser]:
    recorder = Recorder()
    parser = parser_class(recorder, LIMITS)
    for start in range(0, len(data), size):
        parser.feed(data[start : start + size])
    return recorder, parser


@pytest.mark.parametrize("size", [1, 7, 2048])
def test_requests_are_reported_in_their_order_without_trailers(parser_class: type[Parser], size: int) -> None:
    chunks = b"Transfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nx-trailer: 1\r\n\r\n"
    data = HEAD + chunks + HEAD + b"Content-Length: 2\r\n\r\n{}" + b"GET / HTTP/1.0\r\n\r\n"
    recorder, parser = fed(parser_class, data, size)
    assert recorder.requests == [
        ("POST", b"/a?b", "1.1", [(b"host", b"here"), (b"transfer-encoding", b"chunked")], b"abcde"),
        ("POST", b"/a?b", "1.1", [(b"host", b"here"), (b"content-length", b"2")], b"{}"),
        ("GET", b"/", "1.0", [], b""),
    ]
    assert parser.is_between_requests


@pytest.mark.parametrize("data", [HEAD[:5], HEAD, HEAD + b"Content-Length: 2\r\n\r\n{"])
def test_an_incomplete_request_is_not_the_end(parser_class: type[Parser], data: bytes) -> None:
    recorder, parser = fed(parser_class, data, 2048)
    assert not parser.is_between_requests
    assert recorder.requests == []


@pytest.mark.parametrize("data", [b"nonsense\r\n\r\n", HEAD + b"a b: c\r\n\r\n", HEAD + b"Content-Length: x\r\n\r\n"])
def test_what_is_not_http_is_refused(parser_class: type[Parser], data: bytes) -> None:
    with pytest.raises(InvalidRequestError):
        fed(parser_class, data, 2048)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: here\r\nAuthorization : Bearer secret\r\n\r\n",
        HEAD + b"Content-Length: secret\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nsecret\r\n",
        b"CONNECT secret:443 HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\n\r\n",
        b"secret\r\n\r\n",
    ],
)
def test_a_refusal_has_a_reason_without_text_of_the_client(parser_class: type[Parser], data: bytes) -> None:
    class Receiver(Recorder):
        def on_request(self, method: str, target: bytes, version: str, pairs: Pairs) -> None:
            location_of(target)
            super().on_request(method, target, version, pairs)

    with pytest.raises(InvalidRequestError) as caught:
        parser_class(Receiver(), LIMITS).feed(data)
    assert str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("size", [1, 7, 2048])
def test_empty_lines_before_a_request_are_ignored(parser_class: type[Parser], size: int) -> None:
    """RFC 9112 section 2.2. Some clients send one behind the body of a POST."""
    request = HEAD + b"Content-Length: 2\r\n\r\n{}"
    recorder, parser = fed(parser_class, b"\r\n" + request + b"\r\n\r\n" + request, size)
    assert [body for *_, body in recorder.requests] == [b"{}", b"{}"]
    assert parser.is_between_requests
    parser.feed(b"\r\n")
    assert not parser.is_between_requests


@pytest.mark.parametrize("data", [HEAD + b"a: b\r\n" * 400, HEAD + b"a" * 3000, HEAD + b"a:\r\n" * 2 * MAX_FIELDS])
def test_what_never_ends_is_refused(parser_class: type[Parser], data: bytes) -> None:
    with pytest.raises(HeaderTooLargeError):
        fed(parser_class, data, 512)


def test_a_websocket_is_reported_where_it_is_accepted(parser_class: type[Parser]) -> None:
    recorder = Recorder(accepts_websocket=True)
    with pytest.raises(WebSocketUpgrade):
        parser_class(recorder, LIMITS).feed(WEBSOCKET)
    assert [request[:2] for request in recorder.begun] == [("GET", b"/ws")]


def test_an_upgrade_is_ignored_where_it_is_not_accepted(parser_class: type[Parser]) -> None:
    recorder, parser = fed(parser_class, WEBSOCKET + HEAD + b"Content-Length: 2\r\n\r\n{}", 2048)
    assert [(method, body) for method, _, _, _, body in recorder.requests] == [("GET", b""), ("POST", b"{}")]
    assert parser.is_between_requests


@pytest.mark.parametrize(
    ("pairs", "asks"),
    [
        ([(b"upgrade", b"WebSocket"), (b"connection", b"keep-alive, Upgrade")], True),
        ([(b"upgrade", b"websocket"), (b"connection", b"keep-alive"), (b"connection", b"upgrade")], True),
        ([(b"upgrade", b"websocket")], False),
        ([(b"connection", b"upgrade")], False),
        ([(b"upgrade", b"h2c"), (b"connection", b"upgrade")], False),
    ],
)
def test_a_header_that_asks_for_a_websocket(pairs: Pairs, asks: bool) -> None:
    assert asks_for_websocket(pairs) is asks


def test_the_absolute_form_of_a_target_is_one_of_http() -> None:
    for target in (b"http://a/b%20c?d=e#f", b"HTTPS://user@a:1/b%20c?d=e"):
        assert location_of(target) == ("/b c", b"/b%20c", b"d=e")
    for target in (b"http://a?/b", b"http://a/?/b", b"/?/b", b"/?/b#c"):
        assert location_of(target) == ("/", b"/", b"/b")
    for target in (b"http://a", b"http://a#/b", b"/#/b"):
        assert location_of(target) == ("/", b"/", b"")
    for target in (b"ftp://a/b", b"x://a/b", b"a:1", b"://a/b", b"mailto:a"):
        with pytest.raises(InvalidRequestError):
            location_of(target)
