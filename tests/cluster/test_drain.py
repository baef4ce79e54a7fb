"""SIGTERM: calls in flight and tasks end in the time of ``--drain``, whatever serves them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._state.tasks.record import TaskKey, TaskRecord
from funcmcp.client import Client
from funcmcp.tasks import SQLiteTasks
from tests.cli.forking import UVICORN, running
from tests.cli.processes import FUNCMCP, Running
from tests.patience import PATIENCE
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow("Several processes fail and start again, behind a proxy or a store.")

SERVER = """
import asyncio
import os
import sys
import time

from funcmcp import MCPServer
from funcmcp.tasks import SQLiteTasks, TaskOptions

mcp = MCPServer("Reports", tasks=SQLiteTasks("tasks.db"))


def say(text: str) -> None:
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()


async def ready() -> str:
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)
    return "done"


@mcp.tool(task=TaskOptions(poll=0.05))
async def work() -> str:
    say(f"process {os.getpid()}")
    say("working")
    return await ready()


@mcp.tool(task=TaskOptions(poll=0.05), idempotent=True)
async def again() -> str:
    say("working")
    return await ready()


@mcp.tool(task=TaskOptions(poll=0.05))
def stubborn() -> str:
    say("working")
    while True:
        time.sleep(0.01)


@mcp.tool(task=TaskOptions(poll=0.05))
async def deaf() -> str:
    say("working")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            say("still here")


@mcp.tool
async def call() -> str:
    say("working")
    return await ready()
