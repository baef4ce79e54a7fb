"""Runs of tasks in a process: claims, renewals, cancellations, faults and the end of the server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._server.calls.task_call import CANCELLED_BY_CLIENT
from funcmcp._server.tasks import worker as module
from funcmcp._server.tasks.concurrency import Places
from funcmcp._server.tasks.worker import NoOutcome, TaskWorker, _Run
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks import any_store
from funcmcp._state.tasks.memory import MemoryTasks
from funcmcp._state.tasks.record import NewTask, Outcome, Question, TaskKey
from funcmcp._state.tasks.store import TaskLimits
from funcmcp._state.tasks.task_filter import ANY_TASK
from tests.clock import Clock
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._server.tasks.worker import RunEnd
    from funcmcp._state.tasks.record import Claim, TaskRecord
    from funcmcp._state.tasks.task_filter import TaskFilter

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

RESULT = Outcome(b'{"content":[]}')


class FaultyTasks(MemoryTasks):
    """A store that fails as often as a test says, and that other processes might share."""

    shared = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.faults: dict[str, list[Exception]] = {}
        self.calls: list[str] = []
        self.delays: list[float] = []

    def check(self, name: str) -> None:
        self.calls.append(name)
        if self.faults.get(name):
            raise self.faults[name].pop(0)

    async def claim(self, count: int, only: TaskFilter = ANY_TASK) -> Sequence[Claim]:
        self.check("claim")
        return await super().claim(count, only)

    async def finish(self, claim: Claim, outcome: Outcome) -> TaskRecord | None:
        self.check("finish")
        return await super().finish(claim, outcome)

    async def renew(self, claim: Claim) -> bool:
        self.check("renew")
        return await super().renew(claim)

    async def report(self, claim: Claim, message: str) -> TaskRecord | None:
        self.check("report")
        return await super().report(claim, message)

    async def release(self, claim: Claim, delay: float = 0.0, *, unknown: bool = False) -> TaskRecord | None:
        self.check("release")
        self.delays.append(delay)
        return await super().release(claim, delay, unknown=unknown)


class Bench:
    """A store with a worker."""

    def __init__(self, store: MemoryTasks | None = None) -> None:
        self.store = MemoryTasks() if store is None else store
        self.changes: list[TaskRecord] = []
        self.running: list[str] = []
        self.go = asyncio.Event()
        self.limits: dict[str, int] = {}
        self.worker = TaskWorker(self.store, self.run, self.changes.append, lambda: self.limits)

    async def run(self, claim: Claim, report: Callable[[str], None]) -> RunEnd:
        self.running.append(claim.key.task_id)
        await self.go.wait()
        return RESULT

    async def create(
        self, task_id: str = "a", *, tool: str = "add", owner: str | None = None, **options: Any
    ) -> TaskKey:
        key = TaskKey(owner, task_id)
        await self.store.create(NewTask(key, tool, b"{}", **options))
        return key

    async def until_running(self, *names: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while not set(names) <= set(self.running):  # noqa: ASYNC110 - the worker has no event
                await asyncio.sleep(0.002)

    async def until(self, key: TaskKey, *statuses: str) -> TaskRecord:
        async with asyncio.timeout(PATIENCE):
            while True:
                record = await self.store.read(key)
                assert record is not None
                if record.status in statuses:
                    return record
                await asyncio.sleep(0.002)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("_LONGEST_RENEWAL", "_REPORT_INTERVAL", "_AWAY_PAUSE", "_FAULT_PAUSE", "_UNKNOWN_DELAY")
    for name in (*names, "_LOOK_PAUSE", "_NEXT_LOOK_PAUSE", "_RETURN_DELAY", "_RETURN_STEP"):
        monkeypatch.setattr(module, name, 0.02)


async def test_the_event_loop_of_another_thread_leaves_the_tasks_to_the_first_one() -> None:
    bench = Bench()
    bench.worker.start()

    async def start_and_stop() -> None:
        bench.worker.start()
        await bench.worker.stop(0)

    await asyncio.to_thread(asyncio.run, start_and_stop())
    key = await bench.create()
    await bench.until_running("a")
    bench.go.set()
    await bench.until(key, "completed")
    await bench.worker.stop(20)


@pytest.mark.parametrize("owner", ["a" * 32, None])
async def test_no_caller_gets_all_places(owner: str | None) -> None:
    address = None if owner else "c" * 32
    bench = Bench(MemoryTasks(concurrency=4))
    bench.worker.start()
    keys = [await bench.create(f"long{number}", owner=owner, address=address) for number in range(8)]
    await bench.until_running("long0", "long1", "long2")
    keys.append(await bench.create("other", owner="b" * 32))
    await bench.until_running("other")
    assert sorted(bench.running) == ["long0", "long1", "long2", "other"]
    bench.go.set()
    for key in keys:
        record = await bench.until(key, "completed")
        assert (record.starts, record.returned) == (1, 0)
    await bench.worker.stop(20)


async def test_a_task_behind_many_of_another_caller_runs_at_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETURN_DELAY", 1000.0)  # what the first look returns does not come back
    bench = Bench(MemoryTasks(concurrency=4))
    for number in range(30):
        await bench.create(f"long{number}", owner="a" * 32)
    await bench.create("other", owner="b" * 32)
    bench.worker.start()
    await bench.until_running("other")
    assert bench.running == ["long0", "long1", "long2", "other"]
    bench.go.set()
    await bench.worker.stop(20)


async def test_tasks_without_a_place_come_back_later_the_more_there_are() -> None:
    store = FaultyTasks(concurrency=2, limits=TaskLimits(live_per_principal=4))
    bench = Bench(store)
    for number in range(40):
        await bench.create(f"long{number}", address="c" * 32)
    bench.worker.start()
    async with asyncio.timeout(PATIENCE):
        while len(store.delays) < 60:  # noqa: ASYNC110 - the store has no event
            await asyncio.sleep(0.002)
    looks = store.delays[:35:5]
    assert looks == pytest.approx([0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16]), "each look sees five of forty"
    await bench.create("other", owner="b" * 32)
    await bench.until_running("other")
    bench.go.set()
    await bench.worker.stop(20)


async def test_a_task_without_a_place_is_returned_as_soon_as_the_store_can_be_reached() -> None:
    store = FaultyTasks()
    bench = Bench(store)
    bench.worker.concurrency = 2
    bench.worker.start()
    await bench.create("long", owner="a" * 32)
    await bench.until_running("long")
    store.faults["release"] = [StoreUnavailableError(store="task store") for _ in range(3)]
    keys = [await bench.create(name, owner="a" * 32) for name in ("second", "third")]
    keys.append(await bench.create("other", owner="b" * 32))
    await bench.until_running("other")
    bench.go.set()
    for key in keys:
        assert (await bench.until(key, "completed")).outcome == RESULT
    assert store.faults["release"] == []
    await bench.worker.stop(20)


class UnfilteredTasks(FaultyTasks):
    """A store that brings tasks of all queues and tools."""

    async def claim(self, count: int, only: TaskFilter = ANY_TASK) -> Sequence[Claim]:
        return await super().claim(count)


@pytest.mark.parametrize("kind", [MemoryTasks, UnfilteredTasks])
async def test_a_tool_with_a_limit_leaves_the_other_places_to_others(kind: type[MemoryTasks]) -> None:
    bench = Bench(kind(concurrency=4))
    bench.limits = {"render": 1}
    bench.worker.start()
    keys = [await bench.create(f"render{number}", tool="render") for number in range(5)]
    await bench.until_running("render0")
    keys += [await bench.create(f"add{number}") for number in range(3)]
    await bench.until_running("add0", "add1", "add2")
    assert sorted(bench.running) == ["add0", "add1", "add2", "render0"]
    bench.go.set()
    for key in keys:
        record = await bench.until(key, "completed")
        assert (record.starts, record.returned) == (1, 0)
    await bench.worker.stop(20)


async def test_the_next_task_of_a_tool_begins_when_one_of_its_limit_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(any_store, "CLAIM_WAIT", 10 * PATIENCE)  # a claim that waits does not end by itself
    bench = Bench()
    bench.limits = {"render": 2}
    bench.worker.start()
    bench.go.set()
    for number in range(50):
        await bench.create(f"render{number}", tool="render")
    await bench.until(TaskKey(None, "render49"), "completed")
    await bench.worker.stop(20)


@pytest.mark.parametrize("kind", [MemoryTasks, UnfilteredTasks])
async def test_a_worker_runs_the_tasks_of_its_queues_and_returns_others(kind: type[MemoryTasks]) -> None:
    bench = Bench(kind())
    bench.worker.queues = frozenset({"fast"})
    bench.worker.start()
    slow = await bench.create("slow", queue="slow")
    await bench.create("fast", queue="fast")
    await bench.until_running("fast")
    await asyncio.sleep(0.05)
    assert bench.running == ["fast"]
    bench.go.set()
    await bench.worker.stop(20)
    record = await bench.until(slow, "working")
    assert (record.claimed, record.starts, record.returned) == (False, 0, 0)
    bench.worker.queues = frozenset({"slow"})
    bench.worker.start()
    await bench.until(slow, "completed")
    await bench.worker.stop(20)


async def test_a_task_that_a_platform_brings_waits_for_a_place_of_its_tool() -> None:
    bench = Bench()
    bench.limits = {"render": 1}
    keys = [await bench.create(name, tool="render") for name in ("first", "second")]
    claims = await bench.store.claim(2)
    runs = [asyncio.ensure_future(bench.worker.run(claim)) for claim in claims]
    assert await runs[1] is True
    assert bench.running == ["first"]
    bench.go.set()
    assert await runs[0] is True
    await bench.until(keys[0], "completed")
    (again,) = await bench.store.claim(1)
    assert (again.key, again.record.starts) == (keys[1], 1)
    assert await bench.worker.run(again) is True
    await bench.until(keys[1], "completed")
    await bench.worker.stop(20)


class SlowTasks(MemoryTasks):
    """A store that stores no end of a run until a test says so."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.ends = 0
        self.go_on = asyncio.Event()

    async def finish(self, claim: Claim, outcome: Outcome) -> TaskRecord | None:
        self.ends += 1
        await self.go_on.wait()
        return await super().finish(claim, outcome)


