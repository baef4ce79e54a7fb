"""Canonical paths: what the host decides by, and what it sends on."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import pytest

from funcmcp._client.http_messages import MemoryRequest
from funcmcp._transports.http.messages import HttpRequest, HttpResponse
from funcmcp_host.paths import PathError, canonical, canonical_path, target_of
from funcmcp_host.route_patterns import RouteTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator

DOT_SEGMENTS = {
    # Without dot segments.
    **{path: path for path in ("/", "/a", "/a/", "/a/b", "/a/b/", "/no/segments", "/no/segments/")},
    **{path: path for path in ("/.a", "/..a", "/...", "/a/.../b", "/a/.b", "/a/..b", "/a/b.", "/a/b..", "/a./b")},
    # One dot.
    "/./a": "/a",
    "/././a": "/a",
    "/a/./b": "/a/b",
    "/a/./": "/a/",
    "/a/.": "/a/",
    "/.": "/",
    "/./": "/",
    "/././": "/",
    "/./.": "/",
    # Two dots.
    "/../a": "/a",
    "/../../a": "/a",
    "/a/../b": "/b",
    "/a/../": "/",
    "/a/..": "/",
    "/a/../b/../": "/",
    "/a/../b/..": "/",
    "/a/../../b": "/b",
    "/a/../../b/": "/b/",
    "/..": "/",
    "/../": "/",
    "/../..": "/",
    "/../../": "/",
    "/longlong/../short": "/short",
    "/short/../longlong": "/longlong",
    "/longlong/../short/..": "/",
    "/short/../longlong/..": "/",
    "/longlong/../short/../": "/",
    "/short/../longlong/../": "/",
    # Both.
    "/a/.././../b": "/b",
    "/a/.././../b/": "/b/",
    "/a/b/c/./../../d": "/a/d",
    "/./a/b/c/./../../d": "/a/d",
    "/../a/b/c/./../../d": "/a/d",
    "/./../a/b/c/./../../d": "/a/d",
    "/.././a/b/c/./../../d": "/a/d",
    "/a/../.../../b": "/b",
    "/../.": "/",
    "/./..": "/",
    "/.././": "/",
    "/./../": "/",
    # Empty segments are segments.
    "//": "//",
    "//a": "//a",
    "/a//b": "/a//b",
    "/a//../b": "/a/b",
    "//../a": "/a",
    "/a/..//b": "//b",
}
ENCODED = {
    # Decoded once, in any case, before dot segments are removed.
    "/%61": "/a",
    "/a%20b": "/a b",
    "/a%24b": "/a$b",
    "/a%25b": "/a%b",
    "/a%c2%a2b": "/a¢b",
    "/a%E2%82%ACb": "/a€b",
    "/a%E0%A4%B9b": "/aहb",
    "/a%F0%90%8D%88b": "/a𐍈b",
    "/%E4%BD%A0%E5%A5%BD": "/你好",
    "/%252e": "/%2e",
    "/%2e": "/",
    "/%2E%2e/a": "/a",
    "/a/%2e%2e/b": "/b",
    "/a/.%2E/b": "/b",
    "/a/%2e/b": "/a/b",
    "/a/%2e%2e": "/",
    "/a/%252e%252e/b": "/a/%2e%2e/b",
    "/a%0d%0ab": "/a\r\nb",
    "/a%7fb": "/a\x7fb",
    # %2F separates nothing.
    "/a%2Fb": "/a%2Fb",
    "/a%2fb": "/a%2fb",
    "/a%2Fb+c": "/a%2Fb+c",
    "/a%%2Fb": "/a%%2Fb",
    "/%2F": "/%2F",
    "/a/b%2Fc/../d": "/a/d",
    "/a%252Fb": "/a%2Fb",
    # What can't be decoded remains.
    **{path: path for path in ("/%", "/%1", "/%1$", "/%$$", "/%%1", "/%%1$", "/%zz", "/a%2", "/%u002e%u002e/a")},
    **{path: path for path in ("/%FF%FF%FF%FF", "/%ff", "/%F7%BF%BF%BF", "/%F7%C0", "/%F0%81", "/%ED%A0%81")},
    **{path: path for path in ("/%c0%ae%c0%ae/a", "/%C0%AF", "/%e0%80%ae", "/%E2%82", "/%80")},
    "/%E2%82%41": "/%E2%82A",
    "/%E2%2F%82": "/%E2%2F%82",
    "/%ff%61": "/%ffa",
    "/%%61": "/%a",
    # Neither a backslash nor a semicolon separates anything.
    "/a%5cb": "/a\\b",
    "/a\\b": "/a\\b",
    "/a;x=1/b": "/a;x=1/b",
    "/a;x/../b": "/b",
    "/a/b;..": "/a/b;..",
}
REJECTED = [
    *("", "*", "a", "a/b", "example.com:80"),
    *("/%00", "/a%00", "/a/%00/../b%00", "/a/%00/../b", "/\0"),
    *("/..%2fa", "/a/..%2Fb", "/a/%2e%2e%2fb", "/a%2f..", "/a%2f../b", "/a/..%2f", "/a%2f%2e%2e%2fb", "/.%2fa"),
    *("/..\\a", "/a/..%5cb", "/a\\..", "/a/..\\..\\b", "/a%5c%2e%2e", "/a%5c..%5cb", "/.\\a", "/a\\.\\b"),
    *("/a/..;/b", "/..;", "/a/..;x=1/b", "/a/.;/b", "/a/%2e%2e;/b", "/a/..%3b/b", "/a%5c..;b"),
]


@pytest.mark.parametrize(("raw_path", "path"), [*DOT_SEGMENTS.items(), *ENCODED.items()])
def test_a_path_is_made_canonical(raw_path: str, path: str) -> None:
    assert canonical_path(raw_path) == path


@pytest.mark.parametrize("raw_path", REJECTED)
def test_a_path_that_programs_read_differently_is_rejected(raw_path: str) -> None:
    with pytest.raises(PathError) as caught:
        canonical_path(raw_path)
    assert raw_path not in str(caught.value) or not raw_path.strip("*/a")


def attacks() -> Iterator[tuple[str, str]]:
    """Yield paths that lead out of an open route, and the path that they should not reach."""
    dots = ("..", "%2e%2e", ".%2E", "%2e.", "..%00", "%252e%252e", "..;", "..;a=b", "..%3B", "%c0%ae%c0%ae", "%uff0e.")
    slashes = ("/", "%2f", "%2F", "\\", "%5c", "%252f", "//", "/./", "/%2e/", "%c0%af")
    for dot in dots:
        for slash in slashes:
            yield f"/api/open/{dot}{slash}adm", "/api/adm"
            yield f"/api/open/x{slash}{dot}{slash}{dot}{slash}adm", "/api/adm"


@pytest.mark.parametrize(("raw_path", "closed"), list(attacks()))
def test_what_is_sent_on_has_the_route_that_was_checked(raw_path: str, closed: str) -> None:
    """A program may decode the target, and normalize it in one of several ways: the result is on the checked route."""
    try:
        path = canonical_path(raw_path)
    except PathError:
        return
    assert canonical_path(target_of(request_of(path)).decode()) == path
    is_closed = RouteTemplate("api/adm").match(path) is not None
    seen = unquote_to_bytes(target_of(request_of(path))).decode()
    assert seen == path
    assert (seen == closed) == is_closed
    values = RouteTemplate("api/open/{*rest}").match(path) or {}
    assert not {".", ".."} & set(re.split(r"[/\\]|%2[Ff]", values.get("rest", "")))


def request_of(path: str) -> HttpRequest:
    return MemoryRequest("GET", path, [], b"")


class Request(MemoryRequest):
    """A request with the path and the query as a client has sent them."""

    def __init__(self, raw_path: str, query: str = "") -> None:
        super().__init__("GET", "/not canonical", [], b"")
        self.sent = (raw_path, query)

    @property
    def raw_path(self) -> str:
        return self.sent[0]

    @property
    def query_string(self) -> str:
        return self.sent[1]


async def test_an_exchange_sees_canonical_paths_only() -> None:
    async def exchange(request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, (), target_of(request))

    answer = canonical(exchange)
    assert (await answer(Request("/a/%2e%2e/b%20c%2Fd", "x=%2e%2e&y=a/../b"))).body == b"/b%20c%252Fd?x=%2e%2e&y=a/../b"
    for request in (Request("/a/..;/b"), Request("/a", "x=\xff")):
        response = await answer(request)
        assert response.status == 400
        assert isinstance(response.body, bytes)
        assert ".." not in json.loads(response.body)["error"]["message"]
