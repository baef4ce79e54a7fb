"""Requests of authors of upstreams to an API, over real HTTP: where a token goes, and what an answer may do."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import auth
from funcmcp.auth import UpstreamError, UpstreamHTTP, UpstreamRefusedError, UpstreamUnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class API:
    """Answers every request alike.

    Attributes:
        url: The URL.
        status: Status and reason.
        body: The body.
        requests: The heads and bodies of the requests.
    """

    def __init__(self) -> None:
        self.url = ""
        self.status = "200 OK"
        self.body = b'{"id": "42"}'
        self.requests: list[tuple[str, bytes]] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = [line.partition(":")[2] for line in head.splitlines() if line.startswith("content-length:")]
            self.requests.append((head, await reader.readexactly(int(length[0])) if length else b""))
            fields = f"Location: {self.url}/elsewhere\r\nContent-Length: {len(self.body)}\r\nConnection: close\r\n\r\n"
            writer.write(f"HTTP/1.1 {self.status}\r\n{fields}".encode() + self.body)
            await writer.drain()
        except ConnectionError:
            return  # the proxy has stopped reading an answer that is too long
        finally:
            writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[API]:
    api = API()
    server = await asyncio.start_server(api.answer, "127.0.0.1", 0)
    api.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/me"
    try:
        yield api
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture
async def api() -> AsyncIterator[API]:
    async with serving() as served:
        yield served


async def test_an_api_gets_the_token_of_the_user_and_the_header_of_the_author(api: API) -> None:
    fields = {"notion-version": "2022-06-28", "authorization": "Basic of the author"}
    assert await UpstreamHTTP().call_api(api.url, "at", headers=fields) == {"id": "42"}
    ((head, body),) = api.requests
    assert head.startswith("get /me http/1.1\r\n")
    assert "\r\nauthorization: bearer at\r\n" in head
    assert "\r\nnotion-version: 2022-06-28\r\n" in head
    assert "basic of the author" not in head
    assert body == b""


async def test_json_is_posted(api: API) -> None:
    await UpstreamHTTP().call_api(api.url, "at", json={"query": "{ viewer { id } }"})
    ((head, body),) = api.requests
    assert head.startswith("post /me http/1.1\r\n")
    assert "\r\ncontent-type: application/json\r\n" in head
    assert json.loads(body) == {"query": "{ viewer { id } }"}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        ("302 Found", b"{}", UpstreamUnavailableError),
        ("307 Temporary Redirect", b"{}", UpstreamUnavailableError),
        ("400 Bad Request", b"{}", UpstreamRefusedError),
        ("401 Unauthorized", b"{}", UpstreamRefusedError),
        ("403 Forbidden", b"{}", UpstreamRefusedError),
        ("404 Not Found", b"{}", UpstreamUnavailableError),
        ("429 Too Many Requests", b"{}", UpstreamUnavailableError),
        ("500 Internal Server Error", b"{}", UpstreamUnavailableError),
        ("200 OK", b"[]", UpstreamUnavailableError),
        ("200 OK", b"<html>", UpstreamUnavailableError),
        ("200 OK", b'{"a":"' + b"x" * 300_000 + b'"}', UpstreamUnavailableError),
    ],
)
async def test_an_answer_that_is_not_an_object_about_the_user(
    api: API, status: str, body: bytes, error: type[UpstreamError]
) -> None:
    api.status, api.body = status, body
    with pytest.raises(error) as caught:
        await UpstreamHTTP().call_api(api.url, "secret-token")
    assert "secret-token" not in str(caught.value)
    assert len(api.requests) == 1  # no redirect is followed, so the token goes nowhere else


@pytest.mark.parametrize("token", ["", "two\r\nx-injected: 1", "a b", "é", "\x00", "x\x7f"])
async def test_a_token_that_a_header_can_not_contain_is_not_sent(api: API, token: str) -> None:
    with pytest.raises(UpstreamUnavailableError, match="characters"):
        await UpstreamHTTP().call_api(api.url, token)
    assert api.requests == []


async def test_more_than_a_hundred_requests_at_once_are_an_outage(api: API) -> None:
    http = UpstreamHTTP()
    http._running = 100
    with pytest.raises(UpstreamUnavailableError, match="too many requests"):
        await http.call_api(api.url, "at")
    assert api.requests == []


def test_what_authors_of_upstreams_need_is_public() -> None:
    names: list[Any] = [
        auth.AuthorizationRequest,
        auth.IssuedToken,
        auth.ClaimsRequest,
        auth.SignIn,
        auth.Upstream,
        auth.UpstreamError,
        auth.UpstreamHTTP,
        auth.UpstreamMisconfiguredError,
        auth.UpstreamRefusedError,
        auth.UpstreamUnavailableError,
        auth.User,
    ]
    assert {name.__module__ for name in names} == {"funcmcp.auth"}
    with pytest.raises(ValueError, match=r"missing\.pem"):
        UpstreamHTTP(ca_file="missing.pem")