async def test_tasks_run_while_the_ends_of_as_many_as_there_are_places_are_stored() -> None:
    store = SlowTasks(concurrency=2)
    bench = Bench(store)
    bench.go.set()
    bench.worker.start()
    keys = [await bench.create(name) for name in "abcdef"]
    async with asyncio.timeout(PATIENCE):
        while store.ends < 2:  # noqa: ASYNC110 - the worker has no event
            await asyncio.sleep(0.002)
    await asyncio.sleep(0.05)
    assert sorted(bench.running) in (["a", "b"], ["a", "b", "c"])
    store.go_on.set()
    for key in keys:
        await bench.until(key, "completed")
    assert sorted(bench.running) == [*"abcdef"]
    await bench.worker.stop(20)


async def test_a_place_is_free_while_the_end_of_a_run_is_stored() -> None:
    store = SlowTasks(concurrency=1)
    bench = Bench(store)
    bench.worker.concurrency = 2
    bench.go.set()
    bench.worker.start()
    await bench.create("a")
    async with asyncio.timeout(PATIENCE):
        while store.ends < 1:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.002)
    assert bench.worker._places.free == 2
    await bench.create("b")
    await bench.until_running("b")
    store.go_on.set()
    await bench.worker.stop(20)


async def test_an_unknown_caller_gets_all_places() -> None:
    bench = Bench(MemoryTasks(concurrency=4))
    bench.worker.start()
    for name in "abcd":
        await bench.create(name)
    await bench.until_running("a", "b", "c", "d")
    bench.go.set()
    await bench.worker.stop(20)


