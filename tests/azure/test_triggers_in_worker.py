"""Triggers in Microsoft's own worker library: indexed and invoked as the functions host does it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.azure.host import read_binding, read_prompt, read_resource, read_tool
from tests.azure.messages import TypedData
from tests.azure.worker import LoadError, needs_worker, worker_of
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.azure.worker import Invoked, Worker

pytestmark = [
    needs_worker,
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]

ORDERS = """
import sys
sys.path.insert(0, {repository!r})
import funcmcp.azure
from samples.orders.server import mcp

app = funcmcp.azure.trigger_app(mcp)
"""

MANY = """
import threading
import azure.functions as func
from funcmcp import MCPServer
from funcmcp.azure import Bindings, Input, Output, trigger_app

app = func.FunctionApp()
mcp = MCPServer("many")
started = []
together = threading.Barrier(32)

class Shop:
    def __init__(self):
        started.append(self)

mcp.services.register_factory(Shop, Shop, scope="app")

@mcp.add_lifespan
async def lifespan():
    started.append("lifespan")
    yield

@mcp.tool
def meet(number: int, shop: Shop) -> list[int]:
    together.wait(120)  # passes only if 32 calls are in here at once
    return [number, len(started)]

@mcp.tool
def copy(name: str, times: int, bindings: Bindings, flag: bool = False) -> str:
    text = bindings["snippet"]
    bindings.set("copied", text * times)
    bindings.set("told", f"copied {bindings['name']}")
    bindings.set("kept", {"name": name})
    return f"{bindings['name']} {bindings['raw'].decode()} {bindings['flag']!r}"

@mcp.prompt
def explain(code: str, bindings: Bindings, depth: int = 1) -> str:
    return f"{bindings['code']} {bindings['depth']!r} {depth}"

@mcp.resource("snippet://{name}")
def snippet(name: str, bindings: Bindings) -> bytes:
    return bindings["file"].read()

@app.mcp_tool()
def old(word: str) -> str:
    "Their own decorator."
    return word

