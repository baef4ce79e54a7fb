"""Applications that FastMCP's functions make of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fastapi import FastAPI
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from funcmcp.compat import FastMCP, MCPServer, StaticTokenVerifier, create_sse_app, create_streamable_http_app

if TYPE_CHECKING:
    from typing import Any

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
    assert [route.path for route in app.routes if isinstance(route, Route)][:3] == ["/extra", "/health", "/other"]
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


def shop() -> FastAPI:
    api = FastAPI()

    @api.get("/items")
    def items() -> list[str]:
        return ["tea"]

    @api.get("/livez")
    def livez() -> str:
        return "of the shop"

    return api


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("server_class", [FastMCP, MCPServer], ids=["FastMCP", "MCPServer"])
def test_the_routes_of_an_application_change_no_other_route(server_class: type[FastMCP], is_first: bool) -> None:
    app = server_class("h").streamable_http_app()
    routes = [*app.routes, *shop().routes] if is_first else [*shop().routes, *app.routes]
    combined: Any = FastAPI(routes=routes, lifespan=app.lifespan)
    requests = [("GET", "/items/"), ("POST", "/items"), ("HEAD", "/items"), ("GET", "/unknown"), ("GET", "/livez")]
    with (
        TestClient(shop(), follow_redirects=False) as alone,
        TestClient(combined, "http://127.0.0.1:8000", follow_redirects=False) as client,
    ):
        for method, path in requests:
            expected, response = alone.request(method, path), client.request(method, path)
            assert (response.status_code, response.content) == (expected.status_code, expected.content)
        assert client.get("/mcp").status_code == client.get("/mcp/").status_code == 405
        assert client.get("/readyz").text == "ok\n"


def test_a_route_that_is_added_to_an_application_answers_other_methods_with_405() -> None:
    app = FastMCP("h").http_app()
    app.router.routes.append(Route("/later", lambda _request: JSONResponse({})))
    with TestClient(app) as client:
        assert [client.post(path).status_code for path in ("/later", "/elsewhere")] == [405, 404]


def test_a_second_application_at_another_path_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    mcp = FastMCP("h")
    mcp.http_app()
    mcp.http_app(transport="sse")
    assert not caplog.records
    first = mcp.http_app()
    mcp.http_app(path="/other")
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("http_app of the server 'h' was called before with another path")
    assert caplog.messages[0].endswith("the endpoint is /other.")
    with TestClient(first) as client:
        assert client.get("/mcp").status_code == 404