async def test_as_many_tasks_run_at_once_as_the_store_says() -> None:
    bench = Bench(MemoryTasks(concurrency=2))
    bench.worker.start()
    bench.worker.start()  # the second start changes nothing
    keys = [await bench.create(name) for name in "abc"]
    await asyncio.sleep(0.05)
    assert bench.running == ["a", "b"]
    bench.go.set()
    for key in keys:
        assert (await bench.until(key, "completed")).outcome == RESULT
    await bench.worker.stop(20)
    assert [record.status for record in bench.changes] == ["completed"] * 3


@pytest.mark.parametrize(("concurrency", "pulls"), [(0, True), (10, False)])
async def test_a_process_that_only_serves_runs_nothing(concurrency: int, pulls: bool) -> None:
    store = MemoryTasks(concurrency=concurrency)
    store.pulls = pulls
    bench = Bench(store)
    bench.worker.start()
    key = await bench.create()
    await asyncio.sleep(0.02)
    assert (await bench.until(key, "working")).claimed is False
    await bench.worker.stop(20)


async def test_a_worker_starts_again_on_another_event_loop() -> None:
    bench = Bench()
    bench.go.set()
    await asyncio.to_thread(lambda: asyncio.run(_start_and_leave(bench)))
    bench.worker.start()
    await bench.until(await bench.create(), "completed")
    await bench.worker.stop(20)
    await bench.worker.stop(20)


