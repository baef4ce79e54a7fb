"""The paths of a server, as routes of another application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from funcmcp import HTTPOptions, MCPServer, http
from funcmcp.auth import Auth, ProtectedResource
from funcmcp.http import Uploads
from tests.wire.peer import HANDSHAKE, initialize

if TYPE_CHECKING:
    from starlette.requests import Request

URL = "https://shop.example.com/mcp"


def shop() -> MCPServer:
    mcp = MCPServer("Shop", http=HTTPOptions(sse="/sse", websocket="/ws", uploads=Uploads()))

    @mcp.custom_route("/things/{name}")
    async def thing(request: http.Request) -> str:
        return request.path

    return mcp


def test_paths_are_those_of_http_requests() -> None:
    paths = ["/mcp", "/sse", "/mcp/uploads", "/mcp/", "/things/{name}", "/mcp/uploads/{file:path}", "/livez", "/readyz"]
    assert shop().paths == paths


def test_paths_have_those_of_the_metadata_of_a_protected_resource() -> None:
    async def nobody(headers: object) -> None:
        return None

    resource = ProtectedResource(resource=URL, authorization_servers=["https://id.example.com"])
    mcp = MCPServer("Shop", auth=Auth(nobody, resource=resource), http=HTTPOptions(health=False))
    assert "/.well-known/oauth-protected-resource/mcp" in mcp.paths
    assert "/livez" not in mcp.paths


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/items", 200),
        ("GET", "/items/", 307),
        ("POST", "/items", 405),
        ("GET", "/unknown", 404),
        ("GET", "/things/tea", 200),
        ("GET", "/things/tea/cup", 404),
        ("GET", "/mcp/", 405),
        ("GET", "/livez", 200),
    ],
)
def test_a_route_for_each_of_them_changes_no_other_path(method: str, path: str, status: int) -> None:
    def items(request: Request) -> PlainTextResponse:
        return PlainTextResponse("tea")

    mcp = shop()
    app = Starlette(
        routes=[Route("/items", items), *(Route(path, mcp) for path in mcp.paths)], lifespan=lambda app: mcp.lifespan()
    )
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        response = client.request(method, path)
        assert response.status_code == status
        if status in {404, 405} and not path.startswith("/mcp"):
            assert response.headers["content-type"] == "text/plain; charset=utf-8"  # Starlette's, not the server's
        assert client.post("/mcp", json=initialize(HANDSHAKE)).status_code == 200
