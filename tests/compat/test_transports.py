"""The transports under the names of other frameworks, and applications with routes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client as OfficialClient
from mcp.client.sse import sse_client
from pydantic import FileUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request  # noqa: TC002 - an annotation of a route
from starlette.responses import JSONResponse
from starlette.routing import Mount

from funcmcp.compat import Context, FastMCP, get_http_request
from tests.compat.listening import listening, under_uvicorn
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
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
    from funcmcp._serving.composition import runtime_of

    mcp = server(sse_path="/events")
    assert mcp.sse_app().routes
    assert runtime_of(mcp).http_options.sse == "/events"


def test_an_unknown_transport_is_refused() -> None:
    with pytest.raises(ValueError, match="transport must be one of stdio, http"):
        server().run("carrier pigeon")


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
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
        [sys.executable, str(script)], input=lines, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert answers[0]["result"]["serverInfo"]["name"] == "Demo"
    assert answers[1]["result"]["structuredContent"] == {"result": 3}


def asking_server() -> FastMCP:
    """Return a server with a tool that looks at its request and asks its client."""
    mcp = FastMCP("Real")

    @mcp.tool
    async def ask(ctx: Context) -> dict[str, Any]:
        request = ctx.request_context.request
        page = await ctx.elicit_url("Please pay.", "https://pay.example.com/1", elicitation_id="one")
        roots = await ctx.session.list_roots()
        return {
            "path": request.url.path,
            "same": request.headers["host"] == get_http_request().headers["host"] == (ctx.headers or {})["host"],
            "page": page.action,
            "roots": [root.uri for root in await ctx.list_roots()] + [root.uri for root in roots.roots],
            "version": ctx.request_context.protocol_version,
        }

    @mcp.custom_route("/health", methods=["GET"])
    async def health(_: Request) -> JSONResponse:
        return JSONResponse({"ok": True})

    @mcp.custom_route("/files/{path:path}", methods=["GET"])
    async def file(request: Request) -> JSONResponse:
        return JSONResponse(request.path_params["path"])

    return mcp


async def consent(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    assert isinstance(params, types.ElicitRequestURLParams)
    assert params.url == "https://pay.example.com/1"
    return types.ElicitResult(action="accept")


async def roots(_: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///books"))])


SERVED: dict[str, tuple[Callable[[FastMCP], Any], str]] = {
    "run_async http": (lambda mcp: mcp.run_async("http", port=0, show_banner=False), "/mcp"),
    "run_http_async": (lambda mcp: mcp.run_http_async(port=0, path="/api"), "/api"),
    "run_streamable_http_async": (lambda mcp: mcp.run_streamable_http_async(port=0), "/mcp"),
    "run_sse_async": (lambda mcp: mcp.run_sse_async(port=0), "/sse"),
    "http_app": (lambda mcp: under_uvicorn(mcp.http_app()), "/mcp"),
    "http_app sse": (lambda mcp: under_uvicorn(mcp.http_app("/events", transport="sse")), "/events"),
    "streamable_http_app": (lambda mcp: under_uvicorn(mcp.streamable_http_app(streamable_http_path="/s")), "/s"),
    "sse_app": (lambda mcp: under_uvicorn(mcp.sse_app()), "/sse"),
    "session_manager": (lambda mcp: under_uvicorn(mounted(mcp)), "/shop/mcp"),
}


def mounted(mcp: FastMCP) -> Starlette:
    """Return an application that mounts a server as the documentation of the official SDK shows."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mcp.session_manager.run():
            yield

    return Starlette(routes=[Mount("/shop", app=mcp.streamable_http_app())], lifespan=lifespan)


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
@pytest.mark.parametrize("name", SERVED)
async def test_the_official_client_uses_a_server_on_a_real_socket(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    serve, path = SERVED[name]
    is_sse = path in {"/sse", "/events"}
    mcp = asking_server()
    async with listening(serve, mcp, monkeypatch) as origin:
        for mode in ("legacy",) if is_sse else ("legacy", "auto"):
            target: Any = sse_client(origin + path) if is_sse else origin + path
            options: Any = {"mode": mode, "elicitation_callback": consent, "list_roots_callback": roots}
            async with OfficialClient(target, **options) as client:
                result = await client.call_tool("ask")
                version = client.protocol_version
            assert version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            assert result.structured_content == {
                "path": path,
                "same": True,
                "page": "accept",
                "roots": ["file:///books", "file:///books"],
                "version": version,
            }, result
        async with httpx2.AsyncClient(base_url=origin) as http:
            prefix = "/shop" if name == "session_manager" else ""
            assert (await http.get(f"{prefix}/health")).json() == {"ok": True}
            assert (await http.get(f"{prefix}/files/a/b")).json() == "a/b"
            refused = await http.post(path, headers={**HEADERS, "Host": "evil.example"}, json=CALL)
            assert refused.status_code == 421


async def test_options_of_run_select_hosts_and_unknown_ones_are_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = server(stateless_http=True)
    with pytest.raises(TypeError, match="Unknown option 'colour' of run"):
        await mcp.run_http_async(colour="red")

    def serve(mcp: FastMCP) -> Any:
        return mcp.run_http_async(port=0, stateless=True, allowed_hosts=["shop.example"], uvicorn_config={"a": 1})

    with caplog.at_level("INFO"):
        async with listening(serve, mcp, monkeypatch) as origin, httpx2.AsyncClient(base_url=origin) as http:
            answer = await http.post("/mcp", headers={**HEADERS, "Host": "shop.example"}, json=CALL)
            assert '"result":3' in answer.text
            assert (await http.post("/mcp", headers={**HEADERS, "Host": "evil.example"}, json=CALL)).status_code == 421
    assert "run of funcmcp.compat ignores options: uvicorn_config." in caplog.text