async def _start_and_leave(bench: Bench) -> None:
    bench.worker.start()
    await asyncio.sleep(0)


async def test_a_worker_that_was_not_started_here_stops_at_once() -> None:
    await Bench().worker.stop(20)


async def test_a_claim_is_renewed_and_a_run_whose_task_was_cancelled_elsewhere_stops() -> None:
    bench = Bench(FaultyTasks())
    assert isinstance(bench.store, FaultyTasks)
    bench.store.faults["renew"] = [StoreUnavailableError()]
    bench.worker.start()
    key = await bench.create()
    await asyncio.sleep(0.05)
    assert bench.worker._runs.keys() == {key}
    await bench.store.cancel(key)
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([run.task for run in bench.worker._runs.values()])
    bench.go.set()
    assert (await bench.until(key, "cancelled")).outcome != RESULT
    await bench.worker.stop(20)
    assert bench.changes == []


async def test_a_cancellation_stops_the_run_at_once_and_an_unknown_one_does_nothing() -> None:
    bench = Bench()
    stopped = asyncio.Event()
    reasons: list[object] = []

    async def run(claim: Claim, report: Callable[[str], None]) -> RunEnd:
        bench.running.append(claim.key.task_id)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            reasons.extend(error.args)
            raise
        finally:
            stopped.set()
        return RESULT

    bench.worker._run_tool = run
    bench.worker.start()
    key = await bench.create()
    await asyncio.sleep(0.01)
    await bench.store.cancel(key)
    bench.worker.cancel(TaskKey(None, "other"))
    bench.worker.cancel(key)
    bench.worker.cancel(key)
    await asyncio.wait_for(stopped.wait(), PATIENCE)
    assert reasons == [CANCELLED_BY_CLIENT]
    await bench.worker.stop(20)


async def test_a_task_that_is_cancelled_before_its_run_begins_does_not_run() -> None:
    bench = Bench()
    key = await bench.create()
    (claim,) = await bench.store.claim(1)
    bench.worker._loop = asyncio.get_running_loop()
    bench.worker._begin(claim)
    bench.worker.cancel(key)
    await asyncio.sleep(0.01)
    assert (bench.running, bench.worker._runs) == ([], {})


async def test_a_tool_that_ignores_its_cancellation_changes_nothing_afterwards() -> None:
    bench = Bench()

    async def run(_claim: Claim, _report: Callable[[str], None]) -> RunEnd:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await bench.go.wait()
        return RESULT

    bench.worker._run_tool = run
    bench.worker.start()
    key = await bench.create()
    await asyncio.sleep(0.01)
    await bench.store.cancel(key)
    bench.worker.cancel(key)
    bench.go.set()
    await asyncio.sleep(0.05)
    assert (await bench.until(key, "cancelled")).outcome != RESULT
    await bench.worker.stop(20)


async def test_faults_of_the_store_do_not_end_the_claiming(caplog: pytest.LogCaptureFixture) -> None:
    store = FaultyTasks()
    store.faults["claim"] = [
        StoreUnavailableError(),
        RuntimeError("a record that can't be read"),
        StoreUnavailableError(),
    ]
    bench = Bench(store)
    bench.go.set()
    bench.worker.start()
    await bench.until(await bench.create(), "completed")
    await bench.worker.stop(20)
    assert "RuntimeError" in caplog.text


async def test_an_outcome_is_stored_when_the_store_is_back() -> None:
    store = FaultyTasks()
    store.faults["finish"] = [StoreUnavailableError(), StoreUnavailableError()]
    bench = Bench(store)
    bench.go.set()
    bench.worker.start()
    assert (await bench.until(await bench.create(), "completed")).outcome == RESULT
    await bench.worker.stop(20)


