"""A server as HTTP-triggered functions, loaded and invoked by Microsoft's worker library."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from funcmcp import Auth, Context, HTTPOptions, MCPServer
from funcmcp._serving import configuration_checks
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.messages import HttpResponse
from tests.azure.serving import write_app, write_sample
from tests.azure.worker import http_input, needs_worker, worker
from tests.oauth_proxy.stage import Stage
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpRequest
    from tests.azure.worker import Invoked, Worker

pytestmark = pytest.mark.every_python("Python 3.13 has another azure-functions.")
_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

URL = "https://shop.azurewebsites.net/api/mcp"
DEPLOYED = {"WEBSITE_HOSTNAME": "shop.azurewebsites.net"}
HEADERS = {
    "Host": "shop.azurewebsites.net",
    "X-Forwarded-Proto": "https",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
PER_REQUEST = {**HEADERS, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
SERVER = """
import asyncio
import json
import os

import azure.functions as func

import funcmcp.azure
from funcmcp import MCPServer, Context
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.policy import Auth


class Shop:
    pass


def note(word):
    with open(os.environ["NOTES"], "a") as notes:
        print(word, file=notes)


async def opened():
    note("opened")
    await asyncio.sleep(0.05)
    yield Shop()
    note("closed")


mcp = MCPServer("shop")
mcp.services.register_factory(Shop, opened, scope="app")

@mcp.add_lifespan
async def lifespan():
    note("entered")
    await asyncio.sleep(0.05)
    yield "value"
    note("left")

@mcp.tool
def where(context: Context, shop: Shop) -> str:
    assert context.lifespan_context == "value"
    return context.http_request.url

app = func.FunctionApp()

