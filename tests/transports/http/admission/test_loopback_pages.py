"""CORS for pages of this machine, which need no entry in `allowed_origins`."""

from __future__ import annotations

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp.http import Request, Response
from tests.wire.peer import HANDSHAKE, Answer, exchange, initialize, to_bytes

INSPECTOR = "http://localhost:6274"
LOOPBACK, PUBLIC = ("127.0.0.1", 8000), ("192.0.2.1", 8000)


def shop(**options: object) -> MCPServer:
    mcp = MCPServer("Shop", http=HTTPOptions(**options))  # type: ignore[arg-type]

    @mcp.custom_route("/menu", allow_anonymous=True, methods=["POST"])
    def menu(request: Request) -> Response:
        return Response(request.method, headers={"access-control-allow-origin": "https://own.example"})

    return mcp


async def send(
    mcp: MCPServer,
    method: str,
    origin: str | None,
    *,
    host: str = "127.0.0.1:8000",
    server: tuple[str, int] = LOOPBACK,
    path: str = "/mcp",
) -> Answer:
    pairs = [("host", host)] if origin is None else [("host", host), ("origin", origin)]
    body = b""
    if method == "OPTIONS":
        pairs.append(("access-control-request-method", "POST"))
    else:
        pairs += [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
        body = to_bytes(initialize(HANDSHAKE))
    return await exchange(mcp, method, pairs, [body], path=path, server=server).answer()


@pytest.mark.parametrize("origin", [INSPECTOR, "https://127.0.0.1", "http://[::1]:3000", "HTTP://LOCALHOST:99999"])
@pytest.mark.parametrize("listed", [[], ["https://app.example.com"], ["*"]], ids=str)
async def test_a_page_of_this_machine_may_call_without_an_entry(origin: str, listed: list[str]) -> None:
    mcp = shop(allowed_origins=listed)
    for method, status in (("OPTIONS", 204), ("POST", 200)):
        answer = await send(mcp, method, origin)
        assert answer.status == status
        assert answer.header("access-control-allow-origin") == ("*" if listed == ["*"] else origin.lower())
        assert answer.header("access-control-allow-credentials") is None
        assert answer.header("vary") == "origin"


@pytest.mark.parametrize(
    ("host", "server"), [("shop.example", PUBLIC), ("shop.example", LOOPBACK)], ids=["public", "behind a proxy"]
)
async def test_a_server_that_is_not_reached_on_loopback_needs_an_entry(host: str, server: tuple[str, int]) -> None:
    mcp = shop(allowed_hosts=["shop.example"])
    for method, status in (("OPTIONS", 405), ("POST", 200)):
        answer = await send(mcp, method, INSPECTOR, host=host, server=server)
        assert answer.status == status
        assert answer.header("access-control-allow-origin") is None


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
async def test_pages_of_other_machines_get_nothing(origin: str) -> None:
    for method in ("OPTIONS", "POST"):
        answer = await send(shop(), method, origin)
        assert answer.status == 403
        assert answer.header("access-control-allow-origin") is None
        assert b"HTTPOptions(allowed_origins=)" in answer.body


async def test_programs_and_custom_routes_are_left_alone() -> None:
    assert (await send(shop(), "POST", None)).header("access-control-allow-origin") is None
    answer = await send(shop(), "POST", INSPECTOR, path="/menu")
    assert (answer.status, answer.body) == (200, b"POST")
    assert answer.header("access-control-allow-origin") == "https://own.example"