async def test_an_outcome_is_dropped_when_the_lease_has_lapsed(caplog: pytest.LogCaptureFixture) -> None:
    store = FaultyTasks()
    store.lease = 0.05
    store.faults["finish"] = [StoreUnavailableError() for _ in range(100)]
    bench = Bench(store)
    bench.go.set()
    bench.worker.start()
    key = await bench.create("a task's id")
    await asyncio.sleep(0.2)
    await bench.worker.stop(20)
    assert "The outcome of a task of add could not be stored." in caplog.text
    assert key.task_id not in caplog.text


async def test_a_run_that_fails_for_a_reason_of_the_server_is_logged_and_lapses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()

    async def run(_claim: Claim, _report: Callable[[str], None]) -> RunEnd:
        raise RuntimeError("a fault")

    bench.worker._run_tool = run
    bench.worker.start()
    key = await bench.create()
    await asyncio.sleep(0.02)
    await bench.worker.stop(20)
    assert "task of add" in caplog.text
    assert (await bench.until(key, "working")).claimed


@pytest.mark.parametrize("error", [TimeoutError(), asyncio.CancelledError()])
async def test_a_timeout_or_a_cancellation_of_the_tools_own_is_not_taken_for_the_servers(error: BaseException) -> None:
    bench = Bench()

    async def run(_claim: Claim, _report: Callable[[str], None]) -> RunEnd:
        raise error

    bench.worker._run_tool = run
    bench.worker.start()
    key = await bench.create()
    await asyncio.sleep(0.02)
    await bench.worker.stop(20)
    assert (await bench.until(key, "working")).claimed


async def test_a_task_that_this_process_can_not_run_goes_back_until_one_can() -> None:
    bench = Bench()
    ends: list[RunEnd] = [NoOutcome.UNKNOWN, NoOutcome.UNKNOWN, RESULT]

    async def run(_claim: Claim, _report: Callable[[str], None]) -> RunEnd:
        return ends.pop(0)

    bench.worker._run_tool = run
    bench.worker.start()
    record = await bench.until(await bench.create(), "completed")
    assert (record.attempt, ends) == (3, [])
    await bench.worker.stop(20)


@pytest.mark.parametrize("attempts", [1, 3])
async def test_a_task_that_no_worker_can_run_fails_after_several_deliveries(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, attempts: int
) -> None:
    monkeypatch.setattr(module, "_UNKNOWN_DELAY", 0.001)
    monkeypatch.setattr(module, "_LONGEST_UNKNOWN_DELAY", 0.02)
    monkeypatch.setattr(module, "_MAX_REPORTED_TOOLS", 1)
    monkeypatch.setattr(module, "uniform", lambda low, _high: low)
    bench = Bench()
    delays: list[float] = []
    release = bench.store.release

    async def run(claim: Claim, _report: Any) -> RunEnd:
        bench.running.append(claim.key.task_id)
        return NoOutcome.UNKNOWN

    async def count_release(claim: Claim, delay: float = 0.0, *, unknown: bool = False) -> TaskRecord | None:
        delays.append(delay)
        return await release(claim, delay, unknown=unknown)

    monkeypatch.setattr(bench.store, "release", count_release)
    bench.worker = TaskWorker(bench.store, run, bench.changes.append)
    bench.worker.start()
    key = await bench.create(attempts=attempts)
    record = await bench.until(key, "failed")
    await bench.worker.stop(20)
    assert record.outcome == Outcome(
        b'{"code":-32603,"message":"No worker of the server can run the tool of the task."}',
        is_error=True,
        message="No worker of the server can run the tool of the task.",
    )
    assert len(bench.running) == attempts + 5
    assert delays == [min(0.001 * 2**number, 0.02) for number in range(attempts + 4)]
    waits, failed = caplog.messages
    assert waits.startswith("This process can't run a task of add: it does not have the tool")
    assert failed == "A task failed because no worker has its tool add."


async def test_only_deliveries_in_a_row_to_workers_without_the_tool_fail_a_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_UNKNOWN_DELAY", 0.001)
    bench = Bench()
    asked = {"name": Question("name", "digest", {"method": "roots/list"})}
    unknown: list[RunEnd] = [NoOutcome.UNKNOWN] * 5
    ends = [*unknown, asked, *unknown, RESULT]

    async def run(_claim: Claim, _report: Any) -> RunEnd:
        return ends.pop(0)

    bench.worker = TaskWorker(bench.store, run, bench.changes.append)
    bench.worker.start()
    key = await bench.create()
    await bench.until(key, "input_required")
    await bench.store.answer(key, {"name.1": {"roots": []}})
    await bench.until(key, "completed")
    await bench.worker.stop(20)
    assert not ends


