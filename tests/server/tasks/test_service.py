"""The tasks of a server with several instances. What clients see is in tests/server/handlers/test_tasks.py."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.codec import decode
from funcmcp._protocol.errors import MCPError
from funcmcp._server.catalog.task_options import TaskOptions
from funcmcp._server.tasks import service
from funcmcp._server.tasks.backlog import BacklogWatch
from funcmcp._server.tasks.service import Tasks, change_of, requested_ttl, rules_of
from funcmcp._state.bus import LocalBus
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.memory import MemoryTasks
from funcmcp._state.tasks.record import NewTask, TaskKey, failure
from funcmcp._state.tasks.sqlite import SQLiteTasks
from funcmcp.testing._task_stores import readable_tasks
from tests.clock import Clock
from tests.patience import PATIENCE
from tests.server.parts import context, reply_to, server, text_result, tool
from tests.server.task_parts import ask, asking, create, get, serving, until, waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.tasks.worker import RunEnd
    from funcmcp._state.tasks.record import Claim, TaskRecord

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


class SharedMemoryTasks(MemoryTasks):
    """A store that the instances of a test share."""

    shared = True


async def test_a_cancellation_at_one_instance_stops_the_run_at_another() -> None:
    store, bus = SharedMemoryTasks(), LocalBus()
    wait, stopped = waiting()
    job = tool("job", wait, task=TaskOptions())
    serving, running = (server(job, bus=line, tasks=store) for line in (bus, bus.beside()))
    assert running.tasks is not None
    running.tasks.start_shared()
    assert serving.tasks is not None
    serving.tasks._worker = None
    task_id = await create(serving, "job")
    await asyncio.sleep(0.02)
    await ask(serving, "tasks/cancel", {"taskId": task_id})
    async with asyncio.timeout(PATIENCE):
        await stopped.wait()
    assert (await get(running, task_id))["status"] == "cancelled"
    await running.tasks.stop(0)
    await serving.tasks.stop(0)


async def test_queues_are_followed_as_tools_are_added_and_removed() -> None:
    slow = tool("slow", task=TaskOptions(queue="slow"))
    async with serving(slow, tool("job", task=TaskOptions()), tool("plain")) as served:
        assert served.tasks is not None
        queues: list[str] = []
        served.tasks.follow_queues(queues.append)
        assert queues == ["default", "slow"]
        served.catalog.add(tool("night", task=TaskOptions(queue="night")))
        served.catalog.add(tool("other"))
        served.catalog.tools.remove("slow")
        assert queues == ["default", "slow", "night"]


async def test_a_store_that_others_share_is_worked_on_from_the_start_if_a_tool_has_tasks() -> None:
    store = SharedMemoryTasks()
    job = tool("job", task=TaskOptions())
    serving, plain, running = server(job, tasks=store), server(tool("t"), tasks=store), server(job, tasks=store)
    parts = [made.tasks for made in (serving, plain, running)]
    assert None not in parts
    serving_tasks, plain_tasks, running_tasks = (part for part in parts if part is not None)
    serving_tasks._worker = None
    task_id = await create(serving, "job")
    plain_tasks.start_shared()
    await asyncio.sleep(0.02)
    assert (await get(serving, task_id))["status"] == "working"
    running_tasks.start_shared()
    await until(serving, task_id, "completed")
    for part in (serving_tasks, plain_tasks, running_tasks):
        await part.stop(0)


async def test_memory_is_worked_on_from_the_first_task() -> None:
    served = server(tool("job", task=TaskOptions()), tasks=MemoryTasks())
    assert served.tasks is not None
    served.tasks.start_shared()
    assert served.tasks._worker is not None
    assert served.tasks._worker._claiming is None
    await until(served, await create(served, "job"), "completed")
    await served.tasks.stop(20)


class Counter:
    """Counts tasks and runs by what happened."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def created(self, record: TaskRecord) -> None:
        self.events.append(f"created {record.tool}")

    async def measure(self, claim: Claim, run: Callable[[], Coroutine[Any, Any, RunEnd]]) -> RunEnd:
        self.events.append(f"started {claim.record.tool}")
        return await run()

    def ended(self, record: TaskRecord) -> None:
        self.events.append(f"{record.status} {record.tool}")


