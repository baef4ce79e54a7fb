"""Pages of other origins that call a function app: what CORS allows, and what is refused without it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP
from tests.functions_host.apps import write_app
from tests.page.browser import running_browser, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

ORIGIN = "https://app.example.com"
APP = """
import json

import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
NAME = json.dumps([{"propertyName": "name", "propertyType": "string", "description": "", "isRequired": True}])


@app.mcp_tool_trigger(arg_name="context", tool_name="greet", description="Greet", tool_properties=NAME)
def greet(context) -> str:
    return "Hello " + json.loads(context)["arguments"]["name"]


@app.route(route="items/{id}", methods=["PUT"])
def item(req: func.HttpRequest) -> func.HttpResponse:
    headers = {"Access-Control-Allow-Origin": "https://wrong.example.com", "X-Own": "1"}
    return func.HttpResponse(req.route_params["id"], headers=headers)
"""
PREFLIGHT = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type,mcp-protocol-version,x-functions-key",
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}},
}
CORS = "access-control-allow-origin"


def app(folder: Path, host: Any = None) -> Path:
    write_app(folder, APP)
    if host is not None:
        content = {"IsEncrypted": False, "Values": {"FUNCTIONS_WORKER_RUNTIME": "python"}, "Host": host}
        (folder / "local.settings.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def served(folder: Path, *options: str, **env: str) -> Iterator[tuple[str, str]]:
    """Yield the URLs of the endpoint and of the HTTP trigger, and run the app until the generator ends."""
    with running([*FUNCMCP, "host", str(folder), "--port", "0", *options], env=env) as process:
        endpoint = process.endpoint()
        yield endpoint, endpoint.replace("/runtime/webhooks/mcp", "/api/items/7")


@pytest.fixture(params=["local.settings.json", "--cors", "--cors-credentials"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    if request.param == "--cors":
        yield from served(app(tmp_path), "--cors", f"http://localhost:3000, {ORIGIN}/", "--cors-credentials")
    elif request.param == "--cors-credentials":
        yield from served(app(tmp_path, {"CORS": f"{ORIGIN},http://localhost:3000"}), "--cors-credentials")
    else:
        yield from served(app(tmp_path, {"cors": f"{ORIGIN},http://localhost:3000", "CORSCredentials": True}))


@_SLOW
def test_pages_of_named_origins_call_the_endpoint_and_http_triggers(urls: tuple[str, str]) -> None:
    endpoint, trigger = urls
    for url in urls:
        preflight = httpx2.options(url, headers={"origin": ORIGIN, **PREFLIGHT})
        assert preflight.status_code == 204
        assert preflight.headers[CORS] == ORIGIN
        assert preflight.headers["access-control-allow-credentials"] == "true"
        assert preflight.headers["access-control-allow-headers"] == PREFLIGHT["access-control-request-headers"]
        assert "PUT" in preflight.headers["access-control-allow-methods"]
    answer = httpx2.post(endpoint, json=INITIALIZE, headers={"origin": ORIGIN, "accept": "*/*"})
    assert answer.status_code == 200
    assert answer.headers.get_list(CORS) == [ORIGIN]
    assert answer.headers.get_list("vary") == ["origin"]
    assert "mcp-session-id" in answer.headers["access-control-expose-headers"]
    answer = httpx2.put(trigger, headers={"origin": ORIGIN})
    assert (answer.status_code, answer.text, answer.headers["x-own"]) == (200, "7", "1")
    assert answer.headers.get_list(CORS) == [ORIGIN]


@_SLOW
def test_pages_of_other_origins_are_refused(urls: tuple[str, str]) -> None:
    for url, method in zip(urls, ("POST", "PUT"), strict=True):
        headers = {"origin": "https://other.example.com", "accept": "*/*"}
        answer = httpx2.request(method, url, json=INITIALIZE, headers=headers)
        assert answer.status_code == 403
        assert "with --cors of the functions host" in answer.text
        assert CORS not in answer.headers
        assert answer.headers.get_list("vary") == ["origin"]
        assert CORS not in httpx2.options(url, headers={**headers, **PREFLIGHT}).headers


@_SLOW
def test_a_preflight_needs_no_key_and_a_request_does(tmp_path: Path) -> None:
    keys = {"FUNCMCP_HOST_KEYS": f"default={'k' * 16},mcp_extension={'m' * 16}"}
    for endpoint, trigger in served(app(tmp_path, {"CORS": "*"}), **keys):
        for url in (endpoint, trigger):
            preflight = httpx2.options(url, headers={"origin": ORIGIN, **PREFLIGHT})
            assert (preflight.status_code, preflight.headers[CORS]) == (204, "*")
            assert preflight.headers["access-control-allow-headers"] == "authorization, *"
        refused = httpx2.post(endpoint, json=INITIALIZE, headers={"origin": ORIGIN})
        assert (refused.status_code, refused.headers[CORS]) == (401, "*")
        headers = {"origin": ORIGIN, "x-functions-key": "k" * 16}
        assert httpx2.put(trigger, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("host", "options", "reason"),
    [
        ({"CORS": 1}, (), 'local.settings.json: "CORS" must be a text with origins, separated by commas.'),
        ({"CORS": "app.example.com"}, (), "'app.example.com' in CORS is not an origin."),
        ({"CORS": "*", "CORSCredentials": "true"}, (), "CORS credentials can't be allowed for all origins."),
        ("x", (), 'local.settings.json: "Host" must be an object.'),
        (None, ("--cors", "*", "--cors-credentials"), "CORS credentials can't be allowed for all origins."),
        (
            None,
            ("--cors-credentials",),
            "--cors-credentials needs --cors ORIGINS, or Host.CORS in local.settings.json.",
        ),
        ({"CORS": 1}, ("--cors-credentials",), 'local.settings.json: "CORS" must be a text with origins'),
        (None, ("--cors", "https://a.example/path"), "is not an origin. Write one such as https://app.example.com."),
    ],
)
def test_what_is_wrong_is_said_at_the_start(host: Any, options: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    result = funcmcp("host", str(app(tmp_path, host)), "--port", "0", *options)
    assert result.returncode != 0
    assert reason in result.stderr
    assert "Traceback" not in result.stderr


SCRIPT = """
await page.goto(args.page);
return await page.evaluate(async (url) => {
    const post = async (message, headers = {}) => {
        const response = await fetch(url, {
            method: "POST",
            headers: {"content-type": "application/json", "accept": "application/json, text/event-stream", ...headers},
            body: JSON.stringify({jsonrpc: "2.0", ...message}),
        });
        const text = await response.text();
        return [response.headers.get("mcp-session-id"), text.includes("data: ") ? text.split("data: ")[1] : text];
    };
    const client = {protocolVersion: "2025-06-18", capabilities: {}, clientInfo: {name: "page", version: "1"}};
    const [session] = await post({id: 1, method: "initialize", params: client});
    const headers = {"mcp-protocol-version": "2025-06-18", ...(session ? {"mcp-session-id": session} : {})};
    await post({method: "notifications/initialized"}, headers);
    const [, listed] = await post({id: 2, method: "tools/list", params: {}}, headers);
    const [, called] = await post(
        {id: 3, method: "tools/call", params: {name: "greet", arguments: {name: "Ada"}}}, headers);
    return [JSON.parse(listed).result.tools.map(({name}) => name), JSON.parse(called).result.content[0].text];
}, args.url);
"""


async def page(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
    await send({"type": "http.response.body", "body": b"<title>A client in a page</title>"})


@_SLOW
def test_a_client_in_a_browser_connects_directly(tmp_path: Path) -> None:
    """The Inspector's direct mode does the same: a session, its headers, a list and a call from another origin."""
    with serving(page, "/") as other, running_browser() as browser:
        for endpoint, _ in served(app(tmp_path), "--cors", other.rstrip("/")):
            seen = browser.play(SCRIPT, {"page": other, "url": endpoint}, errors=["favicon"])
            assert seen == [["greet"], "Hello Ada"]
