"""The transports under the names of other frameworks, and applications with routes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request  # noqa: TC002 - an annotation of a route
from starlette.responses import JSONResponse
from starlette.routing import Mount

from funcmcp.compat import FastMCP

if TYPE_CHECKING:
    from pathlib import Path

HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}


def server(**options: Any) -> FastMCP:
    mcp = FastMCP("t", **options)

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    return mcp


async def post(app: Any, path: str, method: str = "POST", **options: Any) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.request(method, path, **options)


async def call(app: Any, path: str) -> httpx2.Response:
    return await post(app, path, json=CALL, headers=HEADERS)


async def test_an_application_has_the_endpoint_and_custom_routes() -> None:
    mcp = server(stateless_http=True)

    @mcp.custom_route("/health", methods=["GET"])
    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"path": request.url.path})

    app = mcp.http_app(middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1"])])
    assert '"structuredContent":{"result":3}' in (await call(app, "/mcp")).text
    assert (await post(app, "/health", "GET")).json() == {"path": "/health"}
    assert (await post(app, "/health", "GET", headers={"Host": "example.com"})).status_code == 400
    assert (await post(mcp, "/health", "GET")).json() == {"path": "/health"}


@pytest.mark.parametrize(
    ("app", "path"),
    [
        (server(stateless_http=True, streamable_http_path="/api").http_app(), "/api"),
        (server().http_app(path="/rpc/", stateless_http=True), "/rpc"),
        (server().streamable_http_app(stateless_http=True), "/mcp"),
    ],
)
async def test_paths_and_the_stateless_mode(app: Any, path: str) -> None:
    assert '"structuredContent":{"result":3}' in (await call(app, path)).text
    assert (await call(app, "/elsewhere")).status_code == 404


async def test_settings_may_change_until_the_server_runs() -> None:
    mcp = server()
    mcp.settings.streamable_http_path = "/later"
    mcp.settings.stateless_http = True
    assert '"result":3' in (await call(mcp.streamable_http_app(), "/later")).text


async def test_an_application_mounts_the_server_with_its_lifespan() -> None:
    mcp_app = server(stateless_http=True).http_app(path="/")
    app = Starlette(routes=[Mount("/shop", app=mcp_app)], lifespan=mcp_app.lifespan)
    assert '"result":3' in (await call(app, "/shop/")).text


def test_an_sse_application_has_the_paths_of_the_settings() -> None:
    from funcmcp.serving import serving_of

    mcp = server(sse_path="/events")
    assert mcp.sse_app().routes
    assert serving_of(mcp).http_options.sse == "/events"


def test_an_unknown_transport_is_refused() -> None:
    with pytest.raises(ValueError, match="transport must be one of stdio, http"):
        server().run("carrier pigeon")


def test_a_server_runs_on_stdio_as_it_did(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "from funcmcp.compat import FastMCP\n"
        "mcp = FastMCP('Demo', dependencies=['httpx'])\n"
        "@mcp.tool()\n"
        "def add(a: int, b: int) -> int:\n"
        "    return a + b\n"
        "if __name__ == '__main__':\n"
        "    mcp.run(transport='stdio', show_banner=False)\n"
    )
    initialize = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        },
    }
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    lines = "".join(json.dumps(message) + "\n" for message in (initialize, initialized, CALL))
    run = subprocess.run(
        [sys.executable, str(script)], input=lines, capture_output=True, text=True, timeout=30, check=True
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert answers[0]["result"]["serverInfo"]["name"] == "Demo"
    assert answers[1]["result"]["structuredContent"] == {"result": 3}
