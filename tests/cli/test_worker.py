"""``funcmcp worker``: tasks of a server that another process serves."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from funcmcp.client import Client
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio.")

SERVER = """
import asyncio
import os

from funcmcp import MCPServer
from funcmcp.tasks import SQLiteTasks, TaskOptions

mcp = MCPServer("Reports", tasks=SQLiteTasks("tasks.db"))


@mcp.tool(task=TaskOptions(poll=0.05))
async def pid() -> int:
    return os.getpid()


@mcp.tool(task=TaskOptions(poll=0.05))
async def work(seconds: float) -> str:
    print("working", flush=True)
    await asyncio.sleep(seconds)
    return "done"
"""

IMPORTS = "from funcmcp import MCPServer\nfrom funcmcp.tasks import SQLiteTasks\n"
TASK = "mcp.tool('job', task='optional')(lambda: 'done')\n"


async def test_a_worker_runs_the_tasks_of_a_process_that_only_serves_and_sigterm_drains(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    serve = [*FUNCMCP, "run", "server.py", "--port", "0"]
    only_serves = {"FUNCMCP_TASK_CONCURRENCY": "0"}
    with running(serve, folder=tmp_path, env=only_serves) as server:
        url = server.endpoint()
        async with Client(url, timeout=PATIENCE) as client:
            first = await client.start_tool("pid")
            command = [*FUNCMCP, "worker", "server.py", "--concurrency", "3"]
            with running(command, folder=tmp_path, env=only_serves) as worker:
                worker.line_with("Reports runs its tasks")
                result = await first.result()
                assert result.structured_content == {"result": worker.process.pid}

                second = await client.start_tool("work", {"seconds": 0.5})
                worker.line_with("working")
                worker.process.send_signal(signal.SIGTERM)
                worker.line_with("Finishing the running tasks")
                assert worker.ended() == 0
            assert (await second.result()).text == "done"


QUEUES = """
import os

from funcmcp import MCPServer
from funcmcp.tasks import SQLiteTasks, TaskOptions

mcp = MCPServer("Reports", tasks=SQLiteTasks("tasks.db"))


@mcp.tool(task=TaskOptions(poll=0.05))
async def pid() -> int:
    return os.getpid()


@mcp.tool(task=TaskOptions(poll=0.05, queue="slow"))
async def slow_pid() -> int:
    return os.getpid()
"""


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_worker_of_a_queue_runs_its_tasks_and_the_server_the_others(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(QUEUES)
    serve = [*FUNCMCP, "run", "server.py", "--port", "0", "--queue", "default"]
    with running(serve, folder=tmp_path) as server:
        async with Client(server.endpoint(), timeout=PATIENCE) as client:
            slow = await client.start_tool("slow_pid")
            plain = await client.start_tool("pid")
            assert (await plain.result()).structured_content == {"result": server.process.pid}
            listed = funcmcp("tasks", "list", "server.py", "--queue", "slow", "--json", folder=tmp_path)
            (waiting,) = json.loads(listed.stdout)
            assert (waiting["status"], waiting["running"]) == ("working", False)
            command = [*FUNCMCP, "worker", "server.py", "--queue", "slow", "--queue", "slwo"]
            with running(command, folder=tmp_path) as worker:
                worker.line_with("none of its tools has this queue. Their queues: default, slow.")
                assert (await slow.result()).structured_content == {"result": worker.process.pid}


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_process_that_runs_no_tasks_leaves_them_to_workers(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(QUEUES)
    with running([*FUNCMCP, "run", "server.py", "--port", "0", "--no-tasks"], folder=tmp_path) as server:
        async with Client(server.endpoint(), timeout=PATIENCE) as client:
            tasks = [await client.start_tool(name) for name in ("pid", "slow_pid")]
            with running([*FUNCMCP, "worker", "server.py"], folder=tmp_path) as worker:
                for task in tasks:
                    assert (await task.result()).structured_content == {"result": worker.process.pid}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "server.py", "--queue", "a b"], 2, "--queue: The name of a queue must have 1 to 40 letters"),
        (["worker", "server.py", "--queue", "a,b"], 2, "--queue: The name of a queue must have 1 to 40 letters"),
        (["run", "server.py", "--queue", "slow", "--no-tasks"], 2, "--no-tasks runs no tasks"),
        (["run", "server.py", "--stdio", "--no-tasks"], 2, "leave out --no-tasks"),
        (["run", "server.py", "--stdio", "--queue", "slow"], 2, "leave out --queue"),
    ],
)
def test_a_wrong_queue_is_one_clear_line(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    (tmp_path / "server.py").write_text(QUEUES)
    ended = funcmcp(*arguments, folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert message in " ".join(ended.stderr.split())


def test_a_wrong_queue_in_the_environment_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(QUEUES)
    ended = funcmcp("worker", "server.py", folder=tmp_path, env={"FUNCMCP_TASK_QUEUES": "a b"})
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("FUNCMCP_TASK_QUEUES: The name of a queue must have 1 to 40 letters")


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ("", TASK, "Shop stores tasks in the memory of each process, where a worker cannot reach them. Write"),
        ("tasks=None", TASK, "Shop has no store of tasks. Write MCPServer(..., tasks=RedisTasks(url))."),
        ('tasks=SQLiteTasks("x.db")', "", "Shop has no tools with task=."),
    ],
)
def test_a_server_without_tasks_for_a_worker_is_one_clear_line(
    tmp_path: Path, arguments: str, code: str, line: str
) -> None:
    (tmp_path / "server.py").write_text(f"{IMPORTS}mcp = MCPServer('Shop', {arguments})\n{code}")
    ended = funcmcp("worker", "server.py", folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(line)
    assert ended.stderr.count("\n") == 1
