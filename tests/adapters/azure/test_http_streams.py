"""HTTP streams: bodies go out as they come, and the app's other functions stay as they were."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.azure.serving import serve_app, write_app
from tests.azure.worker import LoadError, needs_worker, worker_of
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.serving import Served

pytestmark = [
    needs_worker,
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]

CODE = """
import asyncio

import azure.functions as func

import funcmcp.azure
from funcmcp import MCPServer, Context
from funcmcp._server.limits import Limits
from funcmcp._transports.http.streams import sse

sse.KEEP_ALIVE_SECONDS = 0.05
mcp = MCPServer("live", limits=Limits(message_bytes=2000), sessions="memory")
gates = {}

@mcp.tool
async def wait(context: Context, name: str) -> str:
    gate = gates.setdefault(name, asyncio.Event())
    await context.report_progress(1)
    try:
        await gate.wait()
    finally:
        gates[name + " ended"] = True
    return context.http_request.url

@mcp.tool
async def wait_silently(name: str) -> str:
    try:
        await gates.setdefault(name, asyncio.Event()).wait()
    finally:
        gates[name + " ended"] = True
    return "done"

@mcp.tool
async def let(name: str) -> str:
    gates.setdefault(name, asyncio.Event()).set()
    return "let"

@mcp.tool
async def has_ended(name: str) -> bool:
    return name + " ended" in gates

app = func.FunctionApp()

@app.route(route="items/{id}", auth_level="anonymous")
def item(req: func.HttpRequest) -> func.HttpResponse:
    said = f"{req.method} {req.route_params['id']} {req.params['q']} {req.get_body().decode()}"
    return func.HttpResponse(said, status_code=201, headers={"X-Kind": "item", "X-URL": req.url})

@app.route(route="text", auth_level="anonymous")
async def text(req: func.HttpRequest) -> str:
    return "plain"

@app.route(route="status/{value}", auth_level="anonymous")
def status(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("a body", status_code=int(req.route_params["value"]))

funcmcp.azure.http_app(mcp, app=app, auth_level="anonymous", streams=True)
"""
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_app(write_app(tmp_path_factory.mktemp("live"), CODE, prefix="api")) as served:
        yield served


@pytest.fixture
def http(served: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=f"{served.origin}/api", timeout=PATIENCE, trust_env=False) as client:
        yield client


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what the client sends to call a tool."""
    params = {"name": tool, "arguments": arguments, "_meta": {**ENVELOPE, "progressToken": 1}}
    headers = {"Accept": "application/json, text/event-stream", "Mcp-Method": "tools/call", "Mcp-Name": tool}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return {"json": body, "headers": {**headers, "MCP-Protocol-Version": "2026-07-28"}}


def text_of(message: dict[str, Any]) -> Any:
    return json.loads(json.dumps(message))["result"]["content"][0]["text"]


def test_a_message_reaches_the_client_before_the_answer_is_there(http: httpx2.Client) -> None:
    with http.stream("POST", "/mcp", **call("wait", name="a")) as response:
        lines = response.iter_lines()
        assert "notifications/progress" in next(line for line in lines if line.startswith("data: "))
        assert text_of(http.post("/mcp", **call("let", name="a")).json()) == "let"
        answer = json.loads(next(line for line in lines if line.startswith("data: "))[6:])
    assert text_of(answer) == str(http.base_url.join("mcp"))


def test_a_client_that_leaves_ends_its_call(http: httpx2.Client) -> None:
    with http.stream("POST", "/mcp", **call("wait", name="b")) as response:
        next(response.iter_lines())
    for _ in range(200):  # each a round trip: the news takes its way through the host
        if text_of(http.post("/mcp", **call("has_ended", name="b")).json()) == "true":
            return
    pytest.fail("the call goes on")


def test_a_silent_call_is_answered_by_a_stream_of_comments_and_its_answer(http: httpx2.Client) -> None:
    with http.stream("POST", "/mcp", **call("wait_silently", name="c")) as response:
        assert response.headers["content-type"] == "text/event-stream"
        lines = response.iter_lines()
        assert next(lines) == ": keep-alive"
        assert text_of(http.post("/mcp", **call("let", name="c")).json()) == "let"
        answer = json.loads(next(line for line in lines if line.startswith("data: "))[6:])
    assert text_of(answer) == "done"


def test_a_client_that_leaves_ends_its_silent_call(http: httpx2.Client) -> None:
    with http.stream("POST", "/mcp", **call("wait_silently", name="d")) as response:
        assert next(response.iter_lines()) == ": keep-alive"
    for _ in range(200):  # as above
        if text_of(http.post("/mcp", **call("has_ended", name="d")).json()) == "true":
            return
    pytest.fail("the call goes on")


def test_other_functions_of_the_app_stay_as_they_were(http: httpx2.Client) -> None:
    answer = http.post("/items/7?q=x", content="body")
    assert (answer.status_code, answer.text, answer.headers["x-kind"]) == (201, "POST 7 x body", "item")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert http.get("/text").text == "plain"


@pytest.mark.parametrize(("value", "status"), [(100, 500), (99999, 500), (204, 204), (599, 599)])
def test_a_status_that_can_not_be_sent_is_a_failure(http: httpx2.Client, value: int, status: int) -> None:
    assert http.get(f"/status/{value}").status_code == status
    assert http.get("/text").status_code == 200  # on the same connection


def test_a_functions_url_is_as_the_client_wrote_it(http: httpx2.Client) -> None:
    answer = http.post("/items/a%20%C3%A9?q=%26", content="")
    assert answer.headers["x-url"].endswith("/items/a%20%C3%A9?q=%26")


def test_a_body_that_is_too_large_for_the_server_is_refused(http: httpx2.Client) -> None:
    assert http.post("/mcp", **call("let", name="x" * 3000)).status_code == 413


def test_a_second_package_with_streams_is_named(tmp_path: Path) -> None:
    other = """
import azurefunctions.extensions.base as extensions

class WebApp(extensions.WebApp):
    pass
"""
    (tmp_path / "others_streams.py").write_text(other, encoding="utf-8")
    with (
        pytest.raises(LoadError, match="HTTP streams are on in this app already, by others_streams"),
        worker_of("import others_streams\n" + CODE, tmp_path),
    ):
        pass
