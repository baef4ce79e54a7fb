"""Tasks as an author writes them."""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import CancellationToken, Context, MCPServer, RegistrationError, ToolError
from funcmcp._protocol.tasks import EXTENSION
from funcmcp._server.calls.feature import TimeLimit
from funcmcp._server.drain import VARIABLE
from funcmcp._serving.composition import runtime_of
from funcmcp.tasks import MemoryTasks, Retry, SQLiteTasks, TaskOptions
from tests.patience import PATIENCE
from tests.server.task_parts import ask, create, get, until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio."),
    pytest.mark.branches("Tasks of authors take every way to their end."),
]


def definition(mcp: MCPServer, name: str) -> dict[str, Any]:
    tool = mcp._server.catalog.tools.get(name)
    assert tool is not None
    return dict(tool.describe())


@pytest.mark.parametrize("mode", ["optional", "required"])
@pytest.mark.parametrize("long", [False, True])
def test_a_tool_says_how_it_supports_tasks(mode: Any, long: bool) -> None:
    mcp = MCPServer("orders")
    mcp.tool("job", task=TaskOptions(mode) if long else mode)(lambda: "done")
    assert definition(mcp, "job")["execution"] == {"taskSupport": mode}
    mcp.tool("plain", task=None)(lambda: "done")
    assert "execution" not in definition(mcp, "plain")


@pytest.mark.parametrize(
    ("options", "attempts"),
    [
        ({"task": "optional"}, 1),
        ({"task": "optional", "idempotent": True}, 3),
        ({"task": "optional", "read_only": True}, 3),
        ({"task": "optional", "idempotent": False}, 1),
        ({"task": TaskOptions(attempts=2)}, 2),
        ({"task": TaskOptions(attempts=1), "idempotent": True}, 1),
    ],
)
def test_only_a_tool_that_may_be_called_twice_is_started_again(options: dict[str, Any], attempts: int) -> None:
    mcp = MCPServer("orders")
    mcp.tool("job", **options)(lambda: "done")
    tool = mcp._server.catalog.tools.get("job")
    assert tool is not None
    assert tool.task is not None
    assert tool.task.attempts == attempts


@pytest.mark.parametrize(
    ("options", "limit"), [({}, None), ({"timeout": 60.0}, TimeLimit(60.0)), ({"timeout": None}, None)]
)
def test_a_timeout_that_is_set_limits_the_runs_of_a_task(options: dict[str, Any], limit: TimeLimit | None) -> None:
    mcp = MCPServer("orders")
    mcp.tool("job", task="optional", **options)(lambda: "done")
    tool = mcp._server.catalog.tools.get("job")
    assert tool is not None
    assert tool.task_time_limit == limit


@pytest.mark.parametrize("task", ["always", 7, True])
def test_an_invalid_task_option_is_refused(task: Any) -> None:
    with pytest.raises(RegistrationError, match="must be 'optional' or 'required'"):
        MCPServer("orders").tool("job", task=task)(lambda: "done")


def test_a_server_without_tasks_refuses_tools_that_need_them_and_calls_the_others() -> None:
    mcp = MCPServer("orders", tasks=None)
    with pytest.raises(RegistrationError, match="runs only as a task"):
        mcp.tool("job", task="required")(lambda: "done")
    mcp.tool("optional", task="optional")(lambda: "done")
    assert "tasks" not in mcp._server.catalog.offered


async def test_a_task_knows_its_id_and_reports_progress_without_a_token() -> None:
    mcp = MCPServer("orders")
    go = asyncio.Event()

    @mcp.tool(task="optional")
    async def count(context: Context) -> str:
        await context.report_progress(1, 2, "counting")
        await context.detach()
        await go.wait()
        return str(context.task_id)

    task_id = await create(mcp._server, "count")
    await asyncio.sleep(0.1)
    assert (await get(mcp._server, task_id))["statusMessage"] == "counting (1 of 2)"
    go.set()
    task = await until(mcp._server, task_id, "completed")
    assert task["result"]["content"][0]["text"] == task_id
    plain = await ask(mcp._server, "tools/call", {"name": "count"}, capabilities={})
    assert plain["result"]["content"][0]["text"] == "None"
    await runtime_of(mcp).aclose()


async def test_a_plain_function_learns_of_its_cancellation() -> None:
    mcp = MCPServer("orders")
    started, stopped = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @mcp.tool(task="optional")
    def crunch(token: CancellationToken) -> str:
        loop.call_soon_threadsafe(started.set)
        while not token.cancelled:
            pass
        loop.call_soon_threadsafe(stopped.set)
        return "stopped"

    task_id = await create(mcp._server, "crunch")
    await asyncio.wait_for(started.wait(), PATIENCE)
    await ask(mcp._server, "tasks/cancel", {"taskId": task_id})
    await asyncio.wait_for(stopped.wait(), PATIENCE)
    assert (await get(mcp._server, task_id))["status"] == "cancelled"
    await runtime_of(mcp).aclose()


