"""HTTP triggers beside MCP triggers: routes, methods, keys and responses."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from funcmcp.functions_host.bindings import BindingError
from funcmcp.functions_host.routes import RouteTemplate
from funcmcp.functions_host.served import PATH, FunctionsHost, HostSettings
from funcmcp.transports.http.messages import HttpRequest
from tests.functions_host.apps import write_app, write_node_app
from tests.nodejs import node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp.transports.http.messages import HttpResponse, Received

APP = '''
import json
import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)


def answer(req, name):
    seen = [name, req.method, req.url, dict(req.params), dict(req.route_params), req.get_body().decode()]
    return func.HttpResponse(json.dumps(seen), mimetype="application/json")


@app.route(route="orders/{id:int}", methods=["GET", "POST"])
def order(req: func.HttpRequest) -> func.HttpResponse:
    return answer(req, "order")


@app.route(route="orders/{name}")
def named(req: func.HttpRequest) -> func.HttpResponse:
    return answer(req, "named")


@app.route(route="orders/special")
def special(req: func.HttpRequest) -> func.HttpResponse:
    return answer(req, "special")


@app.route(route="files/{*path}")
def files(req: func.HttpRequest) -> func.HttpResponse:
    response = func.HttpResponse(b"\\x00", status_code=202, headers={"x-path": req.route_params["path"]})
    response.headers.add("Set-Cookie", "a=1")
    return response


@app.route()
def plain(req: func.HttpRequest) -> str:
    return "plain text"


@app.route(route="fail")
def fail(req: func.HttpRequest) -> func.HttpResponse:
    raise ValueError("the secret of the house")


@app.route(route="guarded", auth_level=func.AuthLevel.FUNCTION)
def guarded(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("in " + str("x-functions-key" in req.headers))


@app.route(route="admin", auth_level=func.AuthLevel.ADMIN)
def admin(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("in")


@app.route(route="notes/{name}", methods=["PUT"])
@app.blob_output(arg_name="blob", connection="Files", path="notes/{name}")
def put(req: func.HttpRequest, blob: func.Out[str]) -> func.HttpResponse:
    blob.set(req.get_body().decode())
    return func.HttpResponse(status_code=204)


@app.mcp_tool()
def tool() -> str:
    """A tool."""
    return "tool"
'''
pytestmark = pytest.mark.asyncio(loop_scope="module")
DEFAULT, MASTER = "d" * 16, "M" * 16


class Request(HttpRequest):
    def __init__(self, method: str, path: str, query: str = "", body: bytes = b"", **headers: str) -> None:
        pairs = {"host": "localhost:7071", **headers}
        super().__init__(method, path, [(name.encode(), text.encode()) for name, text in pairs.items()], "127.0.0.1")
        self._body = body
        self._query_string = query

    async def read(self, limit: int, received: Received | None = None) -> bytes:
        return self._body

    @property
    def query_string(self) -> str:
        return self._query_string


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FunctionsHost]:
    folder = write_app(tmp_path_factory.mktemp("app"), APP)
    host = FunctionsHost(folder, dict(os.environ), HostSettings(engine="library"))
    await host.start()
    try:
        yield host
    finally:
        await host.aclose()


async def send(host: FunctionsHost, method: str, path: str, query: str = "", **more: Any) -> HttpResponse:
    return await host.exchange(Request(method, path, query, **more))


def body_of(response: HttpResponse) -> bytes:
    assert isinstance(response.body, bytes)
    return response.body


async def test_a_request_reaches_its_function_with_everything(host: FunctionsHost) -> None:
    response = await send(host, "POST", "/api/orders/7", "a=1&b=x%20y", body=b"hi")
    assert response.status == 200
    assert dict(response.headers)["content-type"] == "application/json"
    url = "http://localhost:7071/api/orders/7?a=1&b=x%20y"
    assert json.loads(body_of(response)) == ["order", "POST", url, {"a": "1", "b": "x y"}, {"id": "7"}, "hi"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/orders/7", "order"),
        ("/api/orders/x", "named"),
        ("/api/orders/special", "special"),
        ("/API/Orders/SPECIAL", "special"),
    ],
)
async def test_the_most_literal_route_that_matches_is_taken(host: FunctionsHost, path: str, name: str) -> None:
    response = await send(host, "GET", path)
    assert json.loads(body_of(response))[0] == name


async def test_responses_keep_status_headers_and_cookies(host: FunctionsHost) -> None:
    response = await send(host, "DELETE", "/api/files/a/b%20c/d")
    headers = dict(response.headers)
    assert (response.status, headers["x-path"], body_of(response)) == (202, "a/b%20c/d", b"\x00")
    assert headers["set-cookie"] == "a=1"
    assert "content-length" not in headers
    plain = await send(host, "GET", "/api/plain")
    assert (plain.status, body_of(plain)) == (200, b"plain text")


async def test_failures_are_500_without_their_text(host: FunctionsHost, caplog: pytest.LogCaptureFixture) -> None:
    response = await send(host, "GET", "/api/fail")
    assert response.status == 500
    assert b"secret" not in body_of(response)
    assert "the secret of the house" in caplog.text


async def test_blobs_of_http_functions(host: FunctionsHost) -> None:
    assert (await send(host, "PUT", "/api/notes/n", body=b"text")).status == 204
    assert (host.folder.path / ".funcmcp/storage/Files/notes/n").read_text() == "text"
    assert (await send(host, "PUT", "/api/notes/..", body=b"text")).status == 500


async def test_what_is_not_a_trigger(host: FunctionsHost) -> None:
    assert (await send(host, "GET", "/api/nothing")).status == 404
    assert (await send(host, "GET", "/orders/7")).status == 404
    refused = await send(host, "GET", "/api/notes/n")
    assert (refused.status, dict(refused.headers)["allow"]) == (405, "PUT")
    for name, value, status in (("host", "evil.example", 421), ("origin", "https://evil.example", 403)):
        headers: dict[str, Any] = {name: value}
        response = await host.exchange(Request("GET", "/api/orders/7", **headers))
        assert response.status == status


async def test_the_mcp_endpoint_is_there_as_well(host: FunctionsHost) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tool"}}).encode()
    headers = {"content-type": "application/json", "accept": "*/*"}
    response = await send(host, "POST", PATH, body=message, **headers)
    assert json.loads(body_of(response))["result"]["content"][0]["text"] == "tool"
    assert host.summary.startswith("1 tool, 9 HTTP triggers (Python")


async def test_keys_by_level(tmp_path: Path) -> None:
    environment = {**os.environ, "FUNCMCP_HOST_KEYS": f"default={DEFAULT},_master={MASTER}"}
    host = FunctionsHost(write_app(tmp_path, APP), environment, HostSettings(engine="library"))
    await host.start()
    try:
        for path, key, status in (
            ("orders/7", None, 200),
            ("guarded", None, 401),
            ("guarded", "wrong", 401),
            ("guarded", DEFAULT, 200),
            ("guarded", MASTER, 200),
            ("admin", DEFAULT, 401),
            ("admin", MASTER, 200),
        ):
            headers = {} if key is None else {"x-functions-key": key}
            response = await send(host, "GET", f"/api/{path}", **headers)
            assert response.status == status, (path, key)
            if path == "guarded" and status == 200:
                assert body_of(response) == b"in False"  # the key does not reach the app
        assert (await send(host, "GET", "/api/guarded", f"code={DEFAULT}")).status == 200
    finally:
        await host.aclose()


@pytest.mark.parametrize(
    ("address", "keys", "closed"),
    [
        ("127.0.0.1", "", set()),
        ("0.0.0.0", "", {"guarded", "admin"}),
        ("0.0.0.0", f"default={DEFAULT}", {"admin"}),
        ("0.0.0.0", f"mcp_extension={DEFAULT}", {"guarded", "admin"}),
        ("127.0.0.1", f"mcp_extension={DEFAULT}", {"guarded", "admin"}),
        ("0.0.0.0", f"_master={MASTER}", set()),
    ],
)
async def test_a_level_without_a_key_is_closed_and_named_at_the_start(
    address: str, keys: str, closed: set[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = {"extensions": {"mcp": {"system": {"webhookAuthorizationLevel": "Anonymous"}}}}
    environment = {**os.environ, "FUNCMCP_HOST_KEYS": keys}
    settings = HostSettings(host=address, engine="library")
    host = FunctionsHost(write_app(tmp_path, APP, host=opened), environment, settings)
    await host.start()
    try:
        assert not host.needs_keys
        for path, level in (("guarded", "function"), ("admin", "admin")):
            is_closed = path in closed
            named = f"The function {path} (level {level}) answers every request with 401. Set FUNCMCP_HOST_KEYS="
            assert (named in caplog.text) is is_closed
            key = {"x-functions-key": keys.rpartition("=")[2]}
            assert (await send(host, "GET", f"/api/{path}", **key)).status == (401 if is_closed else 200)
        assert (await send(host, "GET", "/api/orders/7")).status == 200  # of the level anonymous
        open_to_all = (
            "HTTP triggers of the level anonymous are open to every machine that reaches the app: fail, files, named"
        )
        assert (open_to_all in caplog.text) is (address == "0.0.0.0")
        open_endpoint = "The MCP endpoint is open to every machine that reaches 0.0.0.0: host.json sets"
        assert (open_endpoint in caplog.text) is (address == "0.0.0.0" and keys in {"", f"default={DEFAULT}"})
    finally:
        await host.aclose()


async def test_the_prefix_of_host_json(tmp_path: Path) -> None:
    settings = {"extensions": {"http": {"routePrefix": ""}}}
    host = FunctionsHost(write_app(tmp_path, APP, host=settings), dict(os.environ), HostSettings(engine="library"))
    await host.start()
    try:
        assert (await send(host, "GET", "/orders/7")).status == 200
        assert (await send(host, "GET", "/api/orders/7")).status == 404
    finally:
        await host.aclose()


async def test_a_node_app(tmp_path: Path) -> None:
    code = """
