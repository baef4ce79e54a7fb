"""Language workers of Microsoft that package registries have, of 2020 and of 2026, over FunctionRpc."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import shlex
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from funcmcp_host.workers.rpc import RpcWorker, rpc_worker
from funcmcp_host.workers.supervised import RestartPolicy, Supervised
from funcmcp_host.workers.worker import FunctionFailed, Invocation, LoadFailed, Value, WorkerGone
from tests.functions_host.workers.microsofts import MICROSOFTS_COMMAND, microsofts_environment, write_function_json
from tests.patience import PATIENCE
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.every_python("azure-functions-runtime needs Python 3.13.")

RUNTIME = Path(__file__).with_name("rpc_runtime.py")
RUNTIME_PYTHON: tuple[int, int] = (3, 13)
POLICY = RestartPolicy(ping_seconds=PATIENCE, wait_seconds=PATIENCE)
MEBIBYTES = 6
"""Above the limit of 4 MiB that gRPC has by default."""

BODY = """
import asyncio
import json
import logging
import os
import time


def run(context: str) -> str:
    arguments = json.loads(context)["arguments"]
    kind = arguments["kind"]
    if kind == "fail":
        raise ValueError("broken by its author")
    if kind == "end":
        os._exit(3)
    if kind == "wait":
        open("waiting", "w").close()
        while not os.path.exists("go"):
            time.sleep(0.01)
    if kind == "log":
        for level in ("debug", "info", "warning", "error", "critical"):
            getattr(logging.getLogger("app"), level)(level)
    return arguments.get("text", "") or "x" * arguments.get("size", 0) or str(os.getpid())
"""
FUNCTION_APP = f"""{BODY}
import azure.functions as func

app = func.FunctionApp()


@app.function_name("run")
@app.generic_trigger(arg_name="context", type="mcpToolTrigger", toolName="run", description="Run", toolProperties="[]")
def run_tool(context) -> str:
    return run(context)
"""
TRIGGER = {"name": "context", "type": "mcpToolTrigger", "direction": "in", "toolName": "run", "description": "Run"}
# These libraries take a return value for an output binding only; the host sends it to the client as well.
RETURN = {"name": "$return", "type": "queue", "direction": "out", "queueName": "results", "connection": "Files"}
CAPABILITIES = {"RawHttpBodyBytes", "RpcHttpBodyOnly", "RpcHttpTriggerMetadataRemoved", "TypedDataCollection"}


class Published(NamedTuple):
    """A worker on PyPI.

    Attributes:
        package: Its name.
        module: The library behind `RUNTIME`; empty for a worker with a program of its own.
        has_files: Whether the functions of its apps are function.json files.
        capabilities: Those that it has.
    """

    package: str
    module: str
    has_files: bool
    capabilities: set[str]

    @property
    def command(self) -> str:
        """Its command line; the test is skipped where it is not installed."""
        if not self.module:
            return MICROSOFTS_COMMAND
        if sys.version_info[:2] < RUNTIME_PYTHON:
            pytest.skip(f"{self.package} needs Python 3.13.")
        packages = Path(sys.prefix) / "function-worker"
        is_there = importlib.util.find_spec(self.module) is not None or (packages / self.module).exists()
        require(self.package, is_there and (packages / "tests" / "protos").exists())
        return shlex.join([sys.executable, str(RUNTIME), self.module])

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables of its process."""
        if self.module:
            return dict(os.environ)
        return {**os.environ, **microsofts_environment(folder)}

    def write(self, folder: Path, before: str = "") -> Path:
        """Write an app with one function into a folder; *before* is code before that of the app."""
        if self.has_files:
            main = f"{before}{BODY}\nmain = run\n"
            return write_function_json(folder, {"run": ({"bindings": [TRIGGER, RETURN]}, main)})
        (folder / "host.json").write_text('{"version": "2.0"}')
        (folder / "function_app.py").write_text(before + FUNCTION_APP)
        return folder


NEWER = CAPABILITIES | {"SharedMemoryDataTransfer", "WorkerStatus"}
WORKERS = {
    "azure-functions-worker 1.1.9": Published("azure-functions-worker", "", True, CAPABILITIES),
    "azure-functions-runtime 1.3.0": Published("azure-functions-runtime", "azure_functions_runtime", False, NEWER),
    "azure-functions-runtime-v1 1.2.0": Published(
        "azure-functions-runtime-v1", "azure_functions_runtime_v1", True, NEWER
    ),
}


@pytest.fixture(params=WORKERS)
def published(request: pytest.FixtureRequest) -> Published:
    return WORKERS[request.param]