async def test_a_task_that_is_created_while_runs_end_begins_no_more_runs() -> None:
    bench = Bench()
    bench.worker.start()
    running = await bench.create("a")
    while not bench.running:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0)
    stopping = asyncio.ensure_future(bench.worker.stop(5))
    while bench.worker._claiming is not None or bench.store._waiting:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0)
    waiting = await bench.create("b")
    bench.worker.start()
    bench.go.set()
    await stopping
    assert not bench.worker.draining
    assert bench.running == ["a"]
    records = [await bench.store.read(key) for key in (running, waiting)]
    assert [record.status for record in records if record is not None] == ["completed", "working"]
    bench.worker.start()
    await bench.until(waiting, "completed")
    await bench.worker.stop(20)


async def test_a_run_is_stopped_when_the_time_of_its_task_is_up() -> None:
    bench = Bench()
    bench.worker.start()
    key = await bench.create(ttl=0.05, keep=10)
    record = await bench.until(key, "failed")
    for _ in range(1000):
        if bench.changes and not bench.worker._runs:
            break
        await asyncio.sleep(0.002)
    assert bench.worker._runs == {}
    assert [change.status for change in bench.changes] == ["failed"]
    assert record.message == "The task did not finish within 0.05 seconds (its ttl)."
    await bench.worker.stop(20)


async def test_a_run_whose_time_is_up_after_its_task_was_cancelled_is_not_published_again() -> None:
    bench = Bench(MemoryTasks(clock=Clock()))  # which stands still: only the run's own time is up

    async def run(claim: Claim, _report: Callable[[str], None]) -> RunEnd:
        await bench.store.cancel(claim.key)  # by another process, whose message comes late
        await asyncio.sleep(2 * PATIENCE)
        return RESULT

    bench.worker._run_tool = run
    bench.worker.start()
    await bench.until(await bench.create(ttl=0.05), "cancelled")
    async with asyncio.timeout(PATIENCE):
        while bench.worker._runs:  # noqa: ASYNC110 - the worker has no event
            await asyncio.sleep(0.002)
    assert bench.changes == []
    await bench.worker.stop(20)


async def test_a_claim_that_failed_the_task_is_published_and_not_run() -> None:
    store = MemoryTasks()
    store.lease = 0.02
    bench = Bench(store)
    key = await bench.create()
    await store.claim(1)
    await asyncio.sleep(0.03)
    bench.worker.start()
    await bench.until(key, "failed")
    await asyncio.sleep(0.01)
    assert (bench.running, [change.status for change in bench.changes]) == ([], ["failed"])
    await bench.worker.stop(20)


async def test_a_task_that_lapsed_and_came_back_to_this_process_is_cancelled_in_its_second_run() -> None:
    bench = Bench(MemoryTasks())
    bench.store.lease = 0.01
    bench.worker._loop = asyncio.get_running_loop()
    key = await bench.create(attempts=2)
    (first,) = await bench.store.claim(1)
    await asyncio.sleep(0.02)
    (second,) = await bench.store.claim(1)
    bench.worker._begin(first)
    bench.worker._begin(second)
    bench.worker._runs[key].end(NoOutcome.LOST)
    bench.worker._ended(_Run(first, Places(1)))
    assert bench.worker._runs.keys() == {key}
    await bench.store.cancel(key)
    bench.worker.cancel(key)
    await asyncio.sleep(0.1)
    assert bench.worker._runs == {}


# Reports


async def test_messages_are_written_now_and_then_and_the_last_one_with_the_outcome() -> None:
    store = FaultyTasks()
    store.faults["report"] = [StoreUnavailableError()]
    bench = Bench(store)

    async def run(_claim: Claim, report: Callable[[str], None]) -> RunEnd:
        for message in ("first", "second"):  # the first write fails
            before = store.calls.count("report")
            report(message)
            while store.calls.count("report") == before:  # noqa: ASYNC110 - the store has no event
                await asyncio.sleep(0.002)
        for number in range(50):
            report(f"{number} of 50")
        report("last")
        return RESULT

    bench.worker._run_tool = run
    bench.worker.start()
    record = await bench.until(await bench.create(), "completed")
    assert record.message is None  # "last" is about a run that has ended
    assert store.calls.count("report") == 2
    await bench.worker.stop(20)


