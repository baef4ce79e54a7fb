"""A host that is killed while an orchestration runs: the next one goes on, and keeps the results that were stored."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import signal
import time
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.cli.forking import running
from tests.cli.processes import FUNCMCP
from tests.functions_host.apps import write_app
from tests.functions_host.workers.microsofts import (
    MICROSOFTS_COMMAND_WITH_NEW_LIBRARY,
    microsofts_environment,
    write_function_json,
)
from tests.patience import PATIENCE
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.processes import Running

ACTIVITY = """
    result = f"{name} {uuid.uuid4()}"
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(result + "\\n")
    while name == "second" and not os.path.exists(os.environ["CALLS"] + ".go"):
        time.sleep(0.02)
    return result
"""
IMPORTS = """
import json
import os
import time
import uuid

import azure.durable_functions as df
import azure.functions as func
"""
STEPS = """
def steps(context):
    first = yield context.call_activity("note", "first")
    second = yield context.call_activity("note", "second")
    third = yield context.call_activity("note", "third")
    return [first, second, third]
"""
APP = f"""{IMPORTS}
app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)


@app.activity_trigger(input_name="name")
def note(name):{ACTIVITY}

@app.orchestration_trigger(context_name="context"){STEPS}

@app.route(route="start")
@app.durable_client_input(client_name="client")
async def start(req: func.HttpRequest, client) -> func.HttpResponse:
    return func.HttpResponse(await client.start_new("steps"))
"""
START = f"""{IMPORTS}
async def main(req: func.HttpRequest, client: str) -> func.HttpResponse:
    return func.HttpResponse(await df.DurableOrchestrationClient(client).start_new("steps"))
"""
FUNCTIONS: dict[str, tuple[str, list[dict[str, str]]]] = {
    "note": (f"{IMPORTS}\ndef main(name: str) -> str:{ACTIVITY}", [{"name": "name", "type": "activityTrigger"}]),
    "steps": (
        f"{IMPORTS}{STEPS}\nmain = df.Orchestrator.create(steps)\n",
        [{"name": "context", "type": "orchestrationTrigger"}],
    ),
    "start": (
        START,
        [
            {"name": "req", "type": "httpTrigger", "authLevel": "anonymous"},
            {"name": "client", "type": "durableClient"},
            {"name": "$return", "type": "http", "direction": "out"},
        ],
    ),
}


def python_app(folder: Path) -> tuple[list[str], dict[str, str]]:
    write_app(folder, APP)
    return [], {}


def rpc_app(folder: Path) -> tuple[list[str], dict[str, str]]:
    folder.mkdir()
    definitions = {name: ({"bindings": bindings}, code) for name, (code, bindings) in FUNCTIONS.items()}
    write_function_json(folder, definitions)
    # The host has another protobuf than the worker, so that the variables are those of the worker alone.
    variables = shlex.join(["env", *(f"{name}={value}" for name, value in microsofts_environment(folder).items())])
    return ["--worker", f"{variables} {MICROSOFTS_COMMAND_WITH_NEW_LIBRARY}"], {}


def lines_of(calls: Path, count: int) -> list[str]:
    """Wait for a number of calls of the activity; return them."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        lines = calls.read_text().splitlines() if calls.exists() else []
        if len(lines) >= count:
            return lines
        time.sleep(0.02)
    raise AssertionError(f"{calls} has fewer than {count} lines.")


def status_of(process: Running, origin: str, instance: str) -> dict[str, Any]:
    """Wait for the end of an instance; return its state."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        url = f"{origin}/runtime/webhooks/durabletask/instances/{instance}"
        status: dict[str, Any] = httpx2.get(url, timeout=PATIENCE).json()
        if status["runtimeStatus"] in {"Completed", "Failed"}:
            return status
        time.sleep(0.02)
    raise AssertionError(process.output)


@pytest.mark.slow("Hosts are killed and started again.")
@pytest.mark.parametrize("write", [python_app, rpc_app], ids=["python", "rpc"])
def test_an_orchestration_goes_on_after_its_host_was_killed(
    write: Callable[[Path], tuple[list[str], dict[str, str]]], tmp_path: Path
) -> None:
    require("azure-functions-durable", importlib.util.find_spec("azure.durable_functions"))
    calls = tmp_path / "calls"
    options, variables = write(tmp_path / "app")
    command = [*FUNCMCP, "host", str(tmp_path / "app"), "--port", "0", *options]
    environment = {**variables, "CALLS": str(calls)}
    with running(command, env=environment) as process:
        started = httpx2.post(f"{process.endpoint()}/api/start", timeout=PATIENCE)
        assert started.status_code == 200, process.output
        before = lines_of(calls, 2)
        os.kill(process.process.pid, signal.SIGKILL)
        process.ended()
    (tmp_path / "calls.go").touch()
    with running(command, env=environment) as process:
        status = status_of(process, process.endpoint(), started.text)
    after = lines_of(calls, 4)
    assert [line.partition(" ")[0] for line in after] == ["first", "second", "second", "third"]
    assert after[:2] == before
    # The first one was stored; the second one ran again, and its first call has no effect on the instance.
    assert status["output"] == [after[0], after[2], after[3]], json.dumps(status)
