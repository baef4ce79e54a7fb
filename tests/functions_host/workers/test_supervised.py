"""A supervised worker: crashes, hangs, crash loops and replacements, with calls in flight."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_host.workers.python_command import python_worker
from funcmcp_host.workers.supervised import RestartPolicy, Supervised, WorkerPool
from funcmcp_host.workers.worker import Invocation, LoadFailed, Value, WorkerGone
from tests.functions_host.apps import write_app
from tests.functions_host.workers.running import running_pids
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = [
    pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio."),
    pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers."),
]
APP = """
import asyncio
import contextlib
import json
import os
import time

import azure.functions as func

if os.path.exists("broken"):
    raise ValueError("broken by a file")
app = func.FunctionApp()


def tool(function):
    trigger = app.mcp_tool_trigger(
        arg_name="context", tool_name=function.__name__, description="", tool_properties="[]"
    )
    return trigger(function)


@tool
async def pid(context) -> str:
    with open("calls", "a") as stream:
        stream.write("x")
    return str(os.getpid())


@tool
async def wait(context) -> str:
    await asyncio.sleep(json.loads(context)["arguments"]["pause"])
    return str(os.getpid())


@tool
async def hang(context) -> str:
    time.sleep(60)


@tool
async def block(context) -> str:
    while not os.path.exists("go"):
        time.sleep(0.01)
    return str(os.getpid())