@asynccontextmanager
async def started(published: Published, folder: Path) -> AsyncIterator[Supervised]:
    command, environment = published.command, published.environment(published.write(folder))
    supervised = Supervised(lambda: rpc_worker(command, folder, environment), POLICY)
    await supervised.start()
    try:
        yield supervised
    finally:
        await supervised.aclose()


async def call(worker: Supervised, kind: str, seconds: float | None = PATIENCE, **arguments: Any) -> str:
    context = json.dumps({"name": "run", "arguments": {"kind": kind, **arguments}})
    text: str = (await worker.invoke(Invocation("run", {"context": Value("string", context)}), seconds)).value.data
    return text


async def test_it_has_the_functions_of_the_app_and_its_capabilities(published: Published, tmp_path: Path) -> None:
    async with started(published, tmp_path) as supervised:
        [function] = supervised.functions
        assert (function.name, function.error) == ("run", None)
        assert "mcpToolTrigger" in {json.loads(binding)["type"] for binding in function.bindings}
        worker = supervised._worker
        assert isinstance(worker, RpcWorker)
        assert worker._connection is not None
        assert set(worker._connection.capabilities) == published.capabilities
        with pytest.raises(FunctionFailed, match="broken by its author"):
            await call(supervised, "fail")


async def test_large_values_are_sent_and_returned(published: Published, tmp_path: Path) -> None:
    text = "é" * (MEBIBYTES * 1024 * 1024 // 2)
    async with started(published, tmp_path) as supervised:
        assert await call(supervised, "echo", text=text) == text
        assert await call(supervised, "echo", size=len(text)) == "x" * len(text)


async def test_it_is_started_again_after_a_crash_and_after_kill(published: Published, tmp_path: Path) -> None:
    async with started(published, tmp_path) as supervised:
        first = await call(supervised, "pid")
        with pytest.raises(WorkerGone) as gone:
            await call(supervised, "end")
        assert gone.value.begun
        second = await call(supervised, "pid")
        assert second == str(supervised.pid) != first
        os.kill(int(second), signal.SIGKILL)
        while supervised.pid in {None, int(second)}:  # noqa: ASYNC110 - the supervisor has no event for it
            await asyncio.sleep(0.01)
        assert await call(supervised, "pid") == str(supervised.pid) != second


async def test_a_call_past_its_time_runs_on_and_others_are_served(published: Published, tmp_path: Path) -> None:
    """None of these workers handles InvocationCancel."""
    async with started(published, tmp_path) as supervised:
        process = await call(supervised, "pid")
        late = asyncio.ensure_future(call(supervised, "wait", seconds=None))
        while not (tmp_path / "waiting").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
        (tmp_path / "waiting").unlink()
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        (tmp_path / "go").touch()
        assert await call(supervised, "pid") == process == str(supervised.pid)


async def test_its_log_records_have_their_levels(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The program around the libraries of 2026 sends the records, so only the worker of 2020 is asked."""
    caplog.set_level(logging.DEBUG, "funcmcp.app")
    async with started(WORKERS["azure-functions-worker 1.1.9"], tmp_path) as supervised:
        await call(supervised, "log")
    records = [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name == "funcmcp.app" and record.getMessage() in {"debug", "info", "warning", "error", "critical"}
    ]
    assert records == [  # the worker drops those of the level DEBUG
        ("INFO", "info"),
        ("WARNING", "warning"),
        ("ERROR", "error"),
        ("CRITICAL", "critical"),
    ]
    assert {record.__dict__["function"] for record in caplog.records if record.getMessage() == "info"} == {"run"}
    own = [record for record in caplog.records if record.getMessage().startswith("Received FunctionInvocationRequest")]
    assert {record.levelname for record in own} == {"DEBUG"}  # the worker's own ones: INFO of the category System


@pytest.mark.slow("It waits for the end of the time that a start may take.")
async def test_a_worker_that_does_not_answer_names_the_answer(published: Published, tmp_path: Path) -> None:
    """Import of the app blocks: in WorkerInit for the newer library, and in FunctionLoad for function.json files."""
    command, environment = published.command, published.environment(tmp_path)
    published.write(tmp_path, "import time\ntime.sleep(600)\n")
    worker = rpc_worker(command, tmp_path, environment)
    worker._start_seconds = 20
    answer = "FunctionLoadResponse" if published.has_files else "WorkerInitResponse"
    with pytest.raises(LoadFailed, match=f"^The worker did not send {answer} within 20 seconds"):
        await worker.start()