@app.route(route="hello")
def hello(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("hello")

FILE = dict(path="snippets/{mcptoolargs.name}.txt", connection="AzureWebJobsStorage")

trigger_app(mcp, app, bindings={
    "copy": [
        Input("snippet", "blob", python_type=str, **FILE),
        Input("raw", "blob", python_type=bytes, **FILE),
        Input("name", "mcpToolProperty", property_name="name"),
        Input("flag", "mcpToolProperty", description="Its own words"),
        Output("copied", "blob", path="copies/{mcptoolargs.name}.txt", connection="AzureWebJobsStorage"),
        Output("told", "queue", queue_name="told", connection="AzureWebJobsStorage"),
        Output("kept", "queue", python_type=str, queue_name="kept", connection="AzureWebJobsStorage"),
    ],
    "explain": [Input("code", "mcpPromptArgument"), Input("depth", "mcpPromptArgument")],
    "snippet://{name}": [Input("file", "blob", path="snippets/{name}.txt", connection="AzureWebJobsStorage")],
})
"""


def context(**members: Any) -> dict[str, TypedData]:
    return {"context": TypedData(string=json.dumps(members))}


def value_of(invoked: Invoked) -> Any:
    assert (invoked.error, invoked.kind) == (None, "string")
    return invoked.value


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    from tests.azure.worker import REPOSITORY

    folder = tmp_path_factory.mktemp("orders")
    code = ORDERS.format(repository=str(REPOSITORY))
    with worker_of(code, folder, env={"ORDERS_DB": str(folder / "orders.db")}) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with worker_of(MANY, tmp_path_factory.mktemp("many")) as loaded:
        yield loaded


def test_every_feature_of_the_orders_sample_is_indexed(orders: Worker) -> None:
    triggers = {name: read_binding(function.trigger) for name, function in orders.functions.items()}
    assert list(triggers) == [
        *("tool_search_menu", "tool_get_order", "tool_create_order", "tool_cancel_order", "tool_sales_report"),
        *("resource_menu", "resource_menu_category", "resource_menu_item", "resource_order"),
        *("prompt_suggest_meal", "prompt_explain_order"),
    ]
    schema = triggers["tool_create_order"]["inputSchema"]
    assert schema["required"] == ["customerId", "items"]
    assert schema["properties"]["items"]["items"]["properties"]["quantity"]["maximum"] == 100
    assert triggers["tool_get_order"]["outputSchema"]["properties"]["placedAt"]["type"] == "string"
    assert [item["name"] for item in triggers["prompt_explain_order"]["promptArguments"]] == ["order_id", "language"]


def test_the_orders_sample_takes_shows_explains_and_cancels_an_order(orders: Worker) -> None:
    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        return read_tool(value_of(orders.invoke(f"tool_{tool}", context(name=tool, arguments=arguments))))

    found = call("search_menu", query="pizza")["structuredContent"]["result"]
    assert [item["itemId"] for item in found] == ["margherita", "diavola"]
    wrong = call("create_order", customerId="ada", items=[{"itemId": "diavola", "quantity": 0}])
    assert wrong["isError"]
    assert "items[0].quantity" in wrong["content"][0]["text"]
    order = call("create_order", customerId="ada", items=[{"itemId": "diavola", "quantity": 2}])["structuredContent"]
    assert order["total"] == 23.8
    number, uri = order["orderId"], f"order://{order['orderId']}"
    read = read_resource(value_of(orders.invoke("resource_order", context(uri=uri))), uri)
    assert (read["mimeType"], json.loads(read["text"])["customerId"]) == ("application/json", "ada")
    asked = orders.invoke("prompt_explain_order", context(name="explain_order", arguments={"order_id": number}))
    first, second = read_prompt(value_of(asked))["messages"]
    assert first["content"]["resource"]["uri"] == uri
    assert second["content"]["text"].endswith("in English.")
    assert "confirmed=true" in call("cancel_order", order_id=number)["content"][0]["text"]
    assert call("cancel_order", order_id=number, confirmed=True)["structuredContent"]["status"] == "cancelled"
    day = order["placedAt"][:10]
    assert call("sales_report", first_day=day, last_day=day)["structuredContent"]["orders"] == 0


def test_a_resource_that_is_not_there_is_a_failed_invocation_with_words_for_the_log(orders: Worker) -> None:
    failed = orders.invoke("resource_menu_item", context(uri="menu://items/stone"))
    assert failed.error is not None
    assert "Resource not found" in failed.error


def test_32_calls_of_a_plain_function_run_at_once_and_start_its_services_once(many: Worker) -> None:
    futures = [many.submit("tool_meet", context(name="meet", arguments={"number": n})) for n in range(32)]
    results = [read_tool(value_of(future.result(PATIENCE)))["structuredContent"]["result"] for future in futures]
    assert results == [[number, 2] for number in range(32)]


def test_bindings_of_one_argument_have_every_key_that_the_host_needs(many: Worker) -> None:
    copy = {binding["name"]: binding for binding in many.functions["tool_copy"].bindings}
    assert read_binding(copy["name"]) == {
        "propertyName": "name",
        "propertyType": "string",
        "description": "",
        "isRequired": True,
        "isArray": False,
        "enumValues": [],
    }
    assert read_binding(copy["flag"])["description"] == "Its own words"
    explain = {binding["name"]: binding for binding in many.functions["prompt_explain"].bindings}
    assert read_binding(explain["depth"]) == {"argumentName": "depth", "description": "", "isRequired": False}


def test_other_bindings_stand_beside_the_trigger_as_they_were_written(many: Worker) -> None:
    copy = {binding["name"]: binding for binding in many.functions["tool_copy"].bindings}
    path = "snippets/{mcptoolargs.name}.txt"
    blob = {"type": "blob", "direction": "IN", "path": path, "connection": "AzureWebJobsStorage"}
    assert copy["snippet"] == {**blob, "name": "snippet", "dataType": "STRING"}
    assert copy["raw"] == {**blob, "name": "raw", "dataType": "BINARY"}
    assert copy["told"] == {
        "type": "queue",
        "direction": "OUT",
        "name": "told",
        "queueName": "told",
        "connection": "AzureWebJobsStorage",
    }


def test_a_function_reads_its_inputs_and_sends_its_outputs(many: Worker) -> None:
    inputs = {
        **context(name="copy", arguments={"name": "x", "times": 2, "flag": True}),
        "snippet": TypedData(string="ab"),
        "raw": TypedData(bytes=b"raw"),
        "name": TypedData(string="x"),
        "flag": TypedData(string="True"),
    }
    done = many.invoke("tool_copy", inputs)
    assert read_tool(value_of(done))["content"] == [{"type": "text", "text": "x raw 'True'"}]
    assert {name: tuple(found) for name, found in done.outputs.items()} == {
        "copied": ("string", "abab"),
        "told": ("string", "copied x"),
        "kept": ("string", '{"name":"x"}'),
    }
    inputs |= context(name="copy", arguments={"name": "x", "times": "2"})
    refused = many.invoke("tool_copy", inputs)
    assert read_tool(value_of(refused))["isError"]
    assert refused.outputs == {}


def test_prompts_and_resources_have_bindings_too(many: Worker) -> None:
    inputs = {
        **context(name="explain", arguments={"code": "x=1"}),
        "code": TypedData(string="x=1"),
        "depth": TypedData(),
    }
    (message,) = read_prompt(value_of(many.invoke("prompt_explain", inputs)))["messages"]
    assert message["content"]["text"] == "x=1 None 1"
    inputs = {**context(uri="snippet://a"), "file": TypedData(bytes=b"\x00\x01")}
    read = read_resource(value_of(many.invoke("resource_snippet", inputs)), "snippet://a")
    assert read == {"uri": "snippet://a", "mimeType": "application/octet-stream", "blob": "AAE="}


def test_functions_that_were_in_the_app_before_stay_as_they_were(many: Worker) -> None:
    old = many.invoke("old", context(name="old", arguments={"word": "x"}))
    assert value_of(old) == "x"
    assert many.invoke_http("hello", "GET", "http://localhost/api/hello").value["body"] == b"hello"


def test_an_app_whose_server_is_beyond_the_host_does_not_load_and_says_why(tmp_path: Path) -> None:
    code = (
        "from funcmcp import MCPServer\nfrom funcmcp.azure import trigger_app\nmcp = MCPServer('m')\n"
        "mcp.resource('a://{+path}', name='read')(lambda path: path)\napp = trigger_app(mcp)\n"
    )
    with pytest.raises(LoadError, match=r"know only \{name\} in a URI template"), worker_of(code, tmp_path):
        pass


def test_services_are_closed_when_the_worker_is_told_to_end(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from funcmcp import MCPServer
from funcmcp.azure import trigger_app

class Shop: ...

async def shop():
    yield Shop()
    Path("closed").write_text("yes")

mcp = MCPServer("closing")
mcp.services.register_factory(Shop, shop, scope="app")

@mcp.tool
def use(shop: Shop) -> str:
    return "used"

app = trigger_app(mcp)
"""
    with worker_of(code, tmp_path) as loaded:
        value_of(loaded.invoke("tool_use", context(name="use")))
        assert not (tmp_path / "closed").exists()
    assert (tmp_path / "closed").read_text() == "yes"


def test_one_server_has_triggers_and_an_endpoint_of_its_own_in_the_same_app(tmp_path: Path) -> None:
    code = """
from funcmcp import MCPServer
from funcmcp.azure import http_app, trigger_app

mcp = MCPServer("both")

@mcp.tool
def double(number: int) -> int:
    return 2 * number

app = trigger_app(mcp, http_app(mcp))
"""
    headers = {
        "Host": "localhost:7071",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    params = {"name": "double", "arguments": {"number": 4}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    with worker_of(code, tmp_path) as loaded:
        by_trigger = read_tool(value_of(loaded.invoke("tool_double", context(**params))))
        url = "http://localhost:7071/api/mcp"
        start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        hello = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start}).encode()
        opened = loaded.invoke_http("mcp", "POST", url, headers=headers, body=hello).value["headers"]
        session = {"Mcp-Session-Id": opened["mcp-session-id"], "MCP-Protocol-Version": "2025-06-18"}
        answer = loaded.invoke_http("mcp", "POST", url, headers={**headers, **session}, body=body)
    assert json.loads(answer.value["body"])["result"] == by_trigger
    assert by_trigger["structuredContent"] == {"result": 8}