async def test_a_meter_counts_tasks_and_their_runs() -> None:
    async with serving(tool("job", task=TaskOptions())) as served:
        assert served.tasks is not None
        counter, watch = Counter(), BacklogWatch(served.tasks.store)
        served.tasks.measure_with(counter, watch)
        await until(served, await create(served, "job"), "completed")
        assert counter.events == ["created job", "started job", "completed job"]
        assert watch.latest is not None
    assert watch.latest is None


def test_tasks_that_nothing_runs_can_be_measured() -> None:
    served = server(tool("job", task=TaskOptions()))
    tasks = Tasks(MemoryTasks(), catalog=served.catalog, guard=None, hub=served.hub, bus=LocalBus())
    tasks.measure_with(Counter(), BacklogWatch(tasks.store))


async def test_a_task_whose_tool_this_instance_lacks_is_found_by_its_owner() -> None:
    store = SharedMemoryTasks()
    old, new = (
        server(tool("other", task=TaskOptions()), tasks=store),
        server(tool("job", task=TaskOptions()), tasks=store),
    )
    task_id = await create(new, "job")
    assert (await get(old, task_id))["taskId"] == task_id
    assert new.tasks is not None
    await new.tasks.stop(0)


async def test_a_change_is_published_only_if_a_client_waits_for_it() -> None:
    async def quick(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        return text_result("done")

    served = server(tool("job", quick, task=TaskOptions()), tasks=MemoryTasks())
    assert served.tasks is not None
    with served.hub.listening(lambda _change: True) as changes:
        first = await create(served, "job")
        await until(served, first, "completed")
        second = await create(served, "job")
        await served.tasks.store.watch(TaskKey(None, second))
        await until(served, second, "completed")
        assert changes.take() == [change_of(TaskKey(None, second))]
    await served.tasks.stop(20)


def test_an_older_revision_has_no_tasks() -> None:
    with pytest.raises(MCPError, match="This protocol revision has no tasks"):
        rules_of(context("tasks/get", revision="2025-06-18"))


@pytest.mark.parametrize(
    ("options", "milliseconds", "seconds"),
    [
        (TaskOptions(), 1, 60.0),
        (TaskOptions(), 90_000, 90.0),
        (TaskOptions(), 10**9, 3600.0),
        (TaskOptions(ttl=5), 10_000, 5.0),
        (TaskOptions(delay=120), 60_000, 180.0),
        (TaskOptions(delay=120, ttl=130), 60_000, 130.0),
    ],
    ids=["too short", "as requested", "too long", "a short tool", "a delay", "a delay and a short tool"],
)
def test_the_requested_time_of_a_task_is_within_the_limits_of_its_tool(
    options: TaskOptions, milliseconds: int, seconds: float
) -> None:
    rules = rules_of(context("tasks/get", revision="2025-11-25"))
    assert requested_ttl({"task": {"ttl": milliseconds}}, options, rules) == seconds


def test_tasks_without_a_worker_can_be_found_and_not_run() -> None:
    served = server(tasks=MemoryTasks())
    tasks = Tasks(MemoryTasks(), catalog=served.catalog, guard=None, hub=served.hub, bus=served.bus)
    tasks.start()
    tasks._stop_run(TaskKey(None, "x"))
    assert asking("tasks/get", {}).principal is None


async def test_a_platform_brings_a_task_to_the_server_that_runs_it() -> None:
    store = MemoryTasks()
    store.pulls = False
    served = server(tool("job", task=TaskOptions()), tasks=store)
    assert served.tasks is not None
    task_id = await create(served, "job")
    (claim,) = await store.claim(1)
    assert await served.tasks.run(claim) is True
    assert (await get(served, task_id))["status"] == "completed"
    served.tasks._worker = None
    assert await served.tasks.run(claim) is False
    await served.tasks.stop(20)


async def test_a_task_has_the_queue_of_its_tool_and_keeps_it_when_it_is_retried() -> None:
    async def fail(*_: object) -> Any:
        raise OSError

    store = MemoryTasks()
    render = tool("render", fail, task=TaskOptions(queue="slow", concurrency=2))
    async with serving(render, tool("job", task=TaskOptions()), tasks=store) as served:
        assert served.tasks is not None
        assert served.tasks.queues_of_tools == {"render": "slow", "job": "default"}
        await until(served, await create(served, "render"), "completed")
        (failed,) = await readable_tasks(store)
        assert (failed.failed, failed.queue, failed.limited) == (True, "slow", True)
        assert await served.tasks.retried(failed) is None
        again = await served.tasks.retry(failed)
        assert again is not None
        assert (again.queue, again.limited) == ("slow", True)
        assert (await served.tasks.retry(failed)) is not None
        assert await served.tasks.retried(failed) is not None
        assert len(await readable_tasks(store)) == 2
        assert (served.tasks.has_tool("render"), served.tasks.has_tool("other")) == (True, False)


async def test_the_limits_of_tools_follow_the_catalog() -> None:
    served = server(tool("render", task=TaskOptions(concurrency=2)), tool("job"), tasks=MemoryTasks())
    assert served.tasks is not None
    limits = served.tasks._concurrency_of_tools
    assert limits() == {"render": 2}
    assert limits() is limits()
    served.catalog.add(tool("scan", task=TaskOptions(concurrency=1)))
    assert limits() == {"render": 2, "scan": 1}


async def test_two_thousand_tasks_leave_nothing_behind() -> None:
    clock = Clock()
    store = MemoryTasks(clock=lambda: clock.now)

    async def work(_context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments["wait"]:
            await asyncio.Event().wait()
        return text_result("done")

    async with serving(tool("job", work, task=TaskOptions()), tasks=store) as served:

        async def play(count: int) -> None:
            for number in range(count):
                arguments = {"wait": number % 10 == 0}
                reply = await reply_to(served, asking("tools/call", {"name": "job", "arguments": arguments}))
                params = {"taskId": decode(reply.body)["result"]["taskId"]}
                if arguments["wait"]:
                    await reply_to(served, asking("tasks/cancel", params))
                while True:
                    if b'"working"' not in (await reply_to(served, asking("tasks/get", params))).body:
                        break
                    await asyncio.sleep(0)

        async def footprint() -> tuple[int, int]:
            await asyncio.sleep(0.02)  # cancelled runs end
            clock.now += 10_000
            assert len(store) == 0
            gc.collect()
            return len(asyncio.all_tasks()), len(gc.get_objects())

        await play(20)
        tasks, objects = await footprint()
        await asyncio.gather(*(play(250) for _ in range(8)))
        tasks_after, objects_after = await footprint()
    assert tasks_after == tasks
    assert objects_after - objects < 200
    assert (store._due, store._removals, store._by_payer) == ({}, [], {})


@pytest.mark.parametrize("concurrency", [0, 10])
async def test_a_store_that_can_not_be_opened_is_in_the_log_when_the_server_starts(
    concurrency: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "missing" / "tasks.db"
    store = SQLiteTasks(path, concurrency=concurrency)
    served = server(tool("job", task=TaskOptions()), tasks=store)
    assert served.tasks is not None
    served.tasks.start_shared()
    expected = (
        f"The task store {path} can't be used (No such file or directory). Requests that need it are answered with 503."
    )
    for _ in range(1000):
        if expected in caplog.messages:
            break
        await asyncio.sleep(0.002)
    with pytest.raises(StoreUnavailableError) as refused:
        await create(served, "job")
    assert str(refused.value) == "The task store of the server can't be used. The server's log has the reason."
    path.parent.mkdir()
    await create(served, "job")
    await served.tasks.stop(0)
    messages = [record.message for record in caplog.records if record.name == "funcmcp"]
    assert messages == [expected, f"The task store {path} can be used again."]


async def test_tasks_without_a_worker_can_be_configured_and_do_not_run() -> None:
    served = server(tool("job", task=TaskOptions()), tasks=MemoryTasks())
    tasks = Tasks(MemoryTasks(), catalog=served.catalog, guard=None, hub=served.hub, bus=LocalBus())
    tasks.set_concurrency(3)
    tasks.set_queues({"slow"})
    tasks.trace_with(NoTrace())
    assert (tasks.concurrency, tasks.queues) == (0, None)
    record = await tasks.create(asking("tools/call", {"name": "job"}), TaskOptions())
    assert (record.status, record.claimed) == ("working", False)
    await tasks.stop(0)


class NoTrace:
    """A tracer without a span."""

    def traceparent(self) -> str | None:
        return None

    async def trace(self, _context: Any, _claim: Any, run: Any) -> Any:
        return await run()


async def test_a_server_that_must_stop_at_once_ends_the_time_of_its_tasks() -> None:
    served = server(tool("job", task=TaskOptions()), tasks=MemoryTasks())
    assert served.tasks is not None
    task_id = await create(served, "job")
    served.tasks.drain()
    served.hurry()
    assert served.drain.remaining() == 0
    assert (await get(served, task_id))["status"] == "working"
    await served.tasks.stop(0)


def test_tasks_that_nothing_runs_have_nothing_to_end() -> None:
    served = server(tasks=MemoryTasks())
    tasks = served.tasks
    assert tasks is not None
    tasks._worker = None
    tasks.drain()
    tasks.hurry()
    plain = server()
    plain.hurry()
    assert plain.drain.remaining() == 0


class UnconfirmedTasks(MemoryTasks):
    """Tasks whose creation fails, with or without a task, and whose reading fails for some time."""

    def __init__(self, *, creates: bool, away: int, failure: StoreUnavailableError | None = None) -> None:
        super().__init__()
        self.creates = creates
        self.away = away
        self.failure = failure or StoreUnavailableError(store="task store")
        self.tasks: list[NewTask] = []

    async def create(self, task: NewTask) -> TaskRecord:
        self.tasks.append(task)
        if self.creates:
            await super().create(task)
        raise self.failure

    async def read(self, key: TaskKey) -> TaskRecord | None:
        if self.away:
            self.away -= 1
            raise StoreUnavailableError
        return await super().read(key)


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_CONFIRMATION_PAUSE", 0)


@pytest.mark.usefixtures("no_pause")
async def test_a_task_whose_creation_was_not_confirmed_is_the_answer_if_it_exists() -> None:
    store = UnconfirmedTasks(creates=True, away=2)
    async with serving(tool("job", task=TaskOptions()), tasks=store) as served:
        task_id = await create(served, "job")
    assert [task.key.task_id for task in store.tasks] == [task_id]


@pytest.mark.usefixtures("no_pause")
async def test_a_task_that_was_not_created_can_be_created_later() -> None:
    store = UnconfirmedTasks(creates=False, away=0)
    async with serving(tool("job", task=TaskOptions()), tasks=store) as served:
        with pytest.raises(StoreUnavailableError) as refused:
            await create(served, "job")
    assert refused.value is store.failure


@pytest.mark.usefixtures("no_pause")
async def test_what_stays_unknown_is_an_error_that_says_so_without_a_time_to_try_again() -> None:
    store = UnconfirmedTasks(creates=True, away=100)
    async with serving(tool("job", task=TaskOptions()), tasks=store) as served:
        with pytest.raises(StoreUnavailableError) as refused:
            await create(served, "job")
    assert refused.value.retry_after is None
    assert str(refused.value) == "The task store of the server has not confirmed the task. It may have started."


async def test_a_store_that_has_certainly_written_nothing_is_not_asked_again() -> None:
    failure = StoreUnavailableError(store="task store", nothing_written=True)
    store = UnconfirmedTasks(creates=False, away=100, failure=failure)
    async with serving(tool("job", task=TaskOptions()), tasks=store) as served:
        with pytest.raises(StoreUnavailableError) as refused:
            await create(served, "job")
    assert refused.value is failure
    assert store.away == 100


async def test_a_process_that_does_not_serve_cancels_a_task_and_tells_the_other_instances() -> None:
    store, bus = SharedMemoryTasks(), LocalBus()
    wait, stopped = waiting()
    job = tool("job", wait, task=TaskOptions())
    served, other = (server(job, bus=line, tasks=store) for line in (bus, bus.beside()))
    assert served.tasks is not None
    assert other.tasks is not None
    served.tasks.start_shared()
    key = TaskKey(None, await create(served, "job"))
    async with asyncio.timeout(PATIENCE):
        while not served.tasks._worker._runs:  # type: ignore[union-attr] # noqa: ASYNC110 - the worker has no event
            await asyncio.sleep(0.002)
    record = await store.read(key)
    assert record is not None
    with served.hub.listening(lambda _change: True) as changes:
        cancelled = await other.tasks.cancel_elsewhere(record)
        assert cancelled is not None
        assert cancelled.status == "cancelled"
        async with asyncio.timeout(PATIENCE):
            await stopped.wait()
        assert changes.take() == [change_of(key)]
    assert await other.tasks.cancel_elsewhere(record) is None
    await served.tasks.stop(20)


async def test_a_cancellation_holds_if_the_other_instances_are_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_topic: str, _message: Any) -> None:
        raise StoreUnavailableError

    served = server(tool("job", task=TaskOptions()), tasks=MemoryTasks())
    assert served.tasks is not None
    key = TaskKey(None, await create(served, "job"))
    monkeypatch.setattr(served.bus, "send", away)
    record = await served.tasks.store.read(key)
    assert record is not None
    cancelled = await served.tasks.cancel_elsewhere(record)
    assert cancelled is not None
    assert cancelled.status == "cancelled"
    await served.tasks.stop(0)


async def test_a_task_that_has_failed_is_created_again_with_the_options_of_its_first_creation() -> None:
    served = server(tool("job", task=TaskOptions()), tasks=MemoryTasks(concurrency=0))
    assert served.tasks is not None
    tasks, store = served.tasks, served.tasks.store
    key = TaskKey(None, "a" * 44)
    await store.create(
        NewTask(key, "job", b"{}", ttl=60.0, keep=5.0, poll=2.0, attempts=3, address="c" * 32, arguments="{}")
    )
    (claim,) = await store.claim(1)
    assert await tasks.retry(claim.record) is None, "it has not failed"
    failed = await store.finish(claim, failure("No disk"))
    assert failed is not None
    again = await tasks.retry(failed)
    assert again is not None
    assert again.key != key
    for name in ("tool", "keep", "poll", "attempts", "address", "arguments"):
        assert getattr(again, name) == getattr(failed, name)
    assert again.expires - again.created == pytest.approx(60.0)
    assert await store.read_call(again.key) == b"{}"


@pytest.mark.parametrize(("length", "arguments"), [(2, '{"text":"xx"}'), (300, f'{{"text":"{"x" * 191}...')])
async def test_a_task_has_the_beginning_of_its_arguments(length: int, arguments: str) -> None:
    served = server(tool("job", task=TaskOptions()), tasks=MemoryTasks(concurrency=0))
    task_id = await create(served, "job", {"text": "x" * length})
    assert served.tasks is not None
    record = await served.tasks.store.read(TaskKey(None, task_id))
    assert record is not None
    assert record.arguments == arguments
