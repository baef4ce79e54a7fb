"""A language worker over FunctionRpc: its values, its calls, and how it ends."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from funcmcp_host.workers.rpc import RpcWorker, rpc_worker
from funcmcp_host.workers.supervised import RestartPolicy, Supervised
from funcmcp_host.workers.worker import FunctionFailed, Invocation, LoadFailed, Value, WorkerGone
from tests.functions_host.workers.rpc_stranger import connect
from tests.functions_host.workers.test_process import is_running
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.lowest("grpcio and protobuf exchange the messages."),
]
_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

PROGRAM = Path(__file__).with_name("rpc_program.py")
COMMAND = shlex.join([sys.executable, str(PROGRAM)])
QUICK = RestartPolicy(ping_seconds=0.3, wait_seconds=5, drain_seconds=5)


def app_folder(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "host.json").write_text('{"version": "2.0"}')
    return folder


def make(folder: Path, scenario: str = "", *, start_seconds: float = 10, log_level: int = logging.INFO) -> RpcWorker:
    environment = {**os.environ, "SCENARIO": scenario}
    worker = rpc_worker(COMMAND, app_folder(folder), environment, log_level=log_level)
    worker._start_seconds = start_seconds
    return worker


@asynccontextmanager
async def started(worker: RpcWorker) -> AsyncIterator[RpcWorker]:
    await worker.start()
    try:
        yield worker
    finally:
        await worker.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RpcWorker]:
    async with started(make(tmp_path_factory.mktemp("app"))) as worker:
        yield worker


def invocation(function: str, **arguments: Any) -> Invocation:
    return Invocation(function, {"context": Value("string", json.dumps({"name": function, "arguments": arguments}))})


async def result_of(worker: RpcWorker, function: str, **arguments: Any) -> Value:
    return (await worker.invoke(invocation(function, **arguments), 5)).value


async def test_the_worker_says_what_it_is_and_which_functions_there_are(worker: RpcWorker) -> None:
    assert worker.description == "test 1.2, worker 3"
    assert worker.http_url is None
    errors = {function.name: function.error for function in worker.functions}
    assert errors.pop("unreadable") == "It has no entry point."
    assert errors.pop("unloadable") == "It is broken."
    assert set(errors.values()) == {None}
    assert json.loads(worker.functions[0].bindings[0])["toolName"] == "string"


@pytest.mark.parametrize(
    ("function", "value"),
    [
        ("string", Value("string", "text")),
        ("empty_string", Value("string", "")),
        ("json", Value("json", '{"a": [1, null]}')),
        ("bytes", Value("bytes", b"\x00\xff")),
        ("stream", Value("bytes", b"\x01")),
        ("int", Value("int", -(2**63))),
        ("double", Value("double", 0.5)),
        ("nothing", Value("null")),
        ("collection_bytes", Value("json", '["AA==", ""]')),
        ("collection_string", Value("json", '["a", ""]')),
        ("collection_double", Value("json", "[0.5, 2.0]")),
        ("collection_sint64", Value("json", "[-1, 2]")),
    ],
)
async def test_every_kind_of_value_is_returned(worker: RpcWorker, function: str, value: Value) -> None:
    assert await result_of(worker, function) == value


async def test_references_to_objects_of_an_sdk_are_json(worker: RpcWorker) -> None:
    model = {"version": "1.0", "source": "Blobs", "contentType": "application/json", "content": {"name": "a"}}
    other = {"version": "", "source": "", "contentType": "x/y", "content": "AA=="}
    assert json.loads((await result_of(worker, "model_binding_data")).data) == model
    assert json.loads((await result_of(worker, "collection_model_binding_data")).data) == [model, other]


async def test_a_call_has_its_inputs_and_its_binding_data(worker: RpcWorker) -> None:
    inputs = {
        "context": Value("string", '{"a": "é"}'),
        "blob": Value("bytes", b"\x00\xff"),
        "missing": Value("null"),
        "number": Value("int", -5),
        "ratio": Value("double", 0.5),
    }
    metadata = {"mcptoolargs": Value("json", '{"a": "1"}')}
    outcome = await worker.invoke(Invocation("request", inputs, metadata, "00-ab-cd-01"), 5)
    assert json.loads(outcome.value.data) == {
        "inputs": {
            "context": ["string", '{"a": "é"}'],
            "blob": ["bytes", "\x00\xff"],
            "missing": [None, None],
            "number": ["int", -5],
            "ratio": ["double", 0.5],
        },
        "metadata": {"mcptoolargs": ["json", '{"a": "1"}']},
        "trace": "00-ab-cd-01",
    }


async def test_an_exception_has_its_text_and_its_trace(worker: RpcWorker) -> None:
    with pytest.raises(FunctionFailed, match=r"^ValueError: the secret of the app$") as failed:
        await result_of(worker, "fail")
    assert failed.value.trace == "File app, line 1"


async def test_a_function_that_does_not_exist_fails(worker: RpcWorker) -> None:
    with pytest.raises(FunctionFailed, match="The app has no function 'other'"):
        await result_of(worker, "other")


async def test_log_records_have_their_level_and_their_function(
    worker: RpcWorker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "funcmcp.app")
    await result_of(worker, "log")
    assert [(record.levelname, record.message, record.__dict__["function"]) for record in caplog.records] == [
        ("WARNING", "a\\x1b[31mwarning", "log"),
        ("ERROR", "failed\nFile app, line 2", ""),
        ("INFO", "an unknown level", ""),
    ]


async def test_a_call_past_its_time_is_cancelled(worker: RpcWorker, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(TimeoutError):
        await worker.invoke(invocation("slow"), 0.05)
    assert await worker.ping(5)
    assert "cancelled" in [record.message for record in caplog.records]


async def test_a_caller_that_leaves_cancels_its_call(worker: RpcWorker, caplog: pytest.LogCaptureFixture) -> None:
    call = asyncio.ensure_future(worker.invoke(invocation("slow"), 30))
    await asyncio.sleep(0)  # the call is sent before the ping
    assert await worker.ping(5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await worker.ping(5)
    assert "cancelled" in [record.message for record in caplog.records]


async def test_an_answer_to_a_call_that_is_not_open_is_ignored(worker: RpcWorker) -> None:
    with pytest.raises(TimeoutError):
        await worker.invoke(invocation("wrong_id"), 0.1)
    assert await result_of(worker, "string") == Value("string", "text")


@_SLOW
async def test_64_megabytes_are_returned(worker: RpcWorker) -> None:
    size = 64 * 1024 * 1024
    outcome = await worker.invoke(invocation("large", size=size), 30)
    assert outcome.value.kind == "string"
    assert outcome.value.data == "x" * size


async def test_a_program_without_the_workers_id_is_refused(worker: RpcWorker, caplog: pytest.LogCaptureFixture) -> None:
    port = int(worker._port)
    for worker_id in ("wrong", None):
        assert await asyncio.to_thread(connect, port, worker_id) == "PERMISSION_DENIED"
    assert caplog.text.count("A program that is not the worker has connected") == 2
    assert await worker.ping(5)


LATE = """
import os, sys, time