@tool
def occupy(context) -> str:
    open("occupied", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    return str(os.getpid())


@tool
def threaded(context) -> str:
    with open("calls", "a") as stream:
        stream.write("t")
    return str(os.getpid())


@tool
def die(context) -> str:
    os._exit(3)
"""
QUICK = RestartPolicy(ping_seconds=0.3, wait_seconds=PATIENCE, drain_seconds=5)
PATIENT = RestartPolicy(ping_seconds=PATIENCE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_app(tmp_path, APP)


@contextlib.asynccontextmanager
async def supervised(folder: Path, policy: RestartPolicy = QUICK) -> AsyncIterator[Supervised]:
    worker = Supervised(lambda: python_worker(folder, os.environ, engine="library"), policy)
    await worker.start()
    try:
        yield worker
    finally:
        await worker.aclose()


async def call(worker: Supervised | WorkerPool, function: str, seconds: float = 10, **arguments: Any) -> str:
    context = Value("string", json.dumps({"arguments": arguments}))
    text: str = (await worker.invoke(Invocation(function, {"context": context}), seconds)).value.data
    return text


async def test_calls_that_have_begun_fail_at_once_and_the_next_call_is_served(folder: Path) -> None:
    async with supervised(folder) as worker:
        calls = [asyncio.ensure_future(call(worker, "wait", pause=30)) for _ in range(20)]
        await asyncio.sleep(0.3)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(result) for result in results} == {WorkerGone}
        assert await call(worker, "pid") == str(worker.pid)


async def test_calls_that_have_not_begun_go_to_the_next_process(folder: Path) -> None:
    async with supervised(folder) as worker:
        first = worker.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)  # it reads nothing
        calls = [asyncio.ensure_future(call(worker, "pid")) for _ in range(5)]
        await asyncio.sleep(0.1)
        os.kill(first, signal.SIGKILL)
        answers = await asyncio.gather(*calls)
        assert set(answers) == {str(worker.pid)}
        assert worker.pid != first
        assert (folder / "calls").read_text() == "xxxxx"  # each ran once


async def test_a_call_that_ends_the_process_is_not_sent_again(folder: Path) -> None:
    async with supervised(folder) as worker:
        with pytest.raises(WorkerGone) as gone:
            await call(worker, "die")
        assert gone.value.begun
        assert await call(worker, "pid")


async def test_a_process_that_hangs_is_ended(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with supervised(folder) as worker:
        first = worker.pid
        with pytest.raises(TimeoutError):
            await call(worker, "hang", seconds=0.2)
        assert await call(worker, "pid", seconds=30) != str(first)  # the call that hangs takes 60
        assert "The function app does not answer. It is ended." in caplog.text


async def test_calls_behind_one_that_blocks_go_to_the_next_process(folder: Path) -> None:
    async with supervised(folder) as worker:
        first = worker.pid
        blocking = asyncio.ensure_future(call(worker, "hang", seconds=2))
        behind = [asyncio.ensure_future(call(worker, "pid", seconds=2)) for _ in range(5)]  # in the same batch
        await asyncio.sleep(0.1)
        behind += [asyncio.ensure_future(call(worker, "pid", seconds=2)) for _ in range(5)]
        with pytest.raises(TimeoutError):
            await blocking
        answers = await asyncio.gather(*behind)
        assert set(answers) == {str(worker.pid)}
        assert worker.pid != first
        assert (folder / "calls").read_text() == "x" * 10  # each ran once


async def test_the_next_start_takes_nothing_of_the_time_of_a_call(folder: Path) -> None:
    async with supervised(folder) as worker:
        code = folder / "function_app.py"
        code.write_text("import time\ntime.sleep(2.5)\n" + code.read_text())
        blocking = asyncio.ensure_future(call(worker, "hang", seconds=2))
        behind = asyncio.ensure_future(call(worker, "pid", seconds=2))
        with pytest.raises(TimeoutError):
            await blocking
        assert await behind == str(worker.pid)


async def test_a_call_that_waits_for_the_next_process_has_all_of_its_time(folder: Path) -> None:
    async with supervised(folder) as worker:
        code = folder / "function_app.py"
        code.write_text("import time\ntime.sleep(2.5)\n" + code.read_text())
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        assert await call(worker, "pid", seconds=2) == str(worker.pid)


async def test_large_calls_that_a_blocked_process_does_not_read_go_to_the_next_one(folder: Path) -> None:
    async with supervised(folder) as worker:
        first = worker.pid
        blocking = asyncio.ensure_future(call(worker, "hang", seconds=2))
        behind = [asyncio.ensure_future(call(worker, "pid", seconds=2, text="x" * 1_000_000)) for _ in range(3)]
        with pytest.raises(TimeoutError):
            await blocking
        assert set(await asyncio.gather(*behind)) == {str(worker.pid)}
        assert worker.pid != first
        assert (folder / "calls").read_text() == "xxx"


async def test_calls_behind_one_that_ends_in_time_for_the_ping_have_their_own_time(folder: Path) -> None:
    async with supervised(folder, PATIENT) as worker:
        first = worker.pid
        blocking = asyncio.ensure_future(call(worker, "block", seconds=2))
        behind = asyncio.ensure_future(call(worker, "pid", seconds=2))
        with pytest.raises(TimeoutError):
            await blocking
        await asyncio.sleep(0.2)
        assert not behind.done()
        (folder / "go").touch()
        assert await behind == str(first)
        assert (folder / "calls").read_text() == "x"


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.01)


async def test_a_call_for_which_no_thread_is_free_is_cancelled_before_it_begins(tmp_path: Path) -> None:
    folder = write_app(tmp_path, APP, settings={"PYTHON_THREADPOOL_THREAD_COUNT": "1"})
    variables = {**os.environ, "PYTHON_THREADPOOL_THREAD_COUNT": "1"}
    worker = Supervised(lambda: python_worker(folder, variables, engine="library"), PATIENT)
    await worker.start()
    try:
        occupying = asyncio.ensure_future(call(worker, "occupy", seconds=PATIENCE))
        await asyncio.to_thread(wait_for, folder / "occupied")
        with pytest.raises(TimeoutError):  # the process answers: it is busy and not blocked
            await call(worker, "threaded", seconds=0.3)
        assert await call(worker, "pid", seconds=PATIENCE) == str(worker.pid)  # it has read the cancellation
        (folder / "go").touch()
        assert await occupying == str(worker.pid)
        assert await call(worker, "threaded", seconds=PATIENCE) == str(worker.pid)
        assert (folder / "calls").read_text() == "xt"  # the one that was cancelled did not run
    finally:
        await worker.aclose()


async def test_closing_ends_a_process_that_hangs_as_well(folder: Path) -> None:
    async with supervised(folder) as worker:
        first = worker.pid
        assert first is not None
        with pytest.raises(TimeoutError):
            await call(worker, "hang", seconds=0.2)
        await asyncio.sleep(0.5)  # its end has begun
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_a_process_whose_call_takes_too_long_but_answers_goes_on(folder: Path) -> None:
    async with supervised(folder) as worker:
        first = worker.pid
        with pytest.raises(TimeoutError):
            await call(worker, "wait", seconds=0.2, pause=30)
        await asyncio.sleep(0.5)
        assert await call(worker, "pid") == str(first)


async def test_an_app_that_cannot_be_loaded_any_more_is_tried_again_with_growing_pauses(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with supervised(folder, RestartPolicy(wait_seconds=0.3)) as worker:
        (folder / "broken").write_text("")
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerGone) as gone:
            await call(worker, "pid")
        assert not gone.value.begun
        assert worker.away_seconds > 0.2
        while "broken by a file" not in caplog.text:  # noqa: ASYNC110 - the log has no event
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.5)
        assert caplog.text.count("broken by a file") == 1  # said once
        (folder / "broken").unlink()
        answer = ""
        deadline = time.monotonic() + PATIENCE
        while not answer and time.monotonic() < deadline:
            with contextlib.suppress(WorkerGone):
                answer = await call(worker, "pid")
        assert answer == str(worker.pid)
        assert worker.away_seconds == 0


async def test_the_first_start_fails_at_once(folder: Path) -> None:
    (folder / "broken").write_text("")
    worker = Supervised(lambda: python_worker(folder, os.environ, engine="library"), QUICK)
    with pytest.raises(LoadFailed, match="broken by a file"):
        await worker.start()
    await worker.aclose()


async def test_a_replaced_process_finishes_its_calls(folder: Path) -> None:
    async with supervised(folder) as worker:
        first = worker.pid
        assert first is not None
        running = asyncio.ensure_future(call(worker, "wait", pause=1))
        await asyncio.sleep(0.1)
        await worker.replace()
        assert await call(worker, "pid") == str(worker.pid) != str(first)
        assert await running == str(first)
        await asyncio.sleep(0.3)
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)


async def test_a_replacement_that_cannot_be_loaded_changes_nothing(folder: Path) -> None:
    async with supervised(folder) as worker:
        first = worker.pid
        (folder / "broken").write_text("")
        with pytest.raises(LoadFailed):
            await worker.replace()
        assert await call(worker, "pid") == str(first)


async def test_closing_during_a_start_leaves_no_process_and_no_socket(folder: Path) -> None:
    async def close_after(seconds: float) -> None:
        async with supervised(folder) as worker:
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            await asyncio.sleep(seconds)

    await asyncio.gather(*(close_after(number / 100) for number in range(8)))
    gc.collect()  # warns of each process and socket that nobody closed


async def test_a_pool_takes_turns_and_leaves_out_a_process_that_has_ended(folder: Path) -> None:
    workers = [
        Supervised(lambda: python_worker(folder, os.environ, engine="library"), RestartPolicy(first_delay=30))
        for _ in range(2)
    ]
    pool = WorkerPool(workers)
    await pool.start()
    try:
        assert len(running_pids(pool)) == 2
        assert {await call(pool, "pid") for _ in range(4)} == {str(pid) for pid in running_pids(pool)}
        (folder / "broken").write_text("")
        os.kill(running_pids(pool)[0], signal.SIGKILL)
        await asyncio.sleep(0.2)
        assert {await call(pool, "pid") for _ in range(4)} == {str(workers[1].pid)}
        assert pool.away_seconds == 0
    finally:
        await pool.aclose()
    assert running_pids(pool) == []