@app.route(route="other", auth_level="anonymous")
def other(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("as before")

funcmcp.azure.http_app(mcp, app=app)
"""
GUARDED = """
import funcmcp.azure
from funcmcp import MCPServer
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.policy import Auth

resource = funcmcp.azure.protected_resource(["https://login.example.com"], scopes=["shop.read"])
mcp = MCPServer("shop", auth=Auth(APIKeys({"me": "kq3vJ8wZ1xP5sT7u"}), resource=resource))

@mcp.tool
def hello() -> str:
    return "hello"

app = funcmcp.azure.http_app(mcp)
"""

TWO = """
import azure.functions as func

import funcmcp.azure
from funcmcp import MCPServer
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.policy import Auth

app = func.FunctionApp()
for name in ("one", "two"):
    resource = funcmcp.azure.protected_resource(["https://login.example.com"], route=name)
    auth = Auth(APIKeys({"me": "kq3vJ8wZ1xP5sT7u"}), resource=resource)
    funcmcp.azure.http_app(MCPServer(name, auth=auth), route=name, app=app)
"""


def where(host: str = "shop.azurewebsites.net") -> Any:
    """Return the value of an HTTP trigger that calls the tool."""
    params = {"name": "where", "arguments": {}, "_meta": ENVELOPE}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    return http_input("POST", f"{URL}?x=1", {**PER_REQUEST, "Mcp-Name": "where", "Host": host}, body)


def initialize(loaded: Worker, headers: dict[str, str] | None = None) -> Invoked:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    return loaded.invoke_http(
        "mcp", "POST", URL, headers={**HEADERS, **(headers or {})}, body=json.dumps(body).encode()
    )


def triggers(loaded: Worker) -> list[dict[str, Any]]:
    return [
        {"name": function.name, **{key: function.trigger[key] for key in ("methods", "authLevel", "route")}}
        for function in loaded.functions.values()
        if "methods" in function.trigger
    ]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes.txt"


@needs_worker
def test_the_functions_of_a_server_stand_beside_those_of_the_app(tmp_path: Path, notes: Path) -> None:
    with worker(write_app(tmp_path, SERVER, prefix="api"), env={**DEPLOYED, "NOTES": str(notes)}) as loaded:
        assert list(loaded.functions) == ["other", "mcp", "mcp_preflight", "mcp_livez", "mcp_readyz"]
        assert triggers(loaded) == [
            {"name": "mcp", "methods": ["POST", "GET", "DELETE"], "authLevel": "FUNCTION", "route": "mcp"},
            {"name": "mcp_preflight", "methods": ["OPTIONS"], "authLevel": "ANONYMOUS", "route": "mcp"},
            {"name": "mcp_livez", "methods": ["GET", "HEAD"], "authLevel": "ANONYMOUS", "route": "livez"},
            {"name": "mcp_readyz", "methods": ["GET", "HEAD"], "authLevel": "ANONYMOUS", "route": "readyz"},
        ]
        probe = loaded.invoke_http("mcp_readyz", "GET", "https://10.0.0.7/api/readyz", headers={"host": "10.0.0.7"})
        assert (probe.value["status_code"], probe.value["body"]) == (200, b"ok\n")
        assert (
            loaded.invoke_http("other", "GET", "https://shop.azurewebsites.net/api/other").value["body"] == b"as before"
        )


@needs_worker
def test_a_deployed_app_answers_on_its_own_name_at_once_and_on_no_other(tmp_path: Path, notes: Path) -> None:
    with worker(write_app(tmp_path, SERVER), env={**DEPLOYED, "NOTES": str(notes)}) as loaded:
        answered = initialize(loaded)
        assert answered.value["status_code"] == 200
        assert "mcp-session-id" in answered.value["headers"]
        assert answered.value["headers"]["content-type"] == "application/json"
        for host in ("evil.example.com", "localhost:7071", "127.0.0.1"):
            assert initialize(loaded, {"Host": host}).value["status_code"] == 421


@needs_worker
def test_32_first_requests_at_once_start_the_services_once(tmp_path: Path, notes: Path) -> None:
    with worker(write_app(tmp_path, SERVER), env={**DEPLOYED, "NOTES": str(notes)}) as loaded:
        calls = [loaded.submit("mcp", {"req": where()}) for _ in range(32)]
        answers = [json.loads(call.result(PATIENCE).value["body"]) for call in calls]
    assert {answer["result"]["content"][0]["text"] for answer in answers} == {f"{URL}?x=1"}
    assert notes.read_text().split().count("opened") == 1
    assert notes.read_text().split().count("entered") == 1


@needs_worker
def test_services_are_closed_when_the_worker_is_told_to_end(tmp_path: Path, notes: Path) -> None:
    with worker(write_app(tmp_path, SERVER), env={**DEPLOYED, "NOTES": str(notes)}) as loaded:
        loaded.invoke("mcp", {"req": where()})
        loaded.terminate()
        assert loaded.exit_code() == -signal.SIGTERM
    assert notes.read_text().split() == ["entered", "opened", "closed", "left"]


@needs_worker
def test_services_are_closed_when_the_worker_closes_its_event_loop(tmp_path: Path, notes: Path) -> None:
    with worker(write_app(tmp_path, SERVER), env={**DEPLOYED, "NOTES": str(notes)}) as loaded:
        loaded.invoke("mcp", {"req": where()})
        loaded.finish()
        assert loaded.exit_code() == 0
    # The worker cancels all tasks at once, so the lifespan may end before the services.
    assert notes.read_text().split()[:2] == ["entered", "opened"]
    assert sorted(notes.read_text().split()[2:]) == ["closed", "left"]


@needs_worker
@pytest.mark.parametrize("prefix", ["", "api"])
def test_the_challenge_leads_to_the_metadata_wherever_the_functions_are(tmp_path: Path, prefix: str) -> None:
    with worker(write_app(tmp_path, GUARDED, prefix=prefix), env=DEPLOYED) as loaded:
        assert loaded.functions["mcp"].trigger["authLevel"] == "ANONYMOUS"
        own = ".well-known/oauth-protected-resource" + (f"/{prefix}" if prefix else "") + "/mcp"
        assert loaded.functions["mcp_metadata"].trigger["route"] == own
        refused = initialize(loaded).value
        base = "https://shop.azurewebsites.net" + (f"/{prefix}" if prefix else "")
        place = f"{base}/{own}"
        assert refused["status_code"] == 401
        assert f'resource_metadata="{place}"' in refused["headers"]["www-authenticate"]
        told = loaded.invoke_http("mcp_metadata", "GET", place, headers=HEADERS).value
        assert told["status_code"] == 200
        assert json.loads(told["body"])["resource"] == f"{base}/mcp"
        assert ("mcp_metadata_root" in loaded.functions) == (not prefix)


@needs_worker
@pytest.mark.parametrize("prefix", ["", "api"])
def test_two_servers_in_one_app_have_metadata_of_their_own(tmp_path: Path, prefix: str) -> None:
    with worker(write_app(tmp_path, TWO, prefix=prefix), env=DEPLOYED) as loaded:
        routes = [(f.trigger["route"], method) for f in loaded.functions.values() for method in f.trigger["methods"]]
        assert len(set(routes)) == len(routes)  # the host refuses a function whose route another one has
        for name in ("one", "two"):
            refused = loaded.invoke_http(name, "POST", "https://shop.azurewebsites.net/", headers=HEADERS).value
            place = refused["headers"]["www-authenticate"].partition('resource_metadata="')[2].partition('"')[0]
            assert place.endswith(loaded.functions[f"{name}_metadata"].trigger["route"])
            told = loaded.invoke_http(f"{name}_metadata", "GET", place, headers=HEADERS).value
            assert json.loads(told["body"])["resource"].endswith(f"/{name}")


@pytest.mark.parametrize("route", ["", "/", "admin/mcp", "Runtime/x"])
def test_a_route_that_the_host_would_not_serve_is_refused(route: str) -> None:
    azure = pytest.importorskip("funcmcp.azure")
    pytest.importorskip("azure.functions")
    with pytest.raises(ValueError, match="Functions host"):
        azure.http_app(MCPServer("shop"), route=route)


@pytest.mark.parametrize(("route", "name"), [("2024/mcp", "mcp_2024_mcp"), ("Host", "mcp_Host"), ("{*any}", "any")])
def test_a_functions_name_is_one_that_the_host_takes(route: str, name: str) -> None:
    azure = pytest.importorskip("funcmcp.azure")
    pytest.importorskip("azure.functions")
    functions = azure.http_app(MCPServer("shop"), route=route).get_functions()
    names = [function.get_function_name() for function in functions]
    assert names == [name, f"{name}_preflight", f"{name}_livez", f"{name}_readyz"]


def test_the_health_endpoints_leave_routes_of_the_app_alone_and_can_be_switched_off() -> None:
    azure = pytest.importorskip("funcmcp.azure")
    func = pytest.importorskip("azure.functions")
    app = func.FunctionApp()

    def alive(_req: object) -> str:
        return "mine"

    app.route(route="Livez")(app.function_name("alive")(alive))
    first = MCPServer("one")
    first.custom_route("/readyz", methods=["GET"])(lambda _request: "mine")
    azure.http_app(first, route="one", app=app)
    azure.http_app(MCPServer("two"), route="two", app=app)
    names = [function.get_function_name() for function in app.get_functions()]
    assert names == ["alive", "one", "one_route_1", "one_preflight", "two", "two_preflight"]
    switched_off = azure.http_app(MCPServer("three", http=HTTPOptions(health=False))).get_functions()
    assert [function.get_function_name() for function in switched_off] == ["mcp", "mcp_preflight"]


@pytest.mark.parametrize(("page", "status"), [(None, 405), (True, 200)])
async def test_browsers_get_the_page_only_if_it_is_switched_on(page: bool | None, status: int) -> None:
    azure = pytest.importorskip("funcmcp.azure")
    functions = pytest.importorskip("azure.functions")
    [endpoint, *_] = azure.http_app(MCPServer("shop", http=HTTPOptions(page=page))).get_functions()
    headers = {"host": "localhost:7071", "accept": "text/html"}
    request = functions.HttpRequest("GET", "http://localhost:7071/api/mcp?code=key", headers=headers, body=b"")
    response = await endpoint.get_user_function()(request)
    assert response.status_code == status
    assert response.get_body().startswith(b"<!doctype html>") is (status == 200)


@needs_worker
def test_a_browsers_preflight_needs_no_key(tmp_path: Path) -> None:
    allowing = "http = funcmcp.HTTPOptions(allowed_origins=['https://a.example'])\nmcp = MCPServer('shop', http=http"
    code = GUARDED.replace('mcp = MCPServer("shop"', allowing)
    with worker(write_app(tmp_path, code), env=DEPLOYED) as loaded:
        asked = {**HEADERS, "Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
        answer = loaded.invoke_http("mcp_preflight", "OPTIONS", URL, headers=asked).value
    assert answer["status_code"] == 204
    assert answer["headers"]["access-control-allow-origin"] == "https://a.example"


@pytest.mark.parametrize(("proxies", "address"), [(0, None), (1, "203.0.113.7")])
async def test_the_address_of_a_client_is_the_one_that_the_platform_appends(proxies: int, address: str | None) -> None:
    azure = pytest.importorskip("funcmcp.azure")
    functions = pytest.importorskip("azure.functions")
    mcp = MCPServer("shop", http=HTTPOptions(proxies=proxies, allowed_hosts=[DEPLOYED["WEBSITE_HOSTNAME"]]))
    addresses: list[str | None] = []

    @mcp.tool
    def look(context: Context) -> None:
        addresses.append(context.client_address)

    [endpoint, *_] = azure.http_app(mcp).get_functions()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "look", "_meta": ENVELOPE}}
    headers = {**PER_REQUEST, "Mcp-Name": "look", "X-Forwarded-For": "10.0.0.1, 203.0.113.7:55123"}
    request = functions.HttpRequest("POST", URL, headers=headers, body=json.dumps(call).encode())
    assert (await endpoint.get_user_function()(request)).status_code == 200
    assert addresses == [address]


async def test_lines_of_one_header_are_joined_as_the_platform_keeps_one_but_for_cookies() -> None:
    func = pytest.importorskip("azure.functions")
    from funcmcp._adapters.azure.http_trigger import Site

    lines = (
        ("www-authenticate", "Bearer"),
        ("set-cookie", "a=1"),
        ("www-authenticate", "Basic"),
        ("set-cookie", "b=2"),
    )

    async def body() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    async def exchange(_: HttpRequest) -> HttpResponse:
        return HttpResponse(401, lines, body())

    mcp = MCPServer("joining")
    runtime_of(mcp).exchange = exchange
    answer = await Site(runtime_of(mcp)).answer(func.HttpRequest("POST", URL, body=b""), "/mcp")
    assert answer.headers.getlist("www-authenticate") == ["Bearer, Basic"]
    assert answer.headers.getlist("set-cookie") == ["a=1", "b=2"]
    assert (answer.status_code, answer.get_body()) == (401, b"one two")


async def test_the_first_request_begins_the_check_of_the_identity_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    func = pytest.importorskip("azure.functions")
    from funcmcp._adapters.azure.http_trigger import Site

    checked = asyncio.Event()

    async def check() -> None:
        checked.set()

    stage = Stage()
    monkeypatch.setattr(stage.upstream, "check", check, raising=False)
    monkeypatch.setattr(configuration_checks, "CHECK_DELAY", 0)
    mcp = MCPServer("shop", auth=Auth(stage.proxy))
    site = Site(runtime_of(mcp))
    for _ in range(2):
        await site.answer(func.HttpRequest("POST", URL, body=b""), "/mcp")
    await asyncio.wait_for(checked.wait(), PATIENCE)
    await runtime_of(mcp).aclose()


@needs_worker
def test_the_orders_sample_is_indexed_and_answers(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "app", "orders")
    with worker(folder, env={**DEPLOYED, "ORDERS_DB": str(tmp_path / "orders.db")}) as loaded:
        assert json.loads(initialize(loaded).value["body"])["result"]["serverInfo"]["title"] == "Restaurant orders"


@_SLOW
def test_the_binding_json_is_complete(tmp_path: Path) -> None:
    """The library for the app's own Python version: azure-functions 1.26 before 3.13."""
    pytest.importorskip("azure.functions")
    show = "\nfor f in app.get_functions(): print(f.get_raw_bindings()[0])"
    folder = write_app(tmp_path, GUARDED + show)
    run = subprocess.run(
        [sys.executable, "function_app.py"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert run.returncode == 0, run.stderr
    assert [json.loads(line) for line in run.stdout.splitlines()] == [
        trigger("mcp", "POST", "GET", "DELETE"),
        trigger("mcp", "OPTIONS"),
        trigger(".well-known/oauth-protected-resource/mcp", "GET", "HEAD"),
        trigger(".well-known/oauth-protected-resource", "GET", "HEAD"),
        trigger("livez", "GET", "HEAD"),
        trigger("readyz", "GET", "HEAD"),
    ]


def trigger(route: str, *methods: str) -> dict[str, Any]:
    common = {"direction": "IN", "type": "httpTrigger", "name": "req", "authLevel": "ANONYMOUS"}
    return {**common, "methods": list(methods), "route": route}


@_SLOW
def test_a_server_whose_metadata_nobody_would_find_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("azure.functions")
    own = 'ProtectedResource(resource="https://a.example/api/mcp", authorization_servers=["https://login.example.com"])'
    code = GUARDED.replace(
        'funcmcp.azure.protected_resource(["https://login.example.com"], scopes=["shop.read"])', own
    ).replace(
        "import funcmcp.azure", "import funcmcp.azure\nfrom funcmcp._auth.protected_resource import ProtectedResource"
    )
    folder = write_app(tmp_path, code, prefix="api")
    run = subprocess.run(
        [sys.executable, "function_app.py"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert '"routePrefix": "" in host.json' in run.stderr


SIGN_IN = """
import azure.functions as func

import funcmcp.azure
from funcmcp import MCPServer
from funcmcp.auth import OIDC, OAuthProxy

proxy = OAuthProxy(
    "https://shop.azurewebsites.net/mcp",
    upstream=OIDC("https://login.example.com", "app"),
    scopes={"shop.read": "See the shop"},
)
app = funcmcp.azure.http_app(MCPServer("Shop", auth=proxy), route="mcp")
"""


@needs_worker
def test_a_sign_in_has_functions_that_need_no_key_of_the_platform(tmp_path: Path) -> None:
    environment = DEPLOYED | {"WEBSITE_AUTH_ENCRYPTION_KEY": "00" * 32, "WEBSITE_INSTANCE_ID": "1"}
    with worker(write_app(tmp_path, SIGN_IN, prefix=""), env=environment) as loaded:
        routes = {name: function.trigger["route"] for name, function in loaded.functions.items() if "_sign_in_" in name}
        assert sorted(routes.values()) == [
            ".well-known/oauth-authorization-server",
            ".well-known/openid-configuration",
            "oauth/{*step}",
        ]
        assert {loaded.functions[name].trigger["authLevel"] for name in routes} == {"ANONYMOUS"}
        name_of = {route: name for name, route in routes.items()}
        base = "https://shop.azurewebsites.net"
        place = ".well-known/oauth-authorization-server"
        metadata = loaded.invoke_http(name_of[place], "GET", f"{base}/{place}", headers=HEADERS).value
        issuer = json.loads(metadata["body"])
        assert (metadata["status_code"], issuer["issuer"]) == (200, base)
        step = name_of["oauth/{*step}"]
        body = json.dumps({"redirect_uris": ["http://localhost/back"]}).encode()
        registered = loaded.invoke_http(step, "POST", issuer["registration_endpoint"], headers=HEADERS, body=body).value
        assert registered["status_code"] == 201
        query = urlencode(
            {
                "client_id": json.loads(registered["body"])["client_id"],
                "response_type": "code",
                "code_challenge": "x" * 43,
                "code_challenge_method": "S256",
            }
        )
        shown = loaded.invoke_http(step, "GET", f"{issuer['authorization_endpoint']}?{query}", headers=HEADERS)
        assert shown.error is None
        page = shown.value
        assert (page["status_code"], page["headers"]["x-frame-options"]) == (200, "DENY")
        unknown = loaded.invoke_http(step, "GET", f"{base}/oauth/unknown", headers=HEADERS).value
        assert unknown["status_code"] == 404


@_SLOW
@pytest.mark.parametrize(
    ("change", "prefix", "message"),
    [
        (("azurewebsites.net/mcp", "azurewebsites.net/api/mcp"), "api", '"routePrefix": "" in host.json'),
        (("scopes=", 'issuer="https://shop.azurewebsites.net/mcp", scopes='), "", "Leave out OAuthProxy(issuer=...)"),
    ],
)
def test_a_sign_in_that_clients_would_not_find_is_refused(
    tmp_path: Path, change: tuple[str, str], prefix: str, message: str
) -> None:
    pytest.importorskip("azure.functions")
    folder = write_app(tmp_path, SIGN_IN.replace(*change), prefix=prefix)
    run = subprocess.run(
        [sys.executable, "function_app.py"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert message in run.stderr
