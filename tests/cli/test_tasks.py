"""``funcmcp tasks``: what operators see of tasks, and change."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._server.tasks.service import task_digest
from funcmcp._state.tasks.record import NewTask, Outcome, Question, TaskKey
from funcmcp.client import Client
from funcmcp.tasks import SQLiteTasks
from funcmcp.testing._task_stores import newer_version
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

SERVER = """
import asyncio

from funcmcp import MCPServer
from funcmcp.tasks import SQLiteTasks, TaskOptions

mcp = MCPServer("Reports", tasks=SQLiteTasks("tasks.db"))


@mcp.tool(task=TaskOptions(poll=0.05))
async def wait() -> str:
    print("waiting", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("stopped", flush=True)


@mcp.tool(task=TaskOptions(poll=0.05))
async def weigh(dish: str) -> str:
    with open("scales") as scales:
        return f"{dish}: {scales.read()}"
"""
MARK = "a" * 32
QUESTION = {"method": "elicitation/create", "params": {"message": "How many?"}}


def key_of(number: int, owner: str | None = MARK) -> TaskKey:
    return TaskKey(owner, f"{number:044d}")


def name_of(number: int) -> str:
    return task_digest(key_of(number).task_id)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


def fill(folder: Path, work: Callable[[SQLiteTasks], Awaitable[None]]) -> None:
    """Change the tasks of the server."""

    async def run() -> None:
        store = SQLiteTasks(folder / "tasks.db")
        store.bind("Reports")
        await work(store)
        await store.aclose()

    asyncio.run(run())


async def some_tasks(store: SQLiteTasks) -> None:
    """Create a task that has failed, one that asks, one that runs, and one that waits."""
    await store.create(NewTask(key_of(1), "export", b"{}"))
    (claim,) = await store.claim(1)
    await store.finish(claim, Outcome(b'{"code":-32603,"message":"No disk"}', is_error=True, message="No disk"))
    await store.create(NewTask(key_of(2), "export", b"{}", queue="slow"))
    (claim,) = await store.claim(1)
    await store.ask(claim, {"count": Question("count", "digest", QUESTION)})
    await store.create(NewTask(key_of(3), "count", b"{}"))
    (claim,) = await store.claim(1)
    await store.report(claim, "half done")
    await asyncio.sleep(0.002)  # the list is in the order of creation, in milliseconds
    await store.create(NewTask(key_of(4, None), "count", b"{}"))


def listed(folder: Path, *options: str) -> list[Any]:
    ended = funcmcp("tasks", "list", "server.py", "--json", *options, folder=folder)
    assert (ended.returncode, ended.stderr) == (0, "")
    tasks: list[Any] = json.loads(ended.stdout)
    return tasks


def test_a_list_has_owner_age_attempt_and_error_of_each_task(folder: Path) -> None:
    fill(folder, some_tasks)
    tasks = {task["task"]: task for task in listed(folder)}
    failed = tasks[name_of(1)]
    date = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00")
    for member in ("created", "updated", "expires", "removed"):
        assert date.fullmatch(failed.pop(member))
    assert failed.pop("age") >= 0
    assert failed == {
        "task": name_of(1),
        "tool": "export",
        "queue": "default",
        "status": "failed",
        "owner": MARK,
        "running": False,
        "attempt": 1,
        "attempts": 1,
        "failures": 0,
        "message": "No disk",
        "error": "No disk",
    }
    others = {name: (task["status"], task["running"], task["error"]) for name, task in tasks.items()}
    assert others[name_of(2)] == ("input_required", False, None)
    assert others[name_of(3)] == ("working", True, None)
    assert others[name_of(4)] == ("working", False, None)


@_SLOW
def test_options_choose_the_tasks_of_a_list(folder: Path) -> None:
    fill(folder, some_tasks)
    assert [task["task"] for task in listed(folder, "--limit", "1")] == [name_of(4)]
    assert {task["task"] for task in listed(folder, "--tool", "export")} == {name_of(1), name_of(2)}
    assert [task["task"] for task in listed(folder, "--owner", "anonymous")] == [name_of(4)]
    assert [task["task"] for task in listed(folder, "--queue", "slow")] == [name_of(2)]
    both = listed(folder, "--status", "failed", "--status", "input_required")
    assert {task["task"] for task in both} == {name_of(1), name_of(2)}
    assert [task["task"] for task in listed(folder, "--status", "running")] == [name_of(3)]


@_SLOW
def test_a_task_whose_tool_failed_is_listed_as_failed(folder: Path) -> None:
    async def fail(store: SQLiteTasks) -> None:
        await store.create(NewTask(key_of(1), "export", b"{}"))
        (claim,) = await store.claim(1)
        await store.finish(claim, Outcome(b'{"content":[],"isError":true}', tool_failed=True, message="No disk"))

    fill(folder, fail)
    (task,) = listed(folder, "--status", "failed")
    assert (task["status"], task["error"]) == ("failed", "No disk")
    assert listed(folder, "--status", "completed") == []


@_SLOW
def test_a_list_for_people_is_a_table(folder: Path) -> None:
    ended = funcmcp("tasks", "list", "server.py", folder=folder)
    assert (ended.returncode, ended.stdout) == (0, "No tasks\n")
    fill(folder, some_tasks)
    ended = funcmcp("tasks", "list", "server.py", "--limit", "3", folder=folder)
    assert "half done" in ended.stdout
    assert "slow" in ended.stdout
    assert "running" in ended.stdout
    assert ended.stdout.endswith("and 1 more; --limit shows them\n")
    assert key_of(3).task_id not in ended.stdout


def test_a_task_is_shown_with_its_questions_and_its_outcome(folder: Path) -> None:
    fill(folder, some_tasks)
    asking = funcmcp("tasks", "show", "server.py", name_of(2)[:6], "--json", folder=folder)
    assert json.loads(asking.stdout)["questions"] == [QUESTION]
    failed = funcmcp("tasks", "show", "server.py", name_of(1), folder=folder)
    assert "error: No disk\n" in failed.stdout
    assert "outcome: {'code': -32603, 'message': 'No disk'}\n" in failed.stdout
    assert "questions" not in failed.stdout


@_SLOW
async def test_a_cancelled_task_stops_where_it_runs(folder: Path) -> None:
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=folder) as server:
        async with Client(server.endpoint(), timeout=PATIENCE) as client:
            task = await client.start_tool("wait")
            await asyncio.to_thread(server.line_with, "waiting")
            name = task_digest(str(task.task_id))
            ended = await asyncio.to_thread(funcmcp, "tasks", "cancel", "server.py", name, folder=folder)
            assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"Cancelled {name}\n", "")
            await asyncio.to_thread(server.line_with, "stopped")
        again = await asyncio.to_thread(funcmcp, "tasks", "cancel", "server.py", name, folder=folder)
    assert (again.returncode, again.stdout, again.stderr) == (1, "", f"{name} had already ended.\n")


@_SLOW
async def test_a_task_that_has_failed_runs_again_with_the_same_arguments(folder: Path) -> None:
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=folder) as server:
        async with Client(server.endpoint(), timeout=PATIENCE) as client:
            failed = await client.start_tool("weigh", {"dish": "soup"})
            assert (await failed.result()).is_error
            name = task_digest(str(failed.task_id))
            (folder / "scales").write_text("300 g")
            ended = await asyncio.to_thread(funcmcp, "tasks", "retry", "server.py", name, "--json", folder=folder)
            (retried,) = json.loads(ended.stdout)
            assert (ended.returncode, ended.stderr) == (0, "")
            assert retried == {"task": name, "new": task_digest(retried["id"]), "id": retried["id"], "error": None}
            again = await client.get_task(retried["id"])
            assert (await again.result()).text == "soup: 300 g"
            texts = await asyncio.to_thread(funcmcp, "tasks", "retry", "server.py", name, folder=folder)
            reason = f"{name} can't be retried. It was retried before, as {retried['new']}, which is completed.\n"
            assert (texts.returncode, texts.stdout, texts.stderr) == (1, "", reason)
            ended = await asyncio.to_thread(funcmcp, "tasks", "retry", "server.py", retried["new"], folder=folder)
    text = f"{retried['new']} can't be retried. Only tasks that have failed can be retried.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", text)


def test_a_task_of_a_tool_that_the_server_lacks_is_not_retried(folder: Path) -> None:
    fill(folder, some_tasks)
    ended = funcmcp("tasks", "retry", "server.py", name_of(1), folder=folder)
    reason = "The server has no tool 'export': add it under this name until its old tasks have ended."
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{name_of(1)} can't be retried. {reason}\n")


@_SLOW
def test_a_task_that_waits_for_a_worker_with_its_tool_says_so(folder: Path) -> None:
    async def deliver(store: SQLiteTasks) -> None:
        await store.create(NewTask(key_of(1), "export", b"{}", attempts=3))
        for _ in range(4):
            (claim,) = await store.claim(1)
            await store.release(claim, unknown=True)

    fill(folder, deliver)
    (task,) = listed(folder)
    assert (task["attempt"], task["attempts"]) == (0, 3)
    assert task["message"] == "Waits for a worker that has its tool: 4 deliveries to workers without it."
    ended = funcmcp("tasks", "list", "server.py", folder=folder)
    assert "0 of 3" in ended.stdout


def test_a_task_that_failed_in_a_version_that_keeps_no_arguments_can_not_be_retried(folder: Path) -> None:
    async def fail(store: SQLiteTasks) -> None:
        record = await store.create(NewTask(TaskKey(None, "d" * 44), "weigh", b"{}"))
        (claim,) = await store.claim(1)
        assert claim.key == record.key
        assert await store.finish(claim, Outcome(b"{}", tool_failed=True))

    fill(folder, fail)
    with contextlib.closing(sqlite3.connect(folder / "tasks.db")) as connection, connection:
        connection.execute("UPDATE funcmcp_tasks_3 SET call = x''")
    name = task_digest("d" * 44)
    ended = funcmcp("tasks", "retry", "server.py", name, folder=folder)
    reason = "Its arguments were not kept: an earlier version ended it, or it was removed meanwhile."
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{name} can't be retried. {reason}\n")


@_SLOW
def test_a_drain_waits_for_tasks_that_run_or_wait_for_a_worker(folder: Path) -> None:
    fill(folder, some_tasks)
    ended = funcmcp("tasks", "drain", "server.py", "--timeout", "0", folder=folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "2 tasks have not ended\n")
    with running([*FUNCMCP, "tasks", "drain", "server.py"], folder=folder) as draining:
        draining.line_with("2 tasks have not ended")
        assert funcmcp("tasks", "cancel", "server.py", name_of(3), folder=folder).returncode == 0
        draining.line_with("1 task has not ended")
        assert funcmcp("tasks", "cancel", "server.py", name_of(4), folder=folder).returncode == 0
        assert draining.ended() == 0


@_SLOW
def test_tasks_of_a_newer_version_are_counted_and_can_not_be_named(folder: Path) -> None:
    async def create(store: SQLiteTasks) -> None:
        with newer_version():
            await store.create(NewTask(key_of(5), "export", b"{}"))
            await store.create(NewTask(key_of(6), "export", b"{}"))
            await store.cancel(key_of(6))

    fill(folder, create)
    ended = funcmcp("tasks", "list", "server.py", "--json", folder=folder)
    counted = "2 tasks were written by a newer version of the server"
    assert (ended.returncode, json.loads(ended.stdout), ended.stderr.splitlines()[-1]) == (0, [], counted)
    ended = funcmcp("tasks", "show", "server.py", name_of(5), folder=folder)
    refusal = f"The task {name_of(5)!r} was written by a newer version of the server. Use the command of that version."
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, refusal)
    ended = funcmcp("tasks", "drain", "server.py", "--timeout", "0", folder=folder)
    lines = ["1 task has not ended", "1 task was written by a newer version of the server"]
    assert (ended.returncode, ended.stderr.splitlines()[-2:]) == (1, lines)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["show", "server.py", "abc"], "'abc' is too short. Write at least 6 characters of the task's name."),
        (["cancel", "server.py", "0" * 16], f"There is no task {'0' * 16!r}. `funcmcp tasks list` shows all tasks."),
        (["list", "memory.py"], "Shop stores tasks in the memory of its process, which other commands can't read."),
        (["list", "none.py"], "Shop has no store of tasks. Write MCPServer(..., tasks=RedisTasks(url))."),
    ],
)
def test_what_can_not_be_done_is_one_clear_line(folder: Path, arguments: list[str], line: str) -> None:
    (folder / "memory.py").write_text("from funcmcp import MCPServer\nmcp = MCPServer('Shop')\n")
    (folder / "none.py").write_text("from funcmcp import MCPServer\nmcp = MCPServer('Shop', tasks=None)\n")
    ended = funcmcp("tasks", *arguments, folder=folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{line}\n")


def test_a_status_that_does_not_exist_is_refused(folder: Path) -> None:
    ended = funcmcp("tasks", "list", "server.py", "--status", "done", folder=folder)
    assert ended.returncode == 2
    assert (
        "--status 'done' is not one of cancelled, completed, failed, input_required, running, working." in ended.stderr
    )


def test_a_store_that_is_away_is_named(folder: Path) -> None:
    (folder / "tasks.db").mkdir()
    ended = funcmcp("tasks", "list", "server.py", folder=folder)
    assert ended.returncode == 1
    assert "The task store tasks.db can't be used" in ended.stderr
    assert ended.stderr.endswith("The task store can't be reached. The reason is above.\n")


def test_a_name_of_several_tasks_is_refused(folder: Path) -> None:
    numbers = range(10_000)
    seen: dict[str, int] = {}
    pair = next((seen[name_of(n)[:6]], n) for n in numbers if seen.setdefault(name_of(n)[:6], n) != n)

    async def create(store: SQLiteTasks) -> None:
        for number in pair:
            await store.create(NewTask(key_of(number), "count", b"{}"))

    fill(folder, create)
    ended = funcmcp("tasks", "show", "server.py", name_of(pair[0])[:6], folder=folder)
    assert ended.stderr == f"2 tasks begin with {name_of(pair[0])[:6]!r}. Write more characters.\n"
