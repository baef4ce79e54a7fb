"""A tool made of an HTTP function, in one app with it, in Microsoft's worker library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.azure.messages import TypedData
from tests.azure.serving import write_app
from tests.azure.worker import http_input, needs_worker, worker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    needs_worker,
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]

APP = """
import json
import azure.functions as func
import funcmcp.azure
from funcmcp import MCPServer

app = func.FunctionApp()

@app.route("orders/{id:int}", methods=["GET"])
def get_order(req: func.HttpRequest) -> func.HttpResponse:
    "Return an order."
    order = {"id": req.route_params["id"], "url": req.url}
    return func.HttpResponse(json.dumps(order), mimetype="application/json")

mcp = MCPServer("Orders")
funcmcp.azure.tool_from_http_function(mcp, app, "get_order")
funcmcp.azure.trigger_app(mcp, app)
"""


def test_a_function_and_the_tool_that_is_made_of_it_answer_alike(tmp_path: Path) -> None:
    folder = write_app(tmp_path / "app", APP, prefix="api")
    with worker(folder, env={"WEBSITE_HOSTNAME": "shop.azurewebsites.net"}) as loaded:
        assert set(loaded.functions) == {"get_order", "tool_get_order"}
        schema = json.loads(loaded.functions["tool_get_order"].trigger["inputSchema"])
        assert schema["properties"] == {"id": {"type": "integer"}}
        said = json.dumps({"name": "get_order", "arguments": {"id": 17}})
        called = loaded.invoke("tool_get_order", {"context": TypedData(string=said)})
        url = "https://shop.azurewebsites.net/api/orders/17"
        direct = loaded.invoke("get_order", {"req": http_input("GET", url, values={"id": "17"})})
    assert (called.error, direct.error) == (None, None)
    structured = json.loads(json.loads(called.value)["structuredContent"])
    assert structured == {"id": "17", "url": url}
    assert json.loads(direct.value["body"]) == structured