while not os.path.exists("go"):
    time.sleep(0.02)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def id_of(worker: RpcWorker) -> str:
    """Wait for the program of a worker; return its id, which every user can read among the program's arguments."""
    arguments = b""
    while b"--workerId" not in arguments:
        time.sleep(0.01)
        if worker.pid is not None:
            arguments = Path(f"/proc/{worker.pid}/cmdline").read_bytes()
    words = arguments.decode().split("\0")
    return words[words.index("--workerId") + 1]


@_SLOW
@pytest.mark.parametrize("user", ["this", "another"])
async def test_a_program_with_the_workers_id_is_refused(
    user: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It connects first, as every user of the machine could, who would get the calls and the tokens of callers."""
    if user == "another" and os.geteuid() != 0:
        pytest.skip("only root starts programs of another user")
    command = shlex.join([sys.executable, "-c", LATE, str(PROGRAM)])
    worker = rpc_worker(command, app_folder(tmp_path), dict(os.environ))
    starting = asyncio.create_task(worker.start())
    try:
        worker_id = await asyncio.to_thread(id_of, worker)
        stranger = [
            sys.executable,
            "-m",
            "tests.functions_host.workers.rpc_stranger",
            str(worker._port),
            worker_id,
            user,
        ]
        ended = await asyncio.to_thread(
            subprocess.run, stranger, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        assert ended.stdout == "PERMISSION_DENIED\n"
        assert "A program that is not the worker has connected" in caplog.text
        (tmp_path / "go").touch()
        await starting
        assert await result_of(worker, "string") == Value("string", "text")
        again = await asyncio.to_thread(connect, int(worker._port), worker_id)
        assert again == "PERMISSION_DENIED"
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await worker.aclose()


async def test_a_machine_that_does_not_tell_who_connects_starts_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(LoadFailed, match="--worker needs Linux"):
        await make(tmp_path).start()


async def test_calls_wait_for_each_other_before_the_end(worker: RpcWorker) -> None:
    call = asyncio.ensure_future(result_of(worker, "string"))
    await asyncio.sleep(0)
    await worker.idle()
    assert call.done()
    await call


@pytest.mark.parametrize("function", ["die", "end", "garbage"])
async def test_calls_fail_at_once_when_the_worker_breaks_off(function: str, tmp_path: Path) -> None:
    async with started(make(tmp_path)) as worker:
        calls = [asyncio.ensure_future(worker.invoke(invocation("slow"), 30)) for _ in range(10)]
        assert await worker.ping(5)
        calls.append(asyncio.ensure_future(worker.invoke(invocation(function), 30)))
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [WorkerGone] * 11
        assert all(isinstance(result, WorkerGone) and result.begun for result in results)
        assert worker.ended.done()
        assert not await worker.ping(1)
        with pytest.raises(WorkerGone) as gone:
            await worker.invoke(invocation("string"), 5)
        assert gone.value.begun is False
    assert worker.pid is not None
    assert not is_running(worker.pid)


@_SLOW
async def test_a_worker_that_is_killed_is_started_again(tmp_path: Path) -> None:
    supervised = Supervised(lambda: make(tmp_path), QUICK)
    await supervised.start()
    try:
        call = asyncio.ensure_future(supervised.invoke(invocation("slow"), 30))
        await supervised.invoke(invocation("string"), 5)
        assert supervised.pid is not None
        os.kill(supervised.pid, signal.SIGKILL)
        with pytest.raises(WorkerGone):
            await call
        assert (await supervised.invoke(invocation("string"), 10)).value.data == "text"
    finally:
        await supervised.aclose()


@_SLOW
async def test_a_call_after_the_end_of_the_process_goes_to_the_next_one(tmp_path: Path) -> None:
    supervised = Supervised(lambda: make(tmp_path), QUICK)
    await supervised.start()
    try:
        worker, pid = supervised._worker, supervised.pid
        assert isinstance(worker, RpcWorker)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        while not worker._child.has_ended:
            time.sleep(0.01)  # noqa: ASYNC251 - the event loop must not see the end of the stream
        assert worker._connection is not None
        assert worker._connection.is_connected
        outcome = await supervised.invoke(invocation("print"), PATIENCE)
        assert outcome.value.data == str(supervised.pid) != str(pid)
    finally:
        await supervised.aclose()


@_SLOW
async def test_a_call_that_waits_for_the_next_process_has_all_of_its_time(tmp_path: Path) -> None:
    scenarios = iter(["", "late"])
    policy = RestartPolicy(wait_seconds=PATIENCE)
    supervised = Supervised(lambda: make(tmp_path, next(scenarios), start_seconds=PATIENCE), policy)
    await supervised.start()
    try:
        pid = supervised.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        while supervised.pid == pid:  # noqa: ASYNC110 - the supervisor has no event for it
            await asyncio.sleep(0.01)
        assert (await supervised.invoke(invocation("print"), 2)).value.data == str(supervised.pid)
    finally:
        await supervised.aclose()


@_SLOW
@pytest.mark.parametrize("scenario", ["", "plain"])
async def test_a_worker_that_hangs_is_ended_after_a_call(scenario: str, tmp_path: Path) -> None:
    supervised = Supervised(lambda: make(tmp_path, scenario), QUICK)
    await supervised.start()
    try:
        first = supervised.pid
        with pytest.raises(TimeoutError):
            await supervised.invoke(invocation("hang"), 0.2)
        async with asyncio.timeout(PATIENCE):
            while supervised.pid in {None, first}:  # noqa: ASYNC110 - the supervisor has no event for it
                await asyncio.sleep(0.02)
        outcome = await supervised.invoke(invocation("print"), 10)
        assert outcome.value.data == str(supervised.pid)
    finally:
        await supervised.aclose()


@_SLOW
async def test_a_worker_without_capabilities(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with started(make(tmp_path, "plain")) as worker:
        errors = {function.name: function.error for function in worker.functions}
        assert errors["unloadable"] == "It is broken."
        assert not await worker.ping(0.1)  # it sends nothing by itself
        ping = asyncio.ensure_future(worker.ping(5))
        await asyncio.sleep(0)
        assert (await result_of(worker, "string")).data == "text"
        assert await ping
        with pytest.raises(TimeoutError):
            await worker.invoke(invocation("slow"), 0.05)
        assert (await result_of(worker, "string")).data == "text"
    assert "cancelled" not in caplog.text
    assert worker.exit_code == -signal.SIGTERM


async def test_a_worker_ends_by_itself_when_it_can(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "funcmcp.app")
    async with started(make(tmp_path)) as worker:
        pass
    assert worker.exit_code == 0
    assert "terminate 5" in caplog.text


@_SLOW
@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("exit", r"The worker ended before the app was loaded \(exit code 1\)\."),
        ("never", r"The worker did not connect to the host within 0\.2 seconds\."),
        ("late garbage", "The worker sent something that is not a message"),
        ("no init", r"The worker did not send WorkerInitResponse within 2 seconds\."),
        ("init fails", r"No runtime\."),
        ("index fails", r"app.x, line 3: Unknown word\."),
    ],
)
async def test_a_worker_that_does_not_start_is_an_error(scenario: str, reason: str, tmp_path: Path) -> None:
    worker = make(tmp_path, scenario, start_seconds={"never": 0.2, "no init": 2}.get(scenario, 10))
    with pytest.raises(LoadFailed, match=f"^{reason}"):
        await worker.start()
    assert worker.pid is not None
    assert not is_running(worker.pid)
    with pytest.raises(WorkerGone):
        await worker.invoke(invocation("string"), 5)


async def test_a_worker_that_leaves_the_index_to_the_host_has_no_functions(tmp_path: Path) -> None:
    async with started(make(tmp_path, "index default")) as worker:
        assert worker.functions == []


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            "no-such-program --flag",
            "no-such-program can't be started: No such file or directory. Correct its path",
        ),
        ("dotnet 'app.dll", "The worker's command .* can't be read: No closing quotation."),
        ("  ", "The worker's command is empty."),
    ],
)
async def test_a_command_that_can_not_be_run_is_an_error(command: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match=reason):
        await rpc_worker(command, tmp_path, dict(os.environ)).start()


async def test_a_program_in_the_apps_folder_runs_with_the_variables_of_the_functions_host(tmp_path: Path) -> None:
    environment = {**os.environ, "FUNCTIONS_WORKER_RUNTIME": "PowerShell"}
    (tmp_path / "run").write_text("#!/bin/sh\n")
    worker = rpc_worker("./run now", tmp_path, environment)
    assert list(worker._command.arguments)[-2:] == [str(tmp_path / "run"), "now"]
    assert worker._command.environment["FUNCTIONS_WORKER_DIRECTORY"] == str(tmp_path)
    assert worker._command.environment["FUNCTIONS_APPLICATION_DIRECTORY"] == str(tmp_path)
    assert worker._command.environment["PSWorkerInProcConcurrencyUpperBound"] == "1000"
