"""HTTP triggers beside MCP triggers: routes, methods, keys and responses."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from funcmcp_host.served import PATH, FunctionsHost, HostSettings
from tests.functions_host.apps import write_app, write_node_app
from tests.functions_host.host_requests import HostRequest
from tests.nodejs import node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpResponse

APP = '''
import json
import os
import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)


def answer(req, name):
    seen = [name, req.method, req.url, dict(req.params), dict(req.route_params), req.get_body().decode()]
    return func.HttpResponse(json.dumps(seen), mimetype="application/json")


@app.route(route="orders/{id:int}", methods=["GET", "POST"])
def order(req: func.HttpRequest) -> func.HttpResponse:
    return answer(req, "order")


@app.route(route="orders/{name}")
def other(req: func.HttpRequest) -> func.HttpResponse:
    return answer(req, "other")


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
    raise ValueError("the secret of the house", req.get_body().decode())


@app.route(route="nothing")
def nothing(req: func.HttpRequest):
    return None


@app.route(route="guarded", auth_level=func.AuthLevel.FUNCTION)
def guarded(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("in " + str("x-functions-key" in req.headers))


@app.route(route="seen", auth_level=func.AuthLevel.FUNCTION)
def seen(req: func.HttpRequest) -> func.HttpResponse:
    variables = sorted(name for name in os.environ if name.startswith("FUNCMCP_"))
    return func.HttpResponse(json.dumps([req.url, dict(req.params), dict(req.headers), variables]))


@app.route(route="seen/{*rest}", auth_level=func.AuthLevel.FUNCTION)
@app.blob_output(arg_name="blob", connection="Files", path="seen/{headers.x-name}")
def stored(req: func.HttpRequest, blob: func.Out[str]) -> str:
    blob.set("stored")
    return "stored"


@app.route(route="master", auth_level=func.AuthLevel.ADMIN)
def master(req: func.HttpRequest) -> func.HttpResponse:
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
    return await host.exchange(HostRequest(method, path, query, **more))


def body_of(response: HttpResponse) -> bytes:
    assert isinstance(response.body, bytes)
    return response.body


async def test_a_request_reaches_its_function_with_everything(host: FunctionsHost) -> None:
    response = await send(host, "POST", "/api/orders/7", "a=1&b=x%20y", body=b"hi")
    assert response.status == 200
    assert dict(response.headers)["content-type"] == "application/json"
    url = "http://localhost:7071/api/orders/7?a=1&b=x%20y"
    assert json.loads(body_of(response)) == ["order", "POST", url, {"a": "1", "b": "x y"}, {"id": "7"}, "hi"]


async def test_values_of_a_query_parameter_are_joined_whatever_its_case(host: FunctionsHost) -> None:
    response = await send(host, "GET", "/api/orders/7", "role=user&x=&Role=a%2Cb&y&ROLE=+c&%72ole=d")
    assert json.loads(body_of(response))[3] == {"role": "user,a,b, c,d", "x": "", "y": ""}


async def test_a_function_gets_a_url_whose_path_is_the_one_that_was_checked(host: FunctionsHost) -> None:
    async def url(path: str, query: str = "") -> str:
        seen: str = json.loads(body_of(await send(host, "GET", path, query)))[2]
        return seen.removeprefix("http://localhost:7071/api/orders/")

    assert await url("/api/orders/a%20b%3Fx%23y", "z=%3F") == "a%20b%3Fx%23y?z=%3F"
    assert await url("/api/orders/%C3%BC%0d%0ax:1") == "%C3%BC%0D%0Ax:1"
    assert await url("/api/orders/%252e%252e") == "%252e%252e"  # no ".." for a program that decodes it once more
    assert await url("/api/orders/a%2Fb%2fc") == "a%2Fb%2fc"
    assert await url("/api/orders/%zz%25252F") == "%25zz%25252F"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/orders/7", "order"),
        ("/api/orders/x", "other"),
        ("/API/Orders/SPECIAL", "other"),
    ],
)
async def test_routes_are_tried_in_the_order_of_the_names_of_their_functions(
    host: FunctionsHost, path: str, name: str
) -> None:
    response = await send(host, "GET", path)
    assert json.loads(body_of(response))[0] == name


async def test_functions_that_azure_rejects_are_left_out_and_shadowed_ones_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = """
import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)