def failing(*errors: Exception, retry: Retry | None) -> tuple[MCPServer, list[float]]:
    """Return a server with a tool that fails with these errors in turn and then succeeds, and the times of its runs."""
    mcp = MCPServer("orders", show_errors=True)
    times: list[float] = []
    left = list(errors)

    @mcp.tool(task=TaskOptions(retry=retry))
    async def job(context: Context) -> str:
        times.append(asyncio.get_running_loop().time())

        async def part() -> str:
            return f"stored in run {len(times)}"

        stored: str = await context.once("part", part)
        if left:
            raise left.pop(0)
        return stored

    return mcp, times


async def test_a_task_runs_again_after_an_exception_and_then_ends_with_the_result() -> None:
    mcp, times = failing(OSError("no disk"), TimeoutError("slow"), retry=Retry(3, delay=0.02))
    server = runtime_of(mcp).server
    async with mcp.lifespan():
        task = await until(server, await create(server, "job"), "completed")
    assert task["result"]["content"] == [{"type": "text", "text": "stored in run 1"}]
    assert len(times) == 3
    assert times[1] - times[0] >= 0.02
    assert times[2] - times[1] >= 0.04


@pytest.mark.parametrize(
    ("errors", "retry", "runs", "text"),
    [
        ([OSError("one"), OSError("two"), OSError("three")], Retry(2, delay=0), 2, "two"),
        ([OSError("one"), ToolError("two"), OSError("three")], Retry(3, delay=0), 2, "two"),
        ([OSError("one"), ValueError("two"), OSError("three")], Retry(5, delay=0, on=(OSError,)), 2, "two"),
        ([OSError("one")], Retry(1), 1, "one"),
        ([OSError("one")], Retry(3, delay=7200, max_delay=7200), 1, "one"),
        ([OSError("one")], None, 1, "one"),
    ],
    ids=["no run is left", "a ToolError", "another exception", "one run", "no time is left", "no retry"],
)
async def test_a_task_ends_with_the_failure_after_which_it_may_not_run_again(
    errors: list[Exception], retry: Retry | None, runs: int, text: str
) -> None:
    mcp, times = failing(*errors, retry=retry)
    server = runtime_of(mcp).server
    async with mcp.lifespan():
        task = await until(server, await create(server, "job"), "completed")
    assert task["result"]["isError"] is True
    assert task["result"]["content"] == [{"type": "text", "text": text}]
    assert len(times) == runs


async def test_a_client_sees_why_a_task_waits_for_its_next_run_and_can_cancel_it() -> None:
    mcp, times = failing(OSError("no disk"), retry=Retry(delay=600, max_delay=600))
    server = runtime_of(mcp).server
    async with mcp.lifespan():
        task_id = await create(server, "job")
        async with asyncio.timeout(PATIENCE):
            while "statusMessage" not in (task := await get(server, task_id)):  # noqa: ASYNC110 - clients poll
                await asyncio.sleep(0.005)
        assert (task["status"], task["statusMessage"]) == ("working", "Attempt 1 of 3 failed: no disk")
        await ask(server, "tasks/cancel", {"taskId": task_id})
        assert (await until(server, task_id, "cancelled"))["status"] == "cancelled"
    assert len(times) == 1


async def test_a_task_with_a_delay_runs_after_it() -> None:
    mcp = MCPServer("orders")
    times: list[float] = []

    @mcp.tool(task=TaskOptions(delay=0.1))
    async def job() -> None:
        times.append(asyncio.get_running_loop().time())

    server = runtime_of(mcp).server
    async with mcp.lifespan():
        began = asyncio.get_running_loop().time()
        await until(server, await create(server, "job"), "completed")
    assert times[0] - began >= 0.09


async def test_invalid_arguments_make_no_task() -> None:
    mcp = MCPServer("orders")

    @mcp.tool(task="optional")
    async def square(number: int) -> int:
        return number * number

    params = {"name": "square", "arguments": {"number": "x"}}
    result = (await ask(mcp._server, "tools/call", params))["result"]
    assert (result["resultType"], result["isError"]) == ("complete", True)
    task = await until(mcp._server, await create(mcp._server, "square", {"number": 4}), "completed")
    assert task["result"]["structuredContent"] == {"result": 16}
    await runtime_of(mcp).aclose()


async def test_the_extension_is_declared_beside_others() -> None:
    mcp = MCPServer("orders")
    mcp.tool("job", task="optional")(lambda: "done")
    mcp.resource("ui://page", name="page")(lambda: "<p>page</p>")
    declared = (await ask(mcp._server, "server/discover", {}))["result"]["capabilities"]["extensions"]
    assert declared == {EXTENSION: {}, "io.modelcontextprotocol/ui": {}}


async def test_a_task_of_an_earlier_start_runs_when_the_server_begins(tmp_path: Path) -> None:
    def server(**options: Any) -> MCPServer:
        mcp = MCPServer("orders", tasks=SQLiteTasks(tmp_path / "tasks.db", **options))
        mcp.tool("job", task="optional")(lambda: "done")
        return mcp

    first = server(concurrency=0)
    task_id = await create(first._server, "job")
    await runtime_of(first).aclose()
    second = server()
    async with second.lifespan():
        task = await until(second._server, task_id, "completed")
        assert task["result"]["content"][0]["text"] == "done"


