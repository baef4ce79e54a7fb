"""Cookies of a server: those of a session come back in it, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp._client.session_cookies import SessionCookies
from funcmcp.client import Client, HTTPEndpoint
from tests.client.scripted import Exchange, handshake_server, scripted
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

URL = "https://mcp.example.com/mcp"


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        (["route=a1; Path=/; HttpOnly"], "route=a1"),
        (["route=a1; Path=/mcp; Secure; SameSite=None", "b=2"], "route=a1; b=2"),
        (["route=a1; Domain=example.com"], "route=a1"),
        (["route=a1", "route=a2"], "route=a2"),
        (["route=a1", "route=; Max-Age=0"], None),
        (["route=a1; Domain=example.org"], None),
        (["route=a1; Path=/other"], None),
        (["route=a1; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], None),
        (["", "=", ";;;", "\ud800=1", "a" * 5000], None),
    ],
)
def test_cookies_are_kept_as_rfc_6265_says(lines: list[str], header: str | None) -> None:
    cookies = SessionCookies()
    cookies.add(URL, lines)
    assert cookies.header_for(URL) == header


def test_a_cookie_that_is_for_https_is_not_sent_without() -> None:
    cookies = SessionCookies()
    cookies.add(URL, ["route=a1; Secure"])
    assert cookies.header_for(URL.replace("https", "http")) is None
    assert cookies.header_for("https://other.example.com/mcp") is None


def test_a_server_that_sets_any_number_of_cookies_fills_no_memory() -> None:
    cookies = SessionCookies()
    for number in range(1000):
        cookies.add(URL, [f"c{number}={'x' * 4000}"])
    header = cookies.header_for(URL)
    assert header is not None
    assert len(header) < 50 * 4100


def test_a_cookie_of_a_full_session_takes_a_new_value() -> None:
    cookies = SessionCookies()
    cookies.add(URL, [f"c{number}=1" for number in range(51)])
    cookies.add(URL, ["c7=2"])
    assert "c7=2" in (cookies.header_for(URL) or "").split("; ")
    assert "c50=1" not in (cookies.header_for(URL) or "")


def balanced(call: Callable[[Exchange], Awaitable[None]]) -> Callable[[Exchange], Awaitable[None]]:
    """Return a server whose `initialize` sets the cookie of a load balancer."""
    serve = handshake_server(call)

    async def handle(exchange: Exchange) -> None:
        if exchange.message.get("method") == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "scripted"}}
            await exchange.answer(result, "mcp-session-id: s1", "set-cookie: route=a1; Path=/")
        else:
            await serve(exchange)

    return handle


@pytest.mark.parametrize("public_only", [False, True])
async def test_a_load_balancer_finds_the_instance_of_a_session_again(
    public_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `public_only` httpx2 sends the requests, which would keep cookies for all sessions."""

    async def loopback(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    async def call(exchange: Exchange) -> None:
        await exchange.answer({"content": []})

    monkeypatch.setattr("funcmcp._client.http_exchange.public_addresses", loopback)
    async with scripted(balanced(call)) as server:
        endpoint = HTTPEndpoint(server.url, public_only=public_only)
        for _ in range(2):
            async with Client(endpoint, timeout=PATIENCE) as client:
                await client.call_tool("a")
        cookies = [(one.message.get("method", one.method), one.headers.get("cookie")) for one in server.requests]
    session = [("notifications/initialized", "route=a1"), ("tools/call", "route=a1"), ("DELETE", "route=a1")]
    assert cookies == 2 * [("server/discover", None), ("initialize", None), *session]


async def test_cookies_of_an_endpoint_stay_beside_those_of_the_session() -> None:
    async def call(exchange: Exchange) -> None:
        await exchange.answer({"content": []})

    async with scripted(balanced(call)) as server:
        async with Client(HTTPEndpoint(server.url, headers={"Cookie": "id=7"}), timeout=PATIENCE) as client:
            await client.call_tool("a")
        (request,) = server.having("tools/call")
    assert request.headers["cookie"] == "id=7; route=a1"


async def test_a_revision_without_sessions_has_no_cookies() -> None:
    async def handle(exchange: Exchange) -> None:
        result = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {},
            "serverInfo": {"name": "scripted", "version": "1"},
            "resultType": "complete",
            "content": [],
            "tools": [],
            "ttlMs": 0,
            "cacheScope": "private",
        }
        await exchange.answer(result, "set-cookie: route=a1; Path=/")

    async with scripted(handle) as server:
        async with Client(server.url, timeout=PATIENCE) as client:
            await client.call_tool("a")
        assert [one.headers.get("cookie") for one in server.requests] == [None, None, None]