@app.route(route="{*rest}")
def everything(req: func.HttpRequest) -> str:
    return "everything"


@app.route(route="list")
def listing(req: func.HttpRequest) -> str:
    return "listing"


@app.route(route="LIST", methods=["GET"])
def listing_again(req: func.HttpRequest) -> str:
    return "again"


@app.route()
def administrate(req: func.HttpRequest) -> str:
    return "administrate"
"""
    settings = {"extensions": {"http": {"routePrefix": ""}}}
    host = FunctionsHost(write_app(tmp_path, code, host=settings), dict(os.environ), HostSettings(engine="library"))
    await host.start()
    try:
        reasons = {left_out.function: left_out.reason for left_out in host.left_out}
        assert "is that of the function listing as well" in reasons.pop("listing_again")
        assert "which the Functions host reserves" in reasons.pop("administrate")
        assert not reasons
        assert "The function everything ({*rest}) gets the requests of the function listing (list)" in caplog.text
        for path, status in (("/x", 200), ("/admin/x", 404), ("/Admin", 404), ("/runtime/webhooks/x", 404)):
            assert (await send(host, "GET", path)).status == status
        assert (await send(host, "GET", "/Runtime/Webhooks/MCP")).status == 405
    finally:
        await host.aclose()


async def test_responses_keep_status_headers_and_cookies(host: FunctionsHost) -> None:
    response = await send(host, "DELETE", "/api/files/a/b%20c/d")
    headers = dict(response.headers)
    assert (response.status, headers["x-path"], body_of(response)) == (202, "a/b c/d", b"\x00")
    assert headers["set-cookie"] == "a=1"
    assert "content-length" not in headers
    plain = await send(host, "GET", "/api/plain")
    assert (plain.status, body_of(plain)) == (200, b"plain text")


async def test_failures_are_500_without_their_text(host: FunctionsHost, caplog: pytest.LogCaptureFixture) -> None:
    response = await send(host, "GET", "/api/fail")
    assert response.status == 500
    assert b"secret" not in body_of(response)
    assert "the secret of the house" in caplog.text


async def test_texts_of_callers_are_short_and_escaped_in_the_log(
    host: FunctionsHost, caplog: pytest.LogCaptureFixture
) -> None:
    body = b"first\n2026-01-01 ERROR forged\x1b[2J" + b"x" * 1_000_000
    assert (await send(host, "POST", "/api/fail", body=body)).status == 500
    (message,) = [record.getMessage() for record in caplog.records if "fail failed" in record.getMessage()]
    assert "2026-01-01 ERROR forged" in message
    assert message.isprintable()
    assert len(message) < 3000


async def test_a_function_that_returns_nothing_is_500_and_named(
    host: FunctionsHost, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await send(host, "GET", "/api/nothing")).status == 500
    assert "The function nothing failed. TypeError: the function returned a value of type NoneType" in caplog.text


async def test_blobs_of_http_functions(host: FunctionsHost) -> None:
    assert (await send(host, "PUT", "/api/notes/n", body=b"text")).status == 204
    assert (host.folder.path / ".funcmcp/storage/Files/notes/n").read_text() == "text"
    assert (await send(host, "PUT", "/api/notes/..", body=b"text")).status == 404
    assert (await send(host, "PUT", "/api/seen/a", **{"x-name": ".."})).status == 500


async def test_no_dot_segment_and_no_encoded_slash_reaches_a_function(host: FunctionsHost) -> None:
    async def rest(path: str) -> str | None:
        response = await send(host, "GET", f"/api/files/{path}")
        return dict(response.headers)["x-path"] if response.status == 202 else None

    assert await rest("a/b%20c%2Fd/%65") == "a/b c%2Fd/e"
    assert await rest("a/../b/./c") == "b/c"
    for path in ("%2e%2e/%2e%2e/a/b", "../../etc", "..%2f..%2fa", "..\\..\\a", "..%5Ca", "..;/a", "%00"):
        assert await rest(path) is None


async def test_what_is_not_a_trigger(host: FunctionsHost) -> None:
    assert (await send(host, "GET", "/api/absent")).status == 404
    assert (await send(host, "GET", "/orders/7")).status == 404
    refused = await send(host, "GET", "/api/notes/n")
    assert (refused.status, dict(refused.headers)["allow"]) == (405, "PUT")
    for name, value, status in (("host", "evil.example", 421), ("origin", "https://evil.example", 403)):
        headers: dict[str, Any] = {name: value}
        response = await host.exchange(HostRequest("GET", "/api/orders/7", **headers))
        assert response.status == status


async def test_the_mcp_endpoint_is_there_as_well(host: FunctionsHost) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tool"}}).encode()
    headers = {"content-type": "application/json", "accept": "*/*"}
    response = await send(host, "POST", PATH, body=message, **headers)
    assert json.loads(body_of(response))["result"]["content"][0]["text"] == "tool"
    assert host.summary.startswith("1 tool, 12 HTTP triggers (Python")


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
            ("master", DEFAULT, 401),
            ("master", MASTER, 200),
        ):
            headers = {} if key is None else {"x-functions-key": key}
            response = await send(host, "GET", f"/api/{path}", **headers)
            assert response.status == status, (path, key)
            if path == "guarded" and status == 200:
                assert body_of(response) == b"in False"  # the key does not reach the app
        assert (await send(host, "GET", "/api/guarded", f"code={DEFAULT}")).status == 200
    finally:
        await host.aclose()


async def test_a_function_sees_no_key_of_the_host(tmp_path: Path) -> None:
    keys = {"FUNCMCP_HOST_KEYS": f"default={DEFAULT},_master={MASTER}", "FUNCMCP_KEYS": "s" * 32}
    host = FunctionsHost(write_app(tmp_path, APP), {**os.environ, **keys}, HostSettings(engine="library"))
    await host.start()
    try:
        for query, headers in (
            (f"a=1&code={DEFAULT}", {}),
            ("a=1", {"x-functions-key": MASTER}),
            (f"a=1&code={DEFAULT}", {"x-functions-key": MASTER}),
        ):
            response = await send(host, "GET", "/api/seen", query, **headers)
            assert response.status == 200
            url, params, received, variables = json.loads(body_of(response))
            assert (url, params) == ("http://localhost:7071/api/seen?a=1", {"a": "1"})
            assert received == {"host": "localhost:7071"}
            assert not variables or variables == ["FUNCMCP_APP_LOG_LEVEL"]
        response = await send(host, "GET", "/api/orders/7", "code=of-a-sign-in")
        assert json.loads(body_of(response))[3] == {"code": "of-a-sign-in"}
        headers = {"x-functions-key": DEFAULT, "x-name": "a"}
        assert (await send(host, "GET", "/api/seen/b", **headers)).status == 200
        assert (tmp_path / ".funcmcp/storage/Files/seen/a").read_text() == "stored"
    finally:
        await host.aclose()


FRONT_END = {
    "x-ms-client-principal": "forged",
    "x-ms-client-principal-id": "forged",
    "x_ms_client_principal_name": "forged",
    "x-ms-token-aad-access-token": "forged",
    "x-arr-clientcert": "forged",
    "x-forwarded-client-cert": "forged",
}


@pytest.mark.parametrize("trusts_proxy", [False, True])
async def test_only_a_proxy_says_who_the_caller_is(trusts_proxy: bool, tmp_path: Path) -> None:
    settings = HostSettings(engine="library", trusts_proxy=trusts_proxy)
    host = FunctionsHost(write_app(tmp_path, APP), dict(os.environ), settings)
    await host.start()
    try:
        response = await send(
            host, "GET", "/api/seen", **FRONT_END, **{"x-ms-custom": "1", "authorization": "Bearer t"}
        )
        expected = {"host": "localhost:7071", "x-ms-custom": "1", "authorization": "Bearer t"}
        assert json.loads(body_of(response))[2] == (expected | FRONT_END if trusts_proxy else expected)
    finally:
        await host.aclose()


IMAGE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", IMAGE, 403),
        ("HEAD", IMAGE, 403),
        ("GET", LINK, 403),
        ("GET", {**LINK, "sec-fetch-user": "?1"}, 403),
        ("GET", {**IMAGE, "host": "127.0.0.1:7071"}, 403),
        ("GET", {**IMAGE, "origin": "http://localhost:3000"}, 200),  # a page of this machine, checked by its Origin
        ("GET", {**LINK, "sec-fetch-site": "same-site"}, 200),
        ("GET", {**LINK, "sec-fetch-site": "same-origin"}, 200),
        ("GET", {**LINK, "sec-fetch-site": "none"}, 200),
        ("GET", {}, 200),
        ("GET", {"host": "0.0.0.0:7071"}, 421),  # browsers send it no Sec-Fetch-Site
    ],
)
async def test_a_page_of_another_site_runs_no_function(
    host: FunctionsHost, method: str, headers: dict[str, Any], status: int
) -> None:
    response = await host.exchange(HostRequest(method, "/api/plain", "", b"", **headers))
    assert response.status == status
    assert (b"--allow-cross-site" in body_of(response)) is (status == 403)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_page_of_another_site_may_send_a_key_or_be_allowed(tmp_path: Path) -> None:
    keys = {"FUNCMCP_HOST_KEYS": f"default={DEFAULT}"}
    folder = write_app(tmp_path, APP)
    host = FunctionsHost(folder, {**os.environ, **keys}, HostSettings(engine="library"))
    await host.start()
    try:
        assert (await send(host, "GET", "/api/guarded", f"code={DEFAULT}", **LINK)).status == 200
        assert (await send(host, "GET", "/api/guarded", **LINK)).status == 401
        assert (await send(host, "GET", "/api/plain", **LINK)).status == 403
    finally:
        await host.aclose()
    host = FunctionsHost(folder, dict(os.environ), HostSettings(engine="library", allows_cross_site=True))
    await host.start()
    try:
        assert (await send(host, "GET", "/api/plain", **LINK)).status == 200
    finally:
        await host.aclose()


async def test_a_link_reaches_an_app_with_a_public_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCMCP_ALLOWED_HOSTS", "app.example.com")
    host = FunctionsHost(write_app(tmp_path, APP), dict(os.environ), HostSettings(engine="library"))
    await host.start()
    try:
        assert (
            await host.exchange(HostRequest("GET", "/api/plain", "", b"", host="app.example.com", **LINK))
        ).status == 200
    finally:
        await host.aclose()


@pytest.mark.parametrize(
    ("address", "keys", "closed"),
    [
        ("127.0.0.1", "", set()),
        ("0.0.0.0", "", {"guarded", "master"}),
        ("0.0.0.0", f"default={DEFAULT}", {"master"}),
        ("0.0.0.0", f"mcp_extension={DEFAULT}", {"guarded", "master"}),
        ("127.0.0.1", f"mcp_extension={DEFAULT}", {"guarded", "master"}),
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
        for path, level in (("guarded", "function"), ("master", "admin")):
            is_closed = path in closed
            named = f"The function {path} (level {level}) answers every request with 401. Set FUNCMCP_HOST_KEYS="
            assert (named in caplog.text) is is_closed
            key = {"x-functions-key": keys.rpartition("=")[2]}
            assert (await send(host, "GET", f"/api/{path}", **key)).status == (401 if is_closed else 200)
        assert (await send(host, "GET", "/api/orders/7")).status == 200  # of the level anonymous
        open_to_all = (
            "HTTP triggers of the level anonymous are open to every machine that reaches the app: fail, files, nothing"
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