async def test_failed_runs_count_after_a_restart_too(tmp_path: Path) -> None:
    runs: list[str] = []

    def server(name: str, *, delay: float, ahead: float) -> MCPServer:
        store = SQLiteTasks(tmp_path / "tasks.db", clock=lambda: time() + ahead)
        mcp = MCPServer("orders", show_errors=True, tasks=store)

        @mcp.tool(task=TaskOptions(retry=Retry(3, delay=delay, max_delay=delay)))
        async def job() -> None:
            runs.append(name)
            raise OSError(f"no disk in run {len(runs)}")

        return mcp

    first = server("first", delay=600, ahead=0)
    async with first.lifespan():
        task_id = await create(first._server, "job")
        async with asyncio.timeout(PATIENCE):
            while "statusMessage" not in await get(first._server, task_id):  # noqa: ASYNC110 - clients poll
                await asyncio.sleep(0.005)
    second = server("second", delay=0, ahead=700)
    async with second.lifespan():
        assert (await get(second._server, task_id))["statusMessage"] == "Attempt 1 of 3 failed: no disk in run 1"
        task = await until(second._server, task_id, "completed")
    assert task["result"]["content"] == [{"type": "text", "text": "no disk in run 3"}]
    assert runs == ["first", "second", "second"]


@pytest.mark.parametrize("value", ["-1", "many", "1.5", "²"])
def test_a_number_of_tasks_in_the_environment_that_is_not_valid_is_an_error(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNCMCP_TASK_CONCURRENCY", value)
    with pytest.raises(ValueError, match=r"FUNCMCP_TASK_CONCURRENCY must be a number of tasks, or 0 for none; got"):
        MCPServer("orders")


@pytest.mark.parametrize(("value", "concurrency"), [("", 10), ("0", 0), ("25", 25)])
def test_the_environment_sets_how_many_tasks_run_at_once(
    value: str, concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNCMCP_TASK_CONCURRENCY", value)
    tasks = MCPServer("orders")._server.open_tasks()
    assert tasks is not None
    assert tasks.concurrency == concurrency
    assert MCPServer("orders", tasks=None)._server.open_tasks() is None


@pytest.mark.parametrize("value", ["slow,,fast", "slow fast", ",", "-"])
def test_a_queue_in_the_environment_that_is_not_valid_is_an_error(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCMCP_TASK_QUEUES", value)
    with pytest.raises(ValueError, match="FUNCMCP_TASK_QUEUES: The name of a queue must have 1 to 40"):
        MCPServer("orders")


@pytest.mark.parametrize(
    ("value", "queues"), [("", None), ("slow", {"slow"}), ("slow, default,slow", {"slow", "default"})]
)
def test_the_environment_sets_the_queues_of_a_process(
    value: str, queues: set[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNCMCP_TASK_QUEUES", value)
    tasks = MCPServer("orders")._server.open_tasks()
    assert tasks is not None
    assert tasks.queues == queues
    assert MCPServer("orders", tasks=None)._server.open_tasks() is None


async def test_queues_without_tools_and_tools_without_a_served_queue_are_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FUNCMCP_TASK_QUEUES", "slwo,default")
    mcp = MCPServer("orders")
    async with mcp.lifespan():
        assert caplog.messages == []
    mcp.tool("job", task="optional")(lambda: "done")
    mcp.tool("report", task=TaskOptions(queue="slow"))(lambda: "done")
    async with mcp.lifespan():
        unknown, idle = caplog.messages
    assert unknown.endswith("the queue slwo, and none of its tools has this queue. Their queues: default, slow.")
    assert idle.endswith("this process does not run those of some queues: they never end (slow).")
    caplog.clear()
    monkeypatch.setenv("FUNCMCP_TASK_QUEUES", "slow,default")
    served = MCPServer("orders")
    served.tool("job", task="optional")(lambda: "done")
    served.tool("report", task=TaskOptions(queue="slow"))(lambda: "done")
    async with served.lifespan():
        assert caplog.messages == []


async def test_a_process_that_never_runs_the_tasks_in_its_memory_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FUNCMCP_TASK_CONCURRENCY", "0")
    mcp = MCPServer("orders")
    async with mcp.lifespan():
        assert caplog.messages == []
    mcp.tool("job", task="optional")(lambda: "done")
    async with mcp.lifespan():
        assert "orders stores tasks in this process's memory, and this process runs none" in caplog.text


async def test_a_server_without_tasks_stops_before_its_drain_seconds_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(10 * PATIENCE))
    mcp = MCPServer("orders", tasks=MemoryTasks())
    async with asyncio.timeout(PATIENCE), mcp.lifespan():
        pass
    async with asyncio.timeout(PATIENCE), MCPServer("orders", tasks=None).lifespan():
        pass
