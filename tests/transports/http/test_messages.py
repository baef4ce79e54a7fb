"""HTTP without a framework."""

from __future__ import annotations

import asyncio

import pytest

from funcmcp._transports.http.messages import HttpRequest, HttpResponse
from tests import rules


class Placed(HttpRequest):
    """A request whose platform knows more of its URL."""

    scheme = "http"
    mount = ""
    query_string = ""


def request(*pairs: tuple[str, str], query: str = "") -> Placed:
    lines = [(name.encode(), value.encode("latin-1")) for name, value in (("host", "example.com:8000"), *pairs)]
    made = Placed("POST", "/mcp", lines)
    made.query_string = query
    return made


def test_headers_of_the_same_name_are_joined() -> None:
    made = request(("x", "1"), ("y", "a"), ("x", "2"), ("cookie", "a=1"), ("cookie", "b=2"))
    assert (made.headers["x"], made.headers["y"]) == ("1, 2", "a")
    assert made.cookies == {"a": "1", "b": "2"}
    assert [name for name, _ in made.pairs].count(b"x") == 2


@rules.verifies(rules.THREAT_48)
def test_a_header_of_many_lines_is_joined_at_once() -> None:
    """Joining the lines one after the other takes quadratic time: most of a minute for a megabyte."""

    class Line(bytes):
        def __add__(self, _other: object) -> bytes:
            raise AssertionError("Each line copied all before it.")

    made = HttpRequest("POST", "/mcp", [(b"x", Line(b"1"))] * 3)
    assert made.fields[b"x"] == b"1, 1, 1"


@pytest.mark.parametrize(
    ("scheme", "mount", "query", "url"),
    [
        ("http", "", "", "http://example.com:8000/mcp"),
        ("https", "/api", "a=1&b=%20", "https://example.com:8000/api/mcp?a=1&b=%20"),
    ],
)
def test_the_url_is_absolute(scheme: str, mount: str, query: str, url: str) -> None:
    made = request(query=query)
    made.scheme, made.mount = scheme, mount
    assert made.url == url


def test_query_parameters_are_decoded_and_the_last_one_wins() -> None:
    assert request(query="a=1&b=two%20words&a=3&empty=").query_params == {"a": "3", "b": "two words", "empty": ""}
    assert request().query_params == {}


def test_cookies_are_read_by_name() -> None:
    assert request(("cookie", 'theme=dark; session="a b"')).cookies == {"theme": "dark", "session": "a b"}
    assert request().cookies == {}


@pytest.mark.parametrize("cookie", ["a[]=1; =", "\x00=1", "=;;", "name"])
def test_cookies_that_are_none_are_no_error(cookie: str) -> None:
    assert isinstance(request(("cookie", cookie)).cookies, dict)


def test_a_cookie_with_a_forbidden_name_gives_no_cookies() -> None:
    assert request(("cookie", "a:b,c=1; path@x=2")).cookies in ({}, {"a:b,c": "1", "path@x": "2"})


async def test_what_a_platform_cannot_tell_is_never_said() -> None:
    made = request()
    assert made.server is None
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(made.disconnected(), 0.01)
    assert await made.read(10) == b""


def test_a_response_has_an_empty_body_by_default() -> None:
    assert HttpResponse(202, ()).body == b""


def test_headers_are_found_by_names_in_any_case() -> None:
    headers = HttpRequest("GET", "/", [(b"x-tenant", b"blue")]).headers
    assert (headers["X-Tenant"], headers.get("x-TENANT"), headers.get("Other")) == ("blue", "blue", None)
    assert "X-TENANT" in headers
    assert dict(headers) == {"x-tenant": "blue"}


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "address"),
    [
        ("192.0.2.1", None, 0, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", 0, "192.0.2.1"),  # anybody can write the header
        ("192.0.2.1", "198.51.100.7", 1, "198.51.100.7"),
        ("192.0.2.1", "10.0.0.9, 198.51.100.7:4711", 1, "198.51.100.7"),
        ("192.0.2.1", "10.0.0.9,198.51.100.7 , 10.0.0.1", 2, "198.51.100.7"),
        ("192.0.2.1", "198.51.100.7", 2, "192.0.2.1"),
        ("192.0.2.1", "unknown", 1, "192.0.2.1"),
        ("192.0.2.1", "9" * 65, 1, "192.0.2.1"),
        (None, "[2001:db8::1:2]:443", 1, "2001:db8::1:2"),
        ("2001:db8::1:2", None, 0, "2001:db8::1:2"),
        ("::ffff:192.0.2.1", None, 0, "192.0.2.1"),
        ("/run/shop.sock", None, 0, None),
        ("", None, 1, None),
        (None, None, 1, None),
    ],
)
def test_the_address_of_the_client(peer: str | None, forwarded: str | None, proxies: int, address: str | None) -> None:
    class Connected(HttpRequest):
        @property
        def peer(self) -> str | None:
            return peer

    pairs = [] if forwarded is None else [(b"x-forwarded-for", forwarded.encode())]
    made = Connected("POST", "/mcp", pairs)
    made.proxies = proxies
    assert made.client_address == address
