"""Requests to an API that may be hostile."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp import ToolError
from funcmcp._adapters.openapi import api_client
from funcmcp._adapters.openapi.api_client import send
from funcmcp._authoring.openapi.credentials import Applied
from funcmcp._authoring.openapi.operations import Target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from funcmcp._authoring.openapi.http_responses import Response

BASE = "https://api.example/v1"


async def parts(*contents: bytes) -> AsyncIterator[bytes]:
    for content in contents:
        yield content


async def sent(
    answer: Callable[[httpx2.Request], httpx2.Response],
    method: str = "GET",
    target: Target | None = None,
    **applied: Any,
) -> Response:
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        return await send(client, method, BASE, target or Target("/a", "", {}, None), Applied(**applied))


async def test_credentials_join_the_request() -> None:
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        return httpx2.Response(200)

    target = Target("/a%2Fb", "x=1%262", {"cookie": "a=b", "content-type": "text/plain"}, b"body")
    await sent(answer, "POST", target, headers={"authorization": "Bearer t"}, query=["key=k"], cookies=["sid=s"])
    (request,) = requests
    assert str(request.url) == "https://api.example/v1/a%2Fb?x=1%262&key=k"
    assert request.headers["authorization"] == "Bearer t"
    assert request.headers["cookie"] == "a=b; sid=s"
    assert (request.headers["content-type"], request.content) == ("text/plain", b"body")


async def test_parameters_of_the_client_join_the_query() -> None:
    urls: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        urls.append(str(request.url))
        return httpx2.Response(302 if len(urls) == 1 else 200, headers={"location": "/v2/a?q=b"})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer), params={"key": "k&"}) as client:
        await send(client, "GET", BASE, Target("/a", "x=1,2", {}, None), Applied())
    assert urls == [f"{BASE}/a?x=1,2&key=k%26", "https://api.example/v2/a?q=b"]


@pytest.mark.parametrize(
    ("status", "method", "location", "follows"),
    [
        (302, "GET", "/v2/a", True),
        (301, "GET", "https://api.example:443/v2/a", True),
        (308, "POST", "b", True),
        (302, "POST", "/v2/a", False),
        (302, "GET", "https://evil.example/a", False),
        (302, "GET", "http://api.example/a", False),
        (302, "GET", "https://api.example:8443/a", False),
        (307, "GET", "//evil.example/a", False),
        (302, "GET", "https://api.example\\@evil.example/a", False),
        (302, "GET", "https://[/a", False),
    ],
)
async def test_credentials_never_leave_the_origin(status: int, method: str, location: str, follows: bool) -> None:
    urls: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        urls.append(str(request.url))
        if len(urls) > 1:
            return httpx2.Response(200, text="end")
        return httpx2.Response(status, headers={"location": location})

    response = await sent(answer, method, headers={"authorization": "Bearer t"})
    assert (len(urls), response.status) == ((2, 200) if follows else (1, status))
    assert response.location == ("" if follows else location)


async def test_redirections_are_limited() -> None:
    with pytest.raises(ToolError, match="redirects more than 5 times"):
        await sent(lambda _: httpx2.Response(302, headers={"location": "/v1/a"}))


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
async def test_a_response_is_unpacked(pack: Any) -> None:
    coding = "gzip" if pack is gzip.compress else "deflate"
    packed = pack(b"hello" * 100)

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["accept-encoding"] == "gzip"
        return httpx2.Response(200, content=parts(packed[:9], packed[9:]), headers={"content-encoding": coding})

    assert (await sent(answer)).body == b"hello" * 100


@pytest.mark.parametrize(
    ("content", "coding", "words"),
    [
        (gzip.compress(bytes(5000)), "gzip", "more than 16 MiB"),
        (bytes(5000), "identity", "more than 16 MiB"),
        (b"not gzip", "gzip", "not valid gzip"),
        (b"x", "zstd", "'zstd', which the request did not accept"),
    ],
    ids=["gzip", "identity", "not gzip", "zstd"],  # the time is in what gzip writes
)
async def test_a_response_is_limited(monkeypatch: pytest.MonkeyPatch, content: bytes, coding: str, words: str) -> None:
    monkeypatch.setattr(api_client, "MAX_RESPONSE_BYTES", 1000)
    with pytest.raises(ToolError, match=words):
        await sent(lambda _: httpx2.Response(200, content=parts(content), headers={"content-encoding": coding}))


async def test_a_stream_of_events_ends_at_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        await asyncio.Event().wait()

    def answer(content: AsyncIterator[bytes]) -> Callable[[httpx2.Request], httpx2.Response]:
        return lambda _: httpx2.Response(200, content=content, headers={"content-type": "text/event-stream"})

    monkeypatch.setattr(api_client, "_STREAM_SECONDS", 0.01)
    assert (await sent(answer(endless()))).body == b"data: 1\n\n"
    monkeypatch.setattr(api_client, "_MAX_STREAM_BYTES", 5)
    assert (await sent(answer(parts(b"123456", b"7")))).body == b"12345"


async def test_an_error_of_the_author_is_not_one_of_the_api() -> None:
    def broken(_: httpx2.Request) -> httpx2.Response:
        raise LookupError("a fault in a transport")

    with pytest.raises(LookupError):
        await sent(broken)