async def test_a_message_that_comes_while_the_last_one_is_written_is_written_too() -> None:
    writes_first, has_second = asyncio.Event(), asyncio.Event()

    class SlowTasks(MemoryTasks):
        async def report(self, claim: Claim, message: str) -> TaskRecord | None:
            writes_first.set()
            await has_second.wait()
            return await super().report(claim, message)

    bench = Bench(SlowTasks())

    async def run(_claim: Claim, report: Callable[[str], None]) -> RunEnd:
        report("first")
        await writes_first.wait()
        report("second")
        has_second.set()
        await bench.go.wait()
        return RESULT

    bench.worker._run_tool = run
    bench.worker.start()
    key = await bench.create()
    async with asyncio.timeout(PATIENCE):
        while (await bench.until(key, "working")).message != "second":  # noqa: ASYNC110 - the store has no event
            await asyncio.sleep(0.002)
    bench.go.set()
    await bench.worker.stop(20)


async def test_a_report_after_the_run_is_dropped() -> None:
    bench = Bench()
    reports: list[Callable[[str], None]] = []

    async def run(_claim: Claim, report: Callable[[str], None]) -> RunEnd:
        reports.append(report)
        return RESULT

    bench.worker._run_tool = run
    bench.worker.start()
    key = await bench.create()
    await bench.until(key, "completed")
    reports[0]("late")
    await asyncio.sleep(0.05)
    assert (await bench.until(key, "completed")).message is None
    await bench.worker.stop(20)


async def test_a_message_of_a_lost_run_changes_nothing() -> None:
    bench = Bench()

    async def run(claim: Claim, report: Callable[[str], None]) -> RunEnd:
        await bench.store.cancel(claim.key)
        report("late")
        await asyncio.sleep(0.05)
        return RESULT

    bench.worker._run_tool = run
    bench.worker.start()
    key = await bench.create()
    await bench.until(key, "cancelled")
    await asyncio.sleep(0.1)
    assert (await bench.until(key, "cancelled")).message == "The task was cancelled."
    await bench.worker.stop(20)


# The end of the server


async def test_a_server_that_stops_waits_for_its_runs() -> None:
    bench = Bench()
    bench.worker.start()
    key = await bench.create()
    await asyncio.sleep(0.01)
    asyncio.get_running_loop().call_later(0.05, bench.go.set)
    await bench.worker.stop(PATIENCE)
    assert (await bench.until(key, "completed")).outcome == RESULT


@pytest.mark.parametrize(("attempts", "status"), [(1, "failed"), (2, "working")])
async def test_a_run_that_does_not_end_is_released_if_it_may_start_again_and_fails_if_not(
    attempts: int, status: str
) -> None:
    bench = Bench()
    bench.worker.start()
    key = await bench.create(attempts=attempts)
    await asyncio.sleep(0.01)
    await bench.worker.stop(0.01)
    record = await bench.until(key, status)
    assert (record.claimed, record.starts) == (False, 0 if attempts == 2 else 1)
    if status == "failed":
        assert record.message == "The server was stopped while the tool ran. Part of its work may be done."


async def test_a_worker_with_all_its_places_taken_stops_too() -> None:
    bench = Bench(MemoryTasks(concurrency=1))
    bench.worker.start()
    await bench.create()
    await asyncio.sleep(0.01)
    async with asyncio.timeout(PATIENCE):
        await bench.worker.stop(0.01)


async def brought(bench: Bench, **options: Any) -> Claim:
    """Return a claim of a new task, as a platform brings it."""
    await bench.create(**options)
    (claim,) = await bench.store.claim(1)
    return claim


async def test_a_task_that_a_platform_brings_is_run_and_its_end_is_stored() -> None:
    bench = Bench()
    bench.store.pulls = False
    bench.go.set()
    claim = await brought(bench)
    assert await bench.worker.run(claim) is True
    assert (await bench.until(claim.key, "completed")).outcome == RESULT
    assert await bench.worker.run(await brought(bench, task_id="b")) is True
    await bench.worker.stop(20)


