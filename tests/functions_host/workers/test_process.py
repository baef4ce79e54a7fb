"""A worker in a process: its calls when it dies, hangs or sends nonsense, and its end with the host."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from funcmcp_host.workers.child_process import Command
from funcmcp_host.workers.process import ProcessWorker
from funcmcp_host.workers.python_command import python_worker
from funcmcp_host.workers.worker import Invocation, LoadFailed, Value, WorkerGone
from tests.functions_host.apps import KINDS, write_app
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio.")

ROOT = Path(__file__).parents[3]


def invocation(function: str, arguments: object = None) -> Invocation:
    context = json.dumps({"name": function, "arguments": arguments or {}})
    return Invocation(function, {"context": Value("string", context)})


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[ProcessWorker]:
    worker = python_worker(write_app(tmp_path / "app", KINDS), os.environ, engine="library")
    await worker.start()
    try:
        yield worker
    finally:
        await worker.aclose()


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while is_running(pid) and time.monotonic() < deadline:  # noqa: ASYNC110 - nothing tells of another process's end
        await asyncio.sleep(0.02)
    assert not is_running(pid)


async def test_closing_ends_the_process(worker: ProcessWorker) -> None:
    assert worker.pid is not None
    assert is_running(worker.pid)
    await worker.aclose()
    assert not is_running(worker.pid)
    with pytest.raises(WorkerGone) as gone:
        await worker.invoke(invocation("echo"), 5)
    assert gone.value.begun is False


async def test_calls_in_flight_fail_at_once_when_the_process_is_killed(worker: ProcessWorker) -> None:
    calls = [asyncio.ensure_future(worker.invoke(invocation("slow"), 30)) for _ in range(10)]
    await asyncio.sleep(0.2)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(result) for result in results] == [WorkerGone] * 10
    assert all(isinstance(result, WorkerGone) and result.begun for result in results)
    assert worker.ended.done()


async def test_a_call_that_ends_the_process_has_begun(worker: ProcessWorker) -> None:
    with pytest.raises(WorkerGone) as gone:
        await worker.invoke(invocation("die"), 5)
    assert gone.value.begun


async def test_a_call_past_its_time_is_cancelled(worker: ProcessWorker, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(TimeoutError):
        await worker.invoke(invocation("slow"), 0.1)
    assert (await worker.invoke(invocation("add", {"a": 1}), 5)).value.data == "3"
    assert "slow was cancelled" in caplog.text


async def test_a_caller_that_leaves_cancels_its_call(worker: ProcessWorker, caplog: pytest.LogCaptureFixture) -> None:
    call = asyncio.ensure_future(worker.invoke(invocation("slow"), 30))
    await asyncio.sleep(0.1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await worker.invoke(invocation("add", {"a": 1}), 5)).value.data == "3"
    assert "slow was cancelled" in caplog.text


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_worker_answers_pings_until_it_is_stopped(worker: ProcessWorker) -> None:
    assert await worker.ping(5)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGSTOP)
    assert not await worker.ping(0.2)
    os.kill(worker.pid, signal.SIGCONT)
    assert await worker.ping(5)


def program(folder: Path, code: str) -> ProcessWorker:
    """Return a worker that runs a few lines of Python; `link` is its end of the socket."""
    begin = "import os, socket, struct, sys, json, time\nlink = socket.socket(fileno=int(sys.argv[1]))\n"
    begin += "def send(header):\n    text = json.dumps(header).encode()\n"
    begin += "    link.sendall(struct.pack('>I', len(text)) + text)\n"
    begin += "ready = {'m': 'ready', 'functions': [{'name': 'f', 'bindings': [], 'error': None}]}\n"
    command = (sys.executable, "-c", begin + textwrap.dedent(code))
    return ProcessWorker(Command(command, folder, dict(os.environ), start_seconds=5))


async def test_what_a_process_sent_before_its_end_counts_though_the_host_wrote_after_it(
    tmp_path: Path,
) -> None:
    go_on = tmp_path / "go-on"
    worker = program(
        tmp_path,
        f"""
        send(ready)
        link.recv(65536)
        while not os.path.exists({str(go_on)!r}):
            time.sleep(0.01)
        send({{"m": "begun", "id": 1}})
        """,
    )
    await worker.start()
    call = asyncio.create_task(worker.invoke(invocation("f"), None))
    await asyncio.sleep(0)
    assert worker.pid is not None
    go_on.touch()
    while is_running(worker.pid):
        time.sleep(0.01)  # noqa: ASYNC251 - the event loop must not read meanwhile
    later = asyncio.create_task(worker.invoke(invocation("f"), None))
    outcomes = await asyncio.wait_for(asyncio.gather(call, later, return_exceptions=True), PATIENCE)
    assert [isinstance(outcome, WorkerGone) and outcome.begun for outcome in outcomes] == [True, False]
    await worker.aclose()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_garbage_on_the_socket_ends_the_worker_and_fails_its_calls(tmp_path: Path) -> None:
    worker = program(tmp_path, "send(ready)\nlink.recv(1)\nlink.sendall(b'GET / HTTP/1.1')\ntime.sleep(60)")
    await worker.start()
    try:
        with pytest.raises(WorkerGone):
            await worker.invoke(invocation("f"), 5)
    finally:
        await worker.aclose()
    assert worker.pid is not None
    assert not is_running(worker.pid)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("sys.exit(7)", r"ended before the app was loaded \(exit code 7\)"),
        ("link.sendall(b'x' * 100)\ntime.sleep(60)", "ended before the app was loaded"),
        ("send({'m': 'failed', 'error': 'It is broken.'})", "It is broken."),
        ("send({'m': 'surprise'})\ntime.sleep(60)", "ended before the app was loaded"),
    ],
)
async def test_a_program_that_does_not_load_is_an_error(code: str, reason: str, tmp_path: Path) -> None:
    worker = program(tmp_path, code)
    with pytest.raises(LoadFailed, match=reason):
        await worker.start()
    assert worker.pid is not None
    assert not is_running(worker.pid)


async def test_a_program_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    worker = ProcessWorker(Command(("no-such-program",), tmp_path, {}))
    with pytest.raises(LoadFailed, match="no-such-program can't be started: No such file"):
        await worker.start()


async def test_a_megabyte_of_output_without_a_newline_is_logged_in_pieces(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "funcmcp.app")
    code = "os.write(1, b'x' * 1_000_000 + b'\\x1b[31m')\nsend(ready)\nlink.recv(1)\nlink.recv(1)"
    worker = program(tmp_path, code)
    await worker.start()
    await asyncio.sleep(0.2)
    await worker.aclose()
    lines = [record.message for record in caplog.records]
    assert sum(line.count("x") for line in lines) >= 1_000_000
    assert max(map(len, lines)) <= 8192
    assert not any("\x1b" in line for line in lines)


HOST = """
import asyncio, os, sys
from pathlib import Path
from funcmcp_host.workers.python_command import python_worker

async def main():
    worker = python_worker(Path(sys.argv[1]), os.environ, engine="library")
    await worker.start()
    print(worker.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
async def test_the_worker_ends_with_the_host(number: signal.Signals, tmp_path: Path) -> None:
    folder = write_app(tmp_path / "app", KINDS)
    host = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HOST,
        str(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    assert host.stdout is not None
    pid = int(await host.stdout.readline())
    assert is_running(pid)
    host.send_signal(number)
    await host.communicate()  # waits for the end of the process and of its pipe
    await wait_for_end(pid)
