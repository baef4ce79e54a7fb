"""The Host of requests that a test sends in its own process; the check of Host for all others stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from starlette.responses import JSONResponse
from starlette.testclient import TestClient

from funcmcp.compat import FastMCP, MCPServer
from funcmcp.compat.mcp.server.transport_security import TransportSecuritySettings

if TYPE_CHECKING:
    from starlette.requests import Request


def health() -> FastMCP:
    mcp = FastMCP("h")

    @mcp.custom_route("/health", methods=["GET"])
    async def answer(request: Request) -> JSONResponse:
        return JSONResponse({"url": str(request.url)})

    return mcp


def test_a_test_client_is_answered_under_its_own_host() -> None:
    app = health().http_app()
    with TestClient(app) as client:
        assert client.get("/health").json() == {"url": "http://testserver/health"}
        assert client.post("/mcp", json={}).status_code == 400
        assert client.get("/health", headers={"host": "evil.example"}).status_code == 421
        assert client.get("/health", headers={"x-forwarded-for": "1.2.3.4"}).status_code == 421


async def test_an_asgi_transport_is_answered_under_its_own_host() -> None:
    transport = httpx2.ASGITransport(app=health().http_app())
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/health", headers={"host": "evil.example"})).status_code == 421


@pytest.mark.parametrize(
    ("server", "host"),
    [
        (MCPServer("shop"), "localhost"),
        (FastMCP("shop", transport_security=TransportSecuritySettings(allowed_hosts=["a.example"])), "a.example"),
    ],
)
def test_a_server_of_the_sdk_and_one_with_hosts_check_the_host_in_tests_too(server: FastMCP, host: str) -> None:
    with TestClient(server.http_app()) as client:
        assert client.post("/mcp", json={}).status_code == 421
    with TestClient(server.http_app(), base_url=f"http://{host}") as client:
        assert client.post("/mcp", json={}).status_code == 400


async def test_a_server_of_the_sdk_for_other_machines_is_answered_under_the_host_of_the_test() -> None:
    app = MCPServer("shop").streamable_http_app(host="0.0.0.0")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://test") as client:
        assert (await client.post("/mcp", json={})).status_code == 400
        assert (await client.post("/mcp", json={}, headers={"host": "evil.example"})).status_code == 421


def scope(**changes: Any) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": "/health",
        "raw_path": b"/health",
        "query_string": b"",
        "scheme": "http",
        "headers": [(b"host", b"evil.example")],
        "client": ("127.0.0.1", 123),
        "server": ("evil.example", 80),
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"client": ("testclient", 50000)}, 200),
        # what a server on a socket passes on, and what a page that rebinds its name can change of it
        ({"server": ("127.0.0.1", 8000)}, 421),
        ({"server": ("/run/app.sock", None)}, 421),
        ({"client": ("127.0.0.1", 54321)}, 421),
        ({"client": ("testclient", 0)}, 421),
        ({"client": ("10.0.0.9", 123)}, 421),
        ({"client": None}, 421),
        ({"headers": [(b"host", b"evil.example"), (b"X-Forwarded-For", b"testclient:50000")]}, 421),
        ({"headers": [(b"host", b"evil.example"), (b"Forwarded", b"for=testclient")]}, 421),
        ({"headers": [(b"host", b"other.example")]}, 421),
        ({"headers": [(b"host", b"evil.example"), (b"host", b"evil.example")]}, 400),
    ],
)
async def test_only_what_no_socket_has_is_of_a_test(changes: dict[str, Any], status: int) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await health().http_app()(scope(**changes), receive, send)
    assert sent[0]["status"] == status


@pytest.mark.parametrize("protection", [True, "auto"])
def test_host_origin_protection_can_only_be_switched_off_in_so_many_words(protection: Any) -> None:
    with TestClient(health().http_app(host_origin_protection=protection)) as client:
        assert client.get("/health", headers={"host": "evil.example"}).status_code == 421
    with TestClient(health().http_app(host_origin_protection=False)) as client:
        assert client.get("/health", headers={"host": "evil.example"}).status_code == 200
    with pytest.raises(ValueError, match="host_origin_protection must be"):
        health().http_app(host_origin_protection="always")