async def test_a_task_that_failed_when_it_was_claimed_is_not_run() -> None:
    bench = Bench(MemoryTasks())
    claim = await brought(bench)
    assert await bench.store.release(claim)
    failed = replace(claim, record=replace(claim.record, status="failed", outcome=RESULT))
    assert await bench.worker.run(failed) is True
    assert bench.running == []


async def test_a_platform_brings_a_task_again_if_its_end_could_not_be_stored() -> None:
    store = FaultyTasks()
    bench = Bench(store)
    bench.go.set()
    claim = await brought(bench)
    store.lease = 0.01
    store.faults["finish"] = [StoreUnavailableError()] * 10
    assert await bench.worker.run(claim) is False
    await bench.worker.stop(20)


async def test_a_task_that_was_cancelled_elsewhere_is_not_brought_again() -> None:
    bench = Bench()
    bench.store.shared = True
    claim = await brought(bench)
    running = asyncio.ensure_future(bench.worker.run(claim))
    await asyncio.sleep(0)
    await bench.store.cancel(claim.key)
    assert await running is True


async def test_a_server_that_stops_returns_what_a_platform_brings() -> None:
    bench = Bench()
    claim = await brought(bench, attempts=2)
    running = asyncio.ensure_future(bench.worker.run(claim))
    await asyncio.sleep(0.01)
    await bench.worker.stop(0.01)
    assert await running is True
    (again,) = await bench.store.claim(1)
    assert await bench.worker.run(again) is True
    (again,) = await bench.store.claim(1)
    assert (again.attempt, bench.running) == (3, ["a"])


# The end of the process


async def test_a_process_that_is_about_to_end_claims_no_more_tasks_and_finishes_those_that_run() -> None:
    bench = Bench()
    bench.worker.start()
    first = await bench.create("a")
    await bench.until_running("a")
    bench.worker.drain()
    assert bench.worker._claiming is not None
    await asyncio.wait([bench.worker._claiming])
    second = await bench.create("b")
    assert bench.running == ["a"]
    bench.worker.start()  # a request that arrives now does not begin it again
    bench.go.set()
    await bench.worker.stop(20)
    assert (await bench.until(first, "completed")).outcome == RESULT
    assert (await bench.until(second, "working")).claimed is False
    assert bench.worker.draining is False


async def test_tasks_that_still_run_end_at_once_when_there_is_no_more_time() -> None:
    bench = Bench()
    bench.worker.start()
    key, other = await bench.create("a"), await bench.create("b", attempts=2)
    await bench.until_running("a", "b")
    stopping = asyncio.create_task(bench.worker.stop(100_000))
    while not bench.worker.draining:  # noqa: ASYNC110 - the worker has no event
        await asyncio.sleep(0.002)
    bench.worker.hurry()
    await stopping
    assert (await bench.until(key, "failed")).outcome is not None
    assert (await bench.until(other, "working")).claimed is False


async def test_a_task_that_is_claimed_after_the_stop_goes_back_without_a_run_even_if_it_may_run_once() -> None:
    bench = Bench()
    bench.worker.start()
    await bench.worker.stop(0)
    key = await bench.create()
    (claim,) = await bench.store.claim(1)
    assert await bench.worker.run(claim)
    record = await bench.store.read(key)
    assert record is not None
    assert (record.status, record.claimed, record.starts, bench.running) == ("working", False, 0, [])


async def test_the_end_of_a_process_that_has_run_nothing_or_tasks_of_a_platform_only() -> None:
    bench = Bench()
    bench.worker.drain()
    bench.worker.hurry()
    bench.go.set()
    key = await bench.create()
    (claim,) = await bench.store.claim(1)
    assert await bench.worker.run(claim)
    bench.worker.drain()
    await asyncio.sleep(0)
    await bench.worker.stop(20)
    assert (await bench.until(key, "completed")).outcome == RESULT


async def test_the_end_of_a_process_whose_event_loop_is_closed() -> None:
    bench = Bench()
    bench.worker._loop = asyncio.new_event_loop()
    bench.worker._loop.close()
    bench.worker.drain()
    bench.worker.hurry()
    await bench.worker.stop(20)
    assert bench.worker.draining is False
