"""The tests' own way into Microsoft's worker library: a bare app is indexed and invoked as the host would do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.azure.messages import TypedData
from tests.azure.worker import LoadError, http_input, needs_worker, worker_of
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

BARE = """
import azure.functions as func

app = func.FunctionApp()

@app.route(route="orders/{id}", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
async def order(req: func.HttpRequest) -> func.HttpResponse:
    print("what an app prints does not get in the way")
    said = f"{req.method} {req.params['q']} {req.headers['X-One']} {req.get_body().decode()}"
    return func.HttpResponse(said, status_code=201, headers={"X-Two": "2"})

@app.route(route="broken")
def broken(req: func.HttpRequest) -> func.HttpResponse:
    raise ValueError("boom")

@app.mcp_tool_trigger(arg_name="context", tool_name="say", description="Says it.")
def say(context: str) -> str:
    return context
"""

pytestmark = [
    needs_worker,
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]


def test_a_bare_http_function_is_indexed_and_invoked(tmp_path: Path) -> None:
    with worker_of(BARE, tmp_path) as worker:
        assert list(worker.functions) == ["order", "broken", "say"]
        trigger = worker.functions["order"].trigger
        assert (trigger["type"], trigger["route"], trigger["authLevel"]) == ("httpTrigger", "orders/{id}", "ANONYMOUS")
        url = "https://shop.azurewebsites.net/api/orders/7?q=x"
        done = worker.invoke_http("order", "POST", url, headers={"X-One": "1"}, body="ä".encode())
    assert (done.error, done.kind) == (None, "http")
    assert done.value["status_code"] == 201
    assert done.value["headers"] == {"X-Two": "2", "content-type": "text/plain; charset=utf-8"}
    assert done.value["body"].decode() == "POST x 1 ä"


def test_a_trigger_of_mcp_gets_its_context_as_text_and_a_failing_function_says_why(tmp_path: Path) -> None:
    with worker_of(BARE, tmp_path) as worker:
        say = worker.submit("say", {"context": TypedData(string='{"name":"say"}')})
        broken = worker.submit("broken", {"req": http_input("GET", "http://localhost/api/broken")})
        assert say.result(PATIENCE).value == '{"name":"say"}'
        assert broken.result(PATIENCE).error == "ValueError: boom"


def test_an_app_that_can_not_be_loaded_is_told_as_the_host_would_log_it(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no such thing"), worker_of("raise ValueError('no such thing')", tmp_path):
        pass
