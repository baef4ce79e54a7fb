"""URLs that come from data lead to public addresses only."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from funcmcp._client import public_addresses as module
from funcmcp._client.public_addresses import is_public
from funcmcp.client import Client, ConnectionFailedError, HTTPEndpoint, SignIn
from tests.upstreams.scripted import Exchange, scripted_server


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "2002:a00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"])
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.1"])
async def test_a_url_that_leads_to_this_machine_is_refused_before_a_connection(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://{host}:{listener.getsockname()[1]}/mcp"
        with pytest.raises(ConnectionFailedError, match="not public"):
            async with Client(HTTPEndpoint(url, public_only=True)):
                pass
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_the_connection_is_made_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups: list[str] = []

    async def getaddrinfo(_loop: Any, host: str, port: int, **options: Any) -> Any:
        lookups.append(host)
        return [(socket.AF_INET, options["type"], 0, "", ("127.0.0.1", port))]

    monkeypatch.setattr(module, "is_public", lambda _: True)
    async with scripted_server() as scripted:
        url = scripted.url.replace("127.0.0.1", "upstream.example")
        monkeypatch.setattr(asyncio.get_running_loop().__class__, "getaddrinfo", getaddrinfo)
        async with Client(HTTPEndpoint(url, public_only=True)) as client:
            await client.list_tools()
        assert {headers["host"] for headers in scripted.headers} == {url.removeprefix("http://").removesuffix("/mcp")}
        assert set(lookups) == {"upstream.example"}


async def test_the_address_is_checked_again_after_a_redirection(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([True, True, True, False])
    monkeypatch.setattr(module, "is_public", lambda _: next(answers, False))

    async def redirect(exchange: Exchange) -> None:
        exchange.write("307 Temporary Redirect", location="/other")

    async with scripted_server() as scripted:
        scripted.answers.append(redirect)
        with pytest.raises(ConnectionFailedError, match="not public"):
            async with Client(HTTPEndpoint(scripted.url, public_only=True), revision="2025-11-25") as client:
                await client.call_tool("act")
        assert scripted.calls == 1


def test_it_is_not_for_endpoints_with_a_sign_in() -> None:
    with pytest.raises(ValueError, match="public_only"):
        Client(HTTPEndpoint("https://example.com/mcp", public_only=True, sign_in=SignIn()))
