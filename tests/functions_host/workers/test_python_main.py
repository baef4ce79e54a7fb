"""The worker's program, with both of its engines, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from funcmcp_host.workers.python_command import python_worker
from funcmcp_host.workers.worker import FunctionFailed, Invocation, LoadFailed, Value
from tests.functions_host.apps import KINDS, write_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp_host.workers.process import ProcessWorker
    from funcmcp_host.workers.python_command import Engine

ENGINES = ["library", *(["runtime"] if sys.version_info >= (3, 13) else [])]
HTTP = """
import json
import azure.functions as func

app = func.FunctionApp()


@app.route(route="orders/{id}", methods=["POST"])
def orders(req: func.HttpRequest, context: func.Context) -> func.HttpResponse:
    seen = [req.method, req.url, dict(req.params), dict(req.route_params), req.headers["x-a"]]
    seen.append(req.get_body().decode())
    text = json.dumps([*seen, context.function_name])
    response = func.HttpResponse(text, status_code=201, mimetype="application/json")
    response.headers["x-b"] = "2"
    response.headers.add("Set-Cookie", "a=1; Path=/")
    return response


@app.route(route="nothing")
def nothing(req: func.HttpRequest) -> func.HttpResponse:
    return None
"""


pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return each engine that this interpreter has."""
    return request.param  # type: ignore[no-any-return] # it is one of ENGINES


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kinds(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessWorker]:
    """Run the app with all kinds of functions."""
    async with running(write_app(tmp_path_factory.mktemp("kinds"), KINDS), engine, SETTING="s") as worker:
        yield worker


@asynccontextmanager
async def running(folder: Path, engine: Engine, **variables: str) -> AsyncIterator[ProcessWorker]:
    worker = python_worker(folder, {**os.environ, **variables}, engine=engine)
    await worker.start()
    try:
        yield worker
    finally:
        await worker.aclose()


async def call(worker: ProcessWorker, function: str, arguments: Any = None, **inputs: Value) -> Value:
    context = json.dumps({"name": function, "arguments": arguments or {}})
    invocation = Invocation(function, {"context": Value("string", context), **inputs})
    return (await worker.invoke(invocation, 10)).value


async def test_functions_run_whether_they_are_async_or_not(kinds: ProcessWorker) -> None:
    assert {info.name for info in kinds.functions} >= {"echo", "add", "one", "review", "tick", "generic"}
    assert json.loads((await call(kinds, "echo", {"name": "ä"})).data)["arguments"] == {"name": "ä"}
    assert json.loads((await call(kinds, "aecho", [1])).data)["arguments"] == [1]
    assert await call(kinds, "add", {"a": 5}) == Value("string", "7")
    assert await call(kinds, "raw") == Value("bytes", b"\x00\xff")
    assert await call(kinds, "review", {"code": "x"}) == Value("string", "Review: x")
    assert await call(kinds, "generic", first=Value("string", "f")) == Value("string", '"f"')
    assert "azure-functions" in kinds.description


async def test_plain_functions_run_side_by_side_in_threads(kinds: ProcessWorker) -> None:
    threads = await asyncio.gather(*(call(kinds, "block") for _ in range(5)))  # each waits for the four others
    assert len({thread.data for thread in threads}) == 5


async def test_a_failure_has_the_text_and_the_traceback(kinds: ProcessWorker) -> None:
    with pytest.raises(FunctionFailed, match="the secret of the house") as failure:
        await call(kinds, "fail")
    assert "function_app.py" in failure.value.trace


async def test_outputs_come_beside_the_value(kinds: ProcessWorker) -> None:
    context = Value("string", json.dumps({"arguments": {"name": "n", "text": "t", "item": "i"}}))
    outcome = await kinds.invoke(Invocation("save", {"context": context}), 10)
    assert (outcome.value, outcome.outputs) == (Value("string", "saved"), {"file": Value("string", "t")})
    outcome = await kinds.invoke(Invocation("order", {"context": context}), 10)
    assert json.loads(outcome.outputs["msg"].data) == ["i", "I"]