const { app } = require("@azure/functions");
app.http("hello", {
    authLevel: "anonymous",
    handler: async (request) => ({ body: "hello " + (await request.text()) }),
});
app.http("nothing", { authLevel: "anonymous", handler: async () => undefined });
"""
    host = FunctionsHost(write_node_app(tmp_path, {"index.js": code}), dict(os.environ), HostSettings(node=str(node())))
    await host.start()
    try:
        response = await send(host, "POST", "/api/hello", body=b"you")
        assert (response.status, body_of(response)) == (200, b"hello you")
        assert (await send(host, "GET", "/api/nothing")).status == 204
    finally:
        await host.aclose()


@pytest.mark.parametrize(
    ("route", "path", "values"),
    [
        ("a/{b}", "/a/x", {"b": "x"}),
        ("a/{b}", "/a", None),
        ("a/{b}", "/a/x/y", None),
        ("a/{b?}", "/a", {}),
        ("a/{b=5}", "/a", {"b": "5"}),
        ("a/{b:int}", "/a/x", None),
        ("a/{b:guid}", "/a/0f8fad5b-d9cb-469f-a165-70867728950e", {"b": "0f8fad5b-d9cb-469f-a165-70867728950e"}),
        ("a/{b:length(2)}", "/a/xyz", None),
        ("a/{b:min(3)}", "/a/2", None),
        ("a/{b:min(3)}", "/a/3", {"b": "3"}),
        ("a/{b:min(3)}", "/a/x", None),
        ("a/{b:int:range(1,5)}", "/a/5", {"b": "5"}),
        ("a/{b}.json", "/a/x.json", {"b": "x"}),
        ("a/{b}.json", "/a/.json", None),
        ("{*rest}", "/x/y", {"rest": "x/y"}),
        ("a/{**rest}", "/a", {"rest": ""}),
        ("a/{**rest}", "/b", None),
        ("a", "/a/", {}),
    ],
)
async def test_routes(route: str, path: str, values: dict[str, str] | None) -> None:
    assert RouteTemplate(route).match(path) == values


async def test_a_constraint_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(BindingError, match="can't be read"):
        RouteTemplate("a/{b:min(x)}")