"""
STOPPED = "The server was stopped while the tool ran. Part of its work may be done."
KINDS = ["run", "workers", "worker", "uvicorn"]


class Process:
    """A process that runs tasks, and the URL of one that creates them."""

    def __init__(self, running: Running, url: str) -> None:
        self.running = running
        self.url = url

    async def start(self, *tools: str) -> list[str]:
        """Create a task for each tool, wait until they run, and return their ids."""
        async with Client(self.url, timeout=PATIENCE) as client:
            tasks = [await client.start_tool(tool) for tool in tools]
        for _ in tools:
            await asyncio.to_thread(self.running.line_with, "working")
        return [str(task.task_id) for task in tasks]

    def terminate(self) -> None:
        self.running.process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        return await asyncio.to_thread(self.running.ended)


@contextlib.contextmanager
def process(kind: str, folder: Path, seconds: int) -> Iterator[Process]:
    """Run tasks in a process, which has some seconds to end."""
    (folder / "server.py").write_text(SERVER)
    drain = ["--drain", str(seconds)]
    if kind == "worker":
        serve = [*FUNCMCP, "run", "server.py", "--port", "0"]
        with running(serve, folder=folder, env={"FUNCMCP_TASK_CONCURRENCY": "0"}) as server:
            url = server.endpoint()
            with running([*FUNCMCP, "worker", "server.py", *drain], folder=folder) as worker:
                worker.line_with("runs its tasks")
                yield Process(worker, url)
    elif kind == "uvicorn":
        port = free_port()
        command = [*UVICORN, "server:mcp", "--port", str(port)]
        command += ["--timeout-graceful-shutdown", str(seconds)]
        with running(command, folder=folder, env={"FUNCMCP_DRAIN_SECONDS": str(seconds)}) as server:
            server.line_with("Uvicorn running")
            yield Process(server, f"http://127.0.0.1:{port}/mcp")
    else:
        command = [*FUNCMCP, "run", "server.py", "--port", "0", *drain]
        command += ["--workers", "2"] if kind == "workers" else []
        with running(command, folder=folder) as server:
            yield Process(server, server.endpoint())


async def record_of(folder: Path, task_id: str) -> TaskRecord:
    store = SQLiteTasks(folder / "tasks.db")
    store.bind("Reports")
    try:
        record = await store.read(TaskKey(None, task_id))
    finally:
        await store.aclose()
    assert record is not None
    return record


def wait_until_refused(url: str) -> None:
    """Wait until a server accepts no connections any more."""
    host, _, port = url.split("/")[2].partition(":")
    with contextlib.suppress(ConnectionError):
        while True:
            with socket.create_connection((host, int(port)), PATIENCE):
                time.sleep(0.02)


async def until_it_stops(served: Process, kind: str) -> None:
    """Wait until a process has begun to end. Nothing shows it of worker processes, whose parent has the socket."""
    if kind == "worker":
        await asyncio.to_thread(served.running.line_with, "Finishing the running tasks")
    elif kind != "workers":
        await asyncio.to_thread(wait_until_refused, served.url)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_task_that_ends_in_time_has_its_result(kind: str, tmp_path: Path) -> None:
    with process(kind, tmp_path, int(PATIENCE)) as served:
        (task,) = await served.start("work")
        served.terminate()
        await until_it_stops(served, kind)
        assert (await record_of(tmp_path, task)).status == "working"
        (tmp_path / "go").touch()
        assert await served.ended() in (0, -signal.SIGTERM)  # uvicorn raises the signal again at its end
    record = await record_of(tmp_path, task)
    assert record.status == "completed"


@pytest.mark.parametrize("kind", KINDS)
async def test_other_tasks_are_returned_or_fail_before_the_process_ends(kind: str, tmp_path: Path) -> None:
    with process(kind, tmp_path, 1) as served:
        failing, returned = await served.start("work", "again")
        served.terminate()
        assert await served.ended() in (0, -signal.SIGTERM)
    record = await record_of(tmp_path, failing)
    assert record.status == "failed"
    assert record.outcome is not None
    assert STOPPED in record.outcome.text.decode()
    record = await record_of(tmp_path, returned)
    assert (record.status, record.claimed, record.due is not None) == ("working", False, True)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_plain_function_that_never_ends_does_not_keep_the_process(kind: str, tmp_path: Path) -> None:
    with process(kind, tmp_path, 1) as served:
        (task,) = await served.start("stubborn")
        served.terminate()
        assert await served.ended() in (0, -signal.SIGTERM)
    assert (await record_of(tmp_path, task)).status == "failed"


@pytest.mark.parametrize("kind", ["run", "workers", "worker"])
async def test_a_second_signal_ends_the_process_at_once(kind: str, tmp_path: Path) -> None:
    with process(kind, tmp_path, 100_000) as served:
        (task,) = await served.start("work")
        served.terminate()
        await until_it_stops(served, kind)
        while kind == "workers" and served.running.process.poll() is None:  # nothing shows that its parent has begun
            served.terminate()
            await asyncio.sleep(0.05)
        if kind != "workers":
            served.terminate()
        await served.ended()
    if kind != "workers":
        assert (await record_of(tmp_path, task)).status == "failed"


@pytest.mark.parametrize("kind", ["run", "workers", "worker"])
async def test_a_tool_that_ignores_its_cancellation_does_not_keep_the_process(kind: str, tmp_path: Path) -> None:
    with process(kind, tmp_path, 1) as served:
        await served.start("deaf")
        served.terminate()
        assert await served.ended() == 0


async def test_a_signal_that_a_worker_process_gets_twice_does_not_shorten_its_time(tmp_path: Path) -> None:
    """As systemd sends it: to all processes of a service, whose parent sends it to the others again."""
    with process("workers", tmp_path, int(PATIENCE)) as served:
        (task,) = await served.start("work")
        (name,) = [line for line in served.running.lines if line.startswith("process ")]
        for _ in range(3):
            os.kill(int(name.removeprefix("process ")), signal.SIGTERM)
            await asyncio.sleep(0.05)
        served.terminate()
        await asyncio.sleep(0.5)
        (tmp_path / "go").touch()
        assert await served.ended() == 0
    assert (await record_of(tmp_path, task)).status == "completed"


@pytest.mark.parametrize("kind", ["run", "workers"])
async def test_a_call_in_flight_is_answered_in_the_same_time(kind: str, tmp_path: Path) -> None:
    async def call(url: str) -> Any:
        async with Client(url, timeout=PATIENCE) as client:
            return await client.call_tool("call")

    with process(kind, tmp_path, int(PATIENCE)) as served:
        calling = asyncio.create_task(call(served.url))
        await asyncio.to_thread(served.running.line_with, "working")
        served.terminate()
        await until_it_stops(served, kind)
        (tmp_path / "go").touch()
        assert (await calling).text == "done"
        assert await served.ended() == 0


async def test_an_invalid_time_in_the_environment_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    command = [*FUNCMCP, "run", "server.py", "--port", "0"]
    with running(command, folder=tmp_path, env={**os.environ, "FUNCMCP_DRAIN_SECONDS": "soon"}) as server:
        server.line_with("FUNCMCP_DRAIN_SECONDS must be a number of whole seconds; got 'soon'.")
        assert server.ended() == 1