async def test_a_missing_blob_is_none_and_a_present_one_is_a_stream(kinds: ProcessWorker) -> None:
    assert (await call(kinds, "load", {"name": "n"}, file=Value("null"))).data == "nothing"
    assert (await call(kinds, "load", {"name": "n"}, file=Value("bytes", b"abc"))).data == "abc"
    assert (await call(kinds, "load", {"name": "n"}, file=Value("string", "abc"))).data == "abc"


async def test_a_large_value_passes_in_both_directions(kinds: ProcessWorker) -> None:
    assert len((await call(kinds, "large", {"size": 5_000_000})).data) == 5_000_000
    assert len((await call(kinds, "echo", {"name": "x" * 5_000_000})).data) > 5_000_000


async def test_http_requests_reach_functions(engine: Engine, tmp_path: Path) -> None:
    request = {
        "method": "POST",
        "url": "http://localhost/api/orders/7?q=1",
        "headers": {"x-a": "1"},
        "query": {"q": "1"},
        "params": {"id": "7"},
        "body": b"hi",
    }
    async with running(write_app(tmp_path, HTTP), engine) as worker:
        outcome = await worker.invoke(Invocation("orders", {"req": Value("http", request)}), 10)
        response = outcome.value.data
        assert json.loads(response["body"]) == [
            "POST",
            "http://localhost/api/orders/7?q=1",
            {"q": "1"},
            {"id": "7"},
            "1",
            "hi",
            "orders",
        ]
        headers = {name.lower(): value for name, value in response["headers"]}
        assert (response["status"], headers["x-b"], headers["set-cookie"]) == (201, "2", "a=1; Path=/")
        assert headers["content-type"] == "application/json"
        with pytest.raises(FunctionFailed):
            await worker.invoke(Invocation("nothing", {"req": Value("http", request)}), 10)


async def test_settings_and_log_records_and_output_arrive(
    kinds: ProcessWorker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "funcmcp.app")
    folder, pid, setting, _ = json.loads((await call(kinds, "where")).data)
    assert (folder, pid, setting) == (str(kinds._child._command.folder), kinds.pid, "s")
    await call(kinds, "where")
    assert "printed by where" in caplog.text
    record = next(record for record in caplog.records if record.message == "logged by where")
    assert (record.levelname, record.__dict__["function"]) == ("WARNING", "where")


async def test_one_bad_function_does_not_stop_the_app(engine: Engine, tmp_path: Path) -> None:
    code = """
import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool_trigger(arg_name="context", tool_name="good", description="", tool_properties="[]")
def good(context, context2=None) -> str:
    return "good"


@app.mcp_tool_trigger(arg_name="missing", tool_name="bad", description="", tool_properties="[]")
def bad(other) -> str:
    return "bad"
"""
    if engine == "runtime":
        code = code.replace(", context2=None", "")
    async with running(write_app(tmp_path, code), engine) as worker:
        assert (await call(worker, "good")).data == "good"
        errors = {info.name: info.error for info in worker.functions}
        assert errors["good"] is None
        assert errors["bad"] is not None


BROKEN = {
    "import nowhere_at_all": "ModuleNotFoundError: No module named 'nowhere_at_all'. Install its package",
    "import os; os.makedirs('own'); import own.gone": "No module named 'own.gone'. Correct the import: the app has no",
    "x = 1": "function_app.py has no FunctionApp at its top level",
    "import azure.functions as func\na = func.FunctionApp()\nb = func.FunctionApp()": "has more than one FunctionApp",
    "def f(:": "SyntaxError",
    "import sys\nsys.exit(4)": "function_app.py, line 2: SystemExit: 4",
    "import os\nos._exit(4)": "ended before the app was loaded .exit code 4",
}


@pytest.mark.parametrize("code", BROKEN)
async def test_an_app_that_cannot_be_loaded_is_an_error_in_one_line(code: str, engine: Engine, tmp_path: Path) -> None:
    worker = python_worker(write_app(tmp_path, code), os.environ, engine=engine)
    with pytest.raises(LoadFailed, match=BROKEN[code]) as failure:
        await worker.start()
    assert "\n" not in str(failure.value)
