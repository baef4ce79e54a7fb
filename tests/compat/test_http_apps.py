"""Applications that FastMCP's functions make of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from funcmcp.compat import FastMCP, StaticTokenVerifier, create_sse_app, create_streamable_http_app

if TYPE_CHECKING:
    from starlette.requests import Request


def health() -> FastMCP:
    mcp = FastMCP("h")

    @mcp.custom_route("/health", methods=["GET"])
    async def answer(request: Request) -> JSONResponse:
        return JSONResponse({})

    return mcp


def test_applications_have_the_routes_of_their_author() -> None:
    extra = Route("/extra", lambda _request: JSONResponse({}))
    mcp = health()
    app = create_streamable_http_app(mcp, "/other", routes=[extra])
    assert app.state.fastmcp_server is mcp
    assert [route.path for route in app.routes if isinstance(route, Route)] == ["/extra", "/health", "/other"]
    with TestClient(app) as client:
        assert [client.get(path).status_code for path in ("/extra", "/health", "/other")] == [200, 200, 405]
    sse = create_sse_app(health(), "/messages", "/events", routes=[extra])
    assert "/events" in [route.path for route in sse.routes if isinstance(route, Route)]


def test_an_application_has_the_authentication_of_its_author() -> None:
    tokens = StaticTokenVerifier({"t": {"client_id": "c", "scopes": []}})
    mcp = FastMCP("h", auth=tokens)
    with TestClient(create_streamable_http_app(mcp, "/mcp", auth=tokens)) as client:
        assert client.post("/mcp", json={}).status_code == 401
        assert client.post("/mcp", json={}, headers={"authorization": "Bearer t"}).status_code == 400
    for server in (mcp, health()):
        with pytest.raises(TypeError, match="has to be that of the server"):
            create_streamable_http_app(server, "/mcp", auth=StaticTokenVerifier({}))
