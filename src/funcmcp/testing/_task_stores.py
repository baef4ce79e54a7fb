"""The rules that every store of tasks keeps, as tests: `funcmcp.testing.task_store_tests`.

How it works: a rule is an async method of `Rules` that fails with an AssertionError. `test_class` returns a class for
pytest with one plain method for each rule, of the same name. Each test has an event loop and a place for tasks of its
own. Nothing but pytest is necessary.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.codec import decode
from funcmcp._state.tasks import any_store
from funcmcp._state.tasks import record as record_module
from funcmcp._state.tasks.record import OUTCOME_BYTES, NewTask, Outcome, Question, TaskKey, TaskRecord
from funcmcp._state.tasks.store import (
    TaskLimits,
    TasksFullError,
    TaskStore,
    UnreadableTask,
    UnreadableTaskError,
    position,
)
from funcmcp._state.tasks.task_filter import ANY_TASK, TaskFilter
from funcmcp.testing._rules import class_of_rules

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from contextlib import AbstractAsyncContextManager
    from typing import TypeAlias

    from funcmcp._state.tasks.record import Claim

    Stores: TypeAlias = Callable[[], AbstractAsyncContextManager[Callable[..., TaskStore]]]
    Wait: TypeAlias = Callable[[float], Awaitable[None]]

PATIENCE = 120
"""Seconds after which a test gives up something that has to come."""

SERVER = "server"
"""The name to which the stores are bound."""

IDLE_CLAIM = 0.1
"""Seconds for which a `claim` of `BaseTasks` waits in these tests. The context of the stores may set another number."""

OWNER, OTHER = "a" * 32, "b" * 32
HOME, AWAY = "c" * 32, "d" * 32
CALL = b'{"name":"add","arguments":{"empty":[],"large":9223372036854775808,"small":1e-320}}'
RESULT = Outcome(b'{"content":[],"structuredContent":{"empty":[],"large":9223372036854775808}}')
FULL = "The arguments and results of your tasks have too many bytes"
LEASE = 0.4
QUESTIONS = {
    "name": Question("name", "digest 1", {"method": "elicitation/create", "params": {"message": "Your name?"}}),
    "size": Question("size", "digest 2", {"method": "elicitation/create", "params": {"message": "Your size?"}}),
}
ANSWER: dict[str, Any] = {"action": "accept", "content": {"large": 9223372036854775808, "empty": []}}


def new_task(owner: str | None = OWNER, **options: Any) -> NewTask:
    return NewTask(TaskKey(owner, secrets.token_urlsafe(33)), "add", CALL, **options)


def large_task(size: int, owner: str | None = OWNER, **options: Any) -> NewTask:
    """Return a task that counts so many bytes, and 2 KiB."""
    return NewTask(TaskKey(owner, secrets.token_urlsafe(33)), "add", b"x" * size, **options)


def large_result(size: int) -> Outcome:
    return Outcome(b'{"content":[],"x":"%b"}' % (b"x" * (size - 21)))


async def claim_one(store: TaskStore, only: TaskFilter = ANY_TASK) -> Claim:
    """Return the claim of the one task that is due; fail if there is none."""
    claims: list[Claim] = []
    for _ in range(5):
        claims += await store.claim(1, only)
        if claims:
            break
    assert len(claims) == 1
    return claims[0]


async def claimed_in_time(store: TaskStore, keep: float) -> tuple[NewTask, Claim, float]:
    """Return a task with a short ttl, its claim and the ttl, which is longer where the machine is too busy for it."""
    for ttl in (0.3, 3.0, 30.0):
        task = new_task(ttl=ttl, keep=keep)
        await store.create(task)
        with contextlib.suppress(AssertionError):
            return task, await claim_one(store), ttl
    raise AssertionError("The store returned no claim.")


@contextlib.contextmanager
def newer_version() -> Iterator[None]:
    """Write and read records as a newer version does, which this version can't read."""
    version = record_module.VERSION
    record_module.VERSION = version + 1
    try:
        yield
    finally:
        record_module.VERSION = version


async def _is_readable(store: TaskStore, key: TaskKey) -> bool:
    """Return whether this version can read a task; fail if the task is absent."""
    try:
        record = await store.read(key)
    except UnreadableTaskError:
        return False
    assert record is not None, "a task of a newer version is absent"
    return True


async def readable_tasks(store: TaskStore) -> list[TaskRecord]:
    """Return the tasks of all owners that this version can read."""
    return [task async for task in store.scan() if isinstance(task, TaskRecord)]


class Rules:
    """The rules, for the stores of one test.

    Args:
        make: Returns another store of the same kind, with the same tasks if it shares any.
        wait: Lets time pass for the stores.

    Attributes:
        store: The store with the default options.
    """

    def __init__(self, make: Callable[..., TaskStore], wait: Wait) -> None:
        self._make = make
        self._made: list[TaskStore] = []
        self.wait = wait
        self.store = self.make()

    def make(self, **options: Any) -> TaskStore:
        """Return another store with these options."""
        store = self._make(**options)
        store.bind(SERVER)
        self._made.append(store)
        return store

    async def aclose(self) -> None:
        """Close all stores."""
        for store in self._made:
            await store.aclose()

    async def idle(self, store: TaskStore, only: TaskFilter = ANY_TASK) -> None:
        """Fail if a task is due."""
        assert list(await store.claim(10, only)) == []

    async def claimed_keys(self, count: int, only: TaskFilter) -> set[TaskKey]:
        """Return the keys of tasks that are due. A store may return them in several steps."""
        keys: set[TaskKey] = set()
        for _ in range(5 * count):
            keys |= {claim.key for claim in await self.store.claim(count - len(keys), only)}
            if len(keys) == count:
                break
        return keys

    async def test_a_task_can_be_read_at_once_by_its_owner_alone(self) -> None:
        store = self.store
        task = new_task()
        record = await store.create(task)
        assert record.status == "working"
        assert record.expires - record.created == pytest.approx(3600)
        assert await store.read(task.key) == record
        assert await store.read(TaskKey(OTHER, task.key.task_id)) is None
        assert await store.read(TaskKey(None, task.key.task_id)) is None

    async def test_a_task_without_an_owner_is_not_a_principals(self) -> None:
        store = self.store
        task = new_task(None)
        record = await store.create(task)
        assert await store.read(task.key) == record
        assert await store.read(TaskKey(OWNER, task.key.task_id)) is None
        assert (await claim_one(store)).key == task.key

    async def test_an_unknown_id_is_not_found(self) -> None:
        store = self.store
        for task_id in ["", "x", "*", "../x", "a\x00b", "ä" * 44, "a" * 100_000, "%", "a:b"]:
            key = TaskKey(OWNER, task_id)
            assert await store.read(key) is None
            assert await store.cancel(key) is None
            assert await store.answer(key, {"name.1": ANSWER}) is None
            await store.watch(key)

    async def test_a_task_of_a_newer_version_is_not_absent(self) -> None:
        store = self.store
        first, task, other = new_task(), new_task(fingerprint="digest"), new_task()
        await store.create(first)
        await self.wait(0.002)  # the order of creation, in milliseconds
        with newer_version():
            created = await store.create(task)
        await self.wait(0.002)
        await store.create(other)
        if await _is_readable(store, task.key):
            return  # the store keeps objects of one process
        with pytest.raises(UnreadableTaskError, match="newer version"):
            await store.cancel(task.key)
        with pytest.raises(UnreadableTaskError):
            await store.answer(task.key, {"name.1": ANSWER})
        with pytest.raises(UnreadableTaskError):
            await store.watch(task.key)
        with contextlib.suppress(UnreadableTaskError):
            await store.create(task)
        assert not await _is_readable(store, task.key)
        for size in (2, 10):
            assert [record.key for record in await store.page(OWNER, None, size)] == [first.key, other.key]
        tasks = {seen.key: seen async for seen in store.scan()}
        assert tasks.keys() == {first.key, task.key, other.key}
        assert tasks[task.key] == UnreadableTask(task.key, over=False)
        assert [(await claim_one(store)).key for _ in range(2)] == [first.key, other.key]
        await self.idle(store)
        with newer_version():
            assert await store.read(task.key) == created

    async def test_a_claim_is_not_valid_after_a_newer_version_has_changed_the_task(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        claim = await claim_one(store)
        with newer_version():
            await store.watch(task.key)
        if await _is_readable(store, task.key):
            return  # the store keeps objects of one process
        assert await store.report(claim, "half") is None
        assert await store.note(claim, "part", 1) is None
        assert await store.retry(claim, 0.0, "again") is None
        assert await store.ask(claim, QUESTIONS) is None
        assert await store.release(claim) is None
        assert await store.finish(claim, RESULT) is None
        with newer_version():
            assert await store.finish(claim, RESULT)
        [seen] = [seen async for seen in store.scan()]
        assert seen == UnreadableTask(task.key, over=True)

    async def test_a_task_that_exists_is_left_as_it_is_when_it_is_created_again(self) -> None:
        store = self.store
        task = new_task(ttl=1.5, keep=0.5, fingerprint="digest")
        await store.create(task)
        claim = await claim_one(store)
        await store.create(task)
        await self.idle(store)
        assert await store.renew(claim)
        assert await store.finish(claim, RESULT)
        await store.create(task)
        record = await store.read(task.key)
        assert record is not None
        assert record.status == "completed"
        await self.wait(2.1)
        await store.create(task)
        again = await claim_one(store)
        assert (again.attempt, again.record.fingerprint) == (1, "digest")
        assert await store.read(task.key) == again.record

    async def test_a_claim_brings_the_call_unchanged_and_no_one_else_gets_it(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        claim = await claim_one(store)
        assert (claim.key, claim.call, claim.attempt, claim.record.tool) == (task.key, CALL, 1, "add")
        await self.idle(store)

    async def test_claims_come_in_the_order_of_creation_and_at_most_as_many_as_wanted(self) -> None:
        store = self.store
        tasks = [new_task() for _ in range(5)]
        for task in tasks:
            await store.create(task)
            await self.wait(0.002)
        claims: list[Claim] = []
        while len(claims) < len(tasks):
            batch = await store.claim(3)
            assert 1 <= len(batch) <= 3
            claims += batch
        assert [claim.key for claim in claims] == [task.key for task in tasks]

    async def test_a_finished_task_has_its_outcome_and_nothing_of_its_call(self) -> None:
        store = self.store
        task = new_task(ttl=100, keep=50)
        created = await store.create(task)
        claim = await claim_one(store)
        assert await store.finish(claim, RESULT)
        record = await store.read(task.key)
        assert record is not None
        assert record.status == "completed"
        assert record.outcome == RESULT
        assert record.removed == pytest.approx(created.expires, abs=1)
        assert await store.finish(claim, RESULT) is None
        assert await store.report(claim, "late") is None
        assert await store.renew(claim) is False
        assert await store.release(claim) is None
        assert await store.ask(claim, QUESTIONS) is None
        assert await store.cancel(task.key) is None
        assert await store.read(task.key) == record
        await self.idle(store)

    async def test_an_outcome_is_kept_for_its_time_at_least(self) -> None:
        store = self.store
        task = new_task(ttl=100, keep=500)
        await store.create(task)
        assert await store.finish(await claim_one(store), RESULT)
        record = await store.read(task.key)
        assert record is not None
        assert record.removed == pytest.approx(record.updated + 500, abs=0.01)

    async def test_a_json_rpc_error_fails_the_task(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        outcome = Outcome(b'{"code":-32000,"message":"No"}', is_error=True, message="No")
        assert await store.finish(await claim_one(store), outcome)
        record = await store.read(task.key)
        assert record is not None
        assert (record.status, record.message, record.outcome) == ("failed", "No", outcome)

    async def test_a_report_changes_the_message(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        claim = await claim_one(store)
        assert await store.report(claim, 'half "done" ä')
        record = await store.read(task.key)
        assert record is not None
        assert (record.status, record.message) == ("working", 'half "done" ä')
        assert await store.finish(claim, RESULT)

    async def test_a_task_with_questions_waits_for_all_answers_and_is_due_again(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        claim = await claim_one(store)
        assert await store.ask(claim, QUESTIONS)
        record = await store.read(task.key)
        assert record is not None
        assert record.status == "input_required"
        assert record.questions == {"name.1": QUESTIONS["name"], "size.2": QUESTIONS["size"]}
        await self.idle(store)
        assert await store.finish(claim, RESULT) is None

        assert await store.answer(task.key, {"size.2": ANSWER, "name": ANSWER, "other.9": {}})
        record = await store.read(task.key)
        assert record is not None
        assert (record.status, list(record.questions)) == ("input_required", ["name.1"])
        assert await store.answer(task.key, {"size.2": {"action": "decline"}}) is None
        await self.idle(store)

        assert await store.answer(task.key, {"name.1": {"action": "decline"}})
        again = await claim_one(store)
        assert (again.key, again.call, again.attempt) == (task.key, CALL, 2)
        assert again.record.answers == {"size": ("digest 2", ANSWER), "name": ("digest 1", {"action": "decline"})}

        assert await store.ask(again, {"name": QUESTIONS["name"]})
        record = await store.read(task.key)
        assert record is not None
        assert list(record.questions) == ["name.3"]

    async def test_results_of_parts_are_kept_for_later_runs_and_not_after_the_end(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        first = await claim_one(store)
        assert await store.note(first, "charge", ANSWER)
        assert await store.note(first, "mail", None)
        assert await store.release(first)
        assert await store.note(first, "late", 1) is None
        second = await claim_one(store)
        assert second.record.results == {"charge": ANSWER, "mail": None}
        finished = await store.finish(second, RESULT)
        assert finished is not None
        assert finished.results == {}

    async def test_the_result_of_a_part_needs_room(self) -> None:
        limited = self.make(limits=TaskLimits(bytes_per_principal=4000))
        await limited.create(new_task())
        claim = await claim_one(limited)
        with pytest.raises(TasksFullError):
            await limited.note(claim, "large", "x" * 4000)
        assert await limited.note(claim, "small", "x")

    async def test_a_cancelled_task_is_over_for_its_worker_too(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        claim = await claim_one(store)
        assert await store.cancel(TaskKey(OTHER, task.key.task_id)) is None
        assert await store.cancel(task.key)
        assert await store.cancel(task.key) is None
        assert await store.renew(claim) is False
        assert await store.finish(claim, RESULT) is None
        record = await store.read(task.key)
        assert record is not None
        assert record.status == "cancelled"
        await self.idle(store)

    async def test_a_task_that_is_cancelled_before_it_runs_never_runs(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        assert await store.cancel(task.key)
        await self.idle(store)

    async def test_answers_to_a_cancelled_task_are_ignored(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        assert await store.ask(await claim_one(store), QUESTIONS)
        assert await store.cancel(task.key)
        assert await store.answer(task.key, {"name.1": ANSWER, "size.2": ANSWER}) is None
        await self.idle(store)

    async def test_a_released_task_is_due_at_once_or_after_its_delay(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        first = await claim_one(store)
        assert await store.release(first)
        second = await claim_one(store)
        assert second.attempt == 2
        assert await store.renew(first) is False
        assert await store.release(second, 0.05)
        await self.wait(0.06)
        assert (await claim_one(store)).attempt == 3

    async def test_a_task_with_a_delay_is_due_after_it(self) -> None:
        store = self.store
        record = await store.create(new_task(delay=0.3))
        assert record.due == pytest.approx(record.created + 0.3, abs=0.01)
        await self.idle(store)
        await self.wait(0.31)
        assert (await claim_one(store)).key == record.key

    async def test_a_worker_gets_tasks_of_the_queues_that_it_serves(self) -> None:
        store = self.store
        slow = await store.create(new_task(queue="slow"))
        other = await store.create(new_task(queue="other.QUEUE_1"))
        plain = await store.create(new_task())
        assert [slow.queue, other.queue, plain.queue] == ["slow", "other.QUEUE_1", "default"]
        assert list(await store.claim(10, TaskFilter(frozenset({"fast"})))) == []
        assert list(await store.claim(10, TaskFilter(frozenset()))) == []
        assert await self.claimed_keys(2, TaskFilter(frozenset({"slow", "default"}))) == {slow.key, plain.key}
        assert list(await store.claim(10, TaskFilter(frozenset({"slow", "default"})))) == []
        assert await self.claimed_keys(1, ANY_TASK) == {other.key}

    async def test_a_task_returns_to_its_own_queue(self) -> None:
        store = self.store
        slow = TaskFilter(frozenset({"slow"}))
        await store.create(new_task(queue="slow", delay=0.3, attempts=2))
        await self.wait(0.31)
        released = await claim_one(store, slow)
        assert await store.renew(released)
        assert await store.release(released, 0.05)
        await self.wait(0.06)
        failed = await claim_one(store, slow)
        assert await store.retry(failed, 0.3, "no disk")
        await self.wait(0.31)
        asking = await claim_one(store, slow)
        assert await store.ask(asking, QUESTIONS)
        assert await store.answer(asking.key, {"name.1": ANSWER, "size.2": ANSWER})
        await self.idle(store, TaskFilter(frozenset({"default"})))
        last = await claim_one(store, slow)
        assert (last.attempt, last.record.queue) == (4, "slow")
        assert await store.finish(last, RESULT)
        await self.idle(store)

    async def test_the_lapsed_task_of_a_queue_runs_again_in_it(self) -> None:
        store = self.make(lease=LEASE)
        await store.create(new_task(queue="slow", attempts=2))
        await claim_one(store, TaskFilter(frozenset({"slow"})))
        await self.wait(2 * LEASE)
        await self.idle(store, TaskFilter(frozenset({"default"})))
        assert (await claim_one(store, TaskFilter(frozenset({"slow"})))).attempt == 2

    async def test_a_worker_gets_as_many_tasks_of_a_tool_as_it_has_places_for(self) -> None:
        store = self.store
        for tool in ("render", "render", "render", "add", "add"):
            await store.create(replace(new_task(limited=tool == "render"), tool=tool))
            await self.wait(0.002)
        claims = list(await store.claim(10, TaskFilter(places={"render": 1, "other": 0})))
        for _ in range(5):
            claims += await store.claim(10, TaskFilter(places={"render": 0}))
        assert [claim.record.tool for claim in claims].count("render") <= 1
        assert [claim.record.tool for claim in claims].count("add") == 2
        others = await self.claimed_keys(5 - len(claims), TaskFilter(places={"render": 10}))
        assert len({claim.key for claim in claims} | others) == 5

    async def test_a_failed_run_is_counted_and_the_task_runs_again_after_its_delay(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        first = await claim_one(store)
        again = await store.retry(first, 0.3, "Attempt 1 of 3 failed: no disk")
        assert again is not None
        assert (again.status, again.message, again.failures) == ("working", "Attempt 1 of 3 failed: no disk", 1)
        assert await store.read(task.key) == again
        assert await store.finish(first, RESULT) is None
        assert await store.retry(first, 0.0, "") is None
        await self.idle(store)
        await self.wait(0.31)
        second = await claim_one(store)
        assert (second.attempt, second.record.starts, second.record.failures) == (2, 1, 1)
        assert await store.retry(second, 0.0, "Attempt 2 of 3 failed: no disk")
        third = await claim_one(store)
        assert third.record.failures == 2
        assert await store.finish(third, RESULT)

    async def test_a_task_that_has_failed_keeps_its_call_and_others_do_not(self) -> None:
        limited = self.make(limits=TaskLimits(bytes_per_principal=20_000))
        kept: dict[str, bytes | None] = {}
        for name in ("completed", "tool failed", "failed", "cancelled"):
            record = await limited.create(large_task(7000))
            assert await limited.read_call(record.key) == b"x" * 7000
            claim = await claim_one(limited)
            if name == "cancelled":
                assert await limited.cancel(record.key)
            else:
                outcome = replace(RESULT, tool_failed=name == "tool failed", is_error=name == "failed")
                assert await limited.finish(claim, outcome)
            kept[name] = await limited.read_call(record.key)
        assert kept == {"completed": None, "tool failed": b"x" * 7000, "failed": b"x" * 7000, "cancelled": None}
        assert await limited.read_call(new_task().key) is None

    async def test_the_calls_of_failed_tasks_count_until_they_make_room(self) -> None:
        limited = self.make(limits=TaskLimits(bytes_per_principal=20_000))
        first = await limited.create(large_task(7000))
        assert await limited.finish(await claim_one(limited), replace(RESULT, tool_failed=True))
        await limited.create(large_task(7000))
        assert await limited.read(first.key)
        await limited.create(large_task(7000))
        assert await limited.read(first.key) is None

    async def test_a_task_that_waits_for_its_next_run_can_be_cancelled(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        assert await store.retry(await claim_one(store), 0.05, "failed")
        assert await store.cancel(task.key)
        await self.wait(0.06)
        await self.idle(store)

    async def test_a_lapsed_task_runs_again_if_it_may_and_the_first_worker_has_lost_it(self) -> None:
        lasting = self.make(lease=LEASE)
        task = new_task(attempts=2)
        await lasting.create(task)
        first = await claim_one(lasting)
        await self.wait(LEASE + 0.05)
        second = await claim_one(lasting)
        assert (second.key, second.attempt, second.record.status) == (task.key, 2, "working")
        assert await lasting.renew(first) is False
        assert await lasting.report(first, "late") is None
        assert await lasting.ask(first, QUESTIONS) is None
        assert await lasting.release(first) is None
        assert await lasting.finish(first, RESULT) is None
        assert await lasting.finish(second, RESULT)

    async def test_a_lapsed_task_that_may_run_once_fails_in_words(self) -> None:
        lasting = self.make(lease=LEASE)
        task = new_task()
        await lasting.create(task)
        first = await claim_one(lasting)
        await self.wait(LEASE + 0.05)
        second = await claim_one(lasting)
        assert second.record.over
        record = await lasting.read(task.key)
        assert record is not None
        assert record.status == "failed"
        assert record.outcome is not None
        message = "The server was stopped while the tool ran. Part of its work may be done."
        assert decode(record.outcome.text) == {"code": -32603, "message": message}
        assert await lasting.finish(first, RESULT) is None
        await self.idle(lasting)

    async def test_a_lapsed_task_that_failed_is_not_live_any_more(self) -> None:
        lasting = self.make(lease=LEASE, limits=TaskLimits(live_per_principal=1))
        await lasting.create(new_task())
        await claim_one(lasting)
        await self.wait(LEASE + 0.05)
        assert (await claim_one(lasting)).record.over
        await lasting.create(new_task())

    async def test_a_claim_with_the_number_of_another_and_a_token_of_its_own_is_refused(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        claim = await claim_one(store)
        stale = replace(claim, record=replace(claim.record, token="0123456789abcdef"))
        assert stale.attempt == claim.attempt
        assert await store.renew(stale) is False
        assert await store.report(stale, "late") is None
        assert await store.ask(stale, QUESTIONS) is None
        assert await store.release(stale) is None
        assert await store.finish(stale, RESULT) is None
        assert await store.renew(claim)
        assert await store.finish(claim, RESULT)

    async def test_a_renewed_claim_does_not_lapse(self) -> None:
        lasting = self.make(lease=LEASE)
        await lasting.create(new_task())
        claim = await claim_one(lasting)
        for _ in range(4):
            await self.wait(LEASE / 2)
            assert await lasting.renew(claim)
        assert await lasting.finish(claim, RESULT)

    async def test_a_task_that_does_not_end_in_time_fails_and_is_removed_later(self) -> None:
        store = self.store
        task, claim, ttl = await claimed_in_time(store, keep=1.5)
        await self.wait(ttl + 0.01)
        record = await store.read(task.key)
        assert record is not None
        assert record.status == "failed"
        assert record.outcome is not None
        assert decode(record.outcome.text)["message"] == f"The task did not finish within {ttl:g} seconds (its ttl)."
        assert record.updated == pytest.approx(record.expires)
        assert await store.finish(claim, RESULT) is None
        assert await store.cancel(task.key) is None
        await self.wait(1.51)
        assert await store.read(task.key) is None
        await self.idle(store)

    async def test_a_task_that_nobody_ran_in_time_is_not_run_after_it(self) -> None:
        store = self.store
        created = await store.create(new_task(ttl=0.1, keep=10))
        await self.wait(0.11)
        await self.idle(store)
        record = await store.read(created.key)
        assert record is not None
        assert (record.status, record.message) == ("failed", "No worker started the task within 0.1 seconds (its ttl).")

    async def test_a_scan_has_the_tasks_of_all_owners_once_as_they_are(self) -> None:
        store = self.store
        assert [record async for record in store.scan()] == []
        tasks = [new_task(owner) for owner in (OWNER, OTHER, None)]
        for task in tasks:
            await store.create(task)
        await store.create(new_task(ttl=1, keep=1))
        await store.cancel(tasks[1].key)
        await self.wait(1.1)
        statuses = {record.key: record.status for record in await readable_tasks(store)}
        assert [statuses.pop(task.key) for task in tasks] == ["working", "cancelled", "working"]
        assert list(statuses.values()) == ["failed"]
        await self.wait(1.1)
        assert {record.key async for record in store.scan()} == {task.key for task in tasks}

    async def test_the_backlog_has_tasks_that_are_due_and_that_no_worker_has(self) -> None:
        store = self.store
        if await store.backlog() is None:  # the store can't tell
            return
        await store.create(new_task(delay=60.0))
        assert await store.backlog() == (0, 0.0)
        for _ in range(2):
            await store.create(new_task())
        await self.wait(0.5)
        backlog = await store.backlog()
        assert backlog is not None
        assert (backlog.waiting, backlog.oldest > LEASE) == (2, True)
        claims: list[Claim] = []
        while len(claims) < backlog.waiting:
            claims += await store.claim(2)
        assert await store.finish(claims[0], RESULT)
        assert await store.ask(claims[1], QUESTIONS)
        assert await store.backlog() == (0, 0.0)
        assert await store.answer(claims[1].key, dict.fromkeys(["name.1", "size.2"], ANSWER))
        backlog = await store.backlog()
        assert backlog is not None
        assert backlog.waiting == 1

    async def test_watching_is_noted_and_changes_nothing_else(self) -> None:
        store = self.store
        task = new_task()
        await store.create(task)
        await store.watch(task.key)
        record = await store.read(task.key)
        assert record is not None
        assert record.watched
        claim = await claim_one(store)
        assert claim.record.watched
        assert await store.finish(claim, RESULT)

    async def test_a_page_has_the_tasks_of_its_owner_oldest_first(self) -> None:
        store = self.store
        keys = []
        for index in range(5):
            record = await store.create(new_task())
            await store.create(new_task(OTHER))
            await store.create(new_task(None))
            await self.wait(0.002)
            keys.append(record.key)
            if index == 2:
                await store.cancel(record.key)
        first = await store.page(OWNER, None, 3)
        assert [record.key for record in first] == keys[:3]
        assert first[2].status == "cancelled"
        second = await store.page(OWNER, position(first[-1]), 3)
        assert [record.key for record in second] == keys[3:]
        assert list(await store.page(OWNER, position(second[-1]), 3)) == []
        assert list(await store.page("c" * 32, None, 3)) == []
        assert list(await store.page(None, None, 3)) == []

    async def test_one_principal_has_limits_of_its_own(self) -> None:
        limited = self.make(limits=TaskLimits(per_principal=3, live_per_principal=2))
        await limited.create(new_task())
        second = await limited.create(new_task())
        with pytest.raises(TasksFullError) as full:
            await limited.create(new_task())
        assert full.value.is_owner_limit
        assert full.value.retry_after == pytest.approx(3600, abs=5)
        await limited.create(new_task(OTHER))
        await limited.create(new_task(None))
        assert await limited.cancel(second.key)
        await self.wait(0.002)
        third = await limited.create(new_task())
        await limited.cancel(third.key)
        await limited.create(new_task())
        assert await limited.read(second.key) is None, "the task that ended first makes room"
        assert await limited.read(third.key) is not None

    async def test_ended_tasks_make_room_the_oldest_first_and_live_ones_never(self) -> None:
        limited = self.make(limits=TaskLimits(total=4))
        ended = [await limited.create(new_task(None, address=HOME)) for _ in range(2)]
        for record in ended:
            assert await limited.cancel(record.key)
            await self.wait(0.002)
        live = [await limited.create(new_task(OTHER)) for _ in range(2)]
        for oldest in ended:
            assert await limited.read(oldest.key)
            live.append(await limited.create(new_task()))
            assert await limited.read(oldest.key) is None
        with pytest.raises(TasksFullError):
            await limited.create(new_task())
        assert [await limited.read(record.key) for record in live] == live

    async def test_ended_tasks_of_an_address_make_room_for_its_bytes(self) -> None:
        limited = self.make(limits=TaskLimits(bytes_per_principal=16_000))
        away = await limited.create(large_task(9000, None, address=AWAY))
        assert await limited.cancel(away.key)
        home = await limited.create(new_task(None, address=HOME))
        claim = await claim_one(limited)
        assert await limited.finish(claim, large_result(9000))
        second = await limited.create(large_task(9000, None, address=HOME))
        assert await limited.read(away.key)
        assert await limited.read(home.key) is None
        assert await limited.read(second.key) == second

    async def test_a_task_that_did_not_end_in_time_is_not_live_any_more(self) -> None:
        limited = self.make(limits=TaskLimits(per_principal=3, live_per_principal=1))
        await limited.create(new_task(ttl=0.1, keep=10))
        await self.wait(0.11)
        await limited.create(new_task())
        with pytest.raises(TasksFullError) as full:
            await limited.create(new_task())
        assert full.value.retry_after == pytest.approx(3600, abs=5)

    async def test_all_tasks_together_have_a_limit(self) -> None:
        limited = self.make(limits=TaskLimits(total=2))
        await limited.create(new_task(None))
        await limited.create(new_task(ttl=0.05, keep=0.1))
        await self.wait(0.2)
        await limited.create(new_task(None))
        with pytest.raises(TasksFullError) as full:
            await limited.create(new_task(None))
        assert full.value.is_owner_limit is False
        assert full.value.retry_after == pytest.approx(4500, abs=5)

    async def test_one_principal_has_so_many_bytes_and_no_more(self) -> None:
        limited = self.make(limits=TaskLimits(bytes_per_principal=10_000))
        first = await limited.create(large_task(6000))
        with pytest.raises(TasksFullError, match=FULL) as full:
            await limited.create(large_task(6000))
        assert full.value.is_owner_limit
        assert full.value.retry_after == pytest.approx(4500, abs=5)
        await limited.create(large_task(6000, OTHER))
        assert await limited.cancel(first.key)
        await limited.create(large_task(5000))

    async def test_anonymous_callers_at_one_address_have_as_many_bytes_as_a_principal(self) -> None:
        limited = self.make(limits=TaskLimits(bytes_per_principal=15_000))
        first = await limited.create(large_task(9000, None, address=HOME))
        with pytest.raises(TasksFullError, match=FULL) as full:
            await limited.create(large_task(9000, None, address=HOME))
        assert full.value.is_owner_limit
        await limited.create(large_task(9000, None, address=AWAY))
        assert await limited.cancel(first.key)
        await limited.create(large_task(1000, None, address=HOME))

    async def test_all_tasks_together_have_a_limit_of_bytes(self) -> None:
        limited = self.make(limits=TaskLimits(total_bytes=20_000))
        await limited.create(large_task(7000))
        await limited.create(large_task(7000, None, ttl=0.05, keep=0.1))
        await self.wait(0.2)
        await limited.create(large_task(7000, OTHER))
        with pytest.raises(TasksFullError, match="The arguments and results of all tasks have too many bytes") as full:
            await limited.create(large_task(7000, OTHER))
        assert full.value.is_owner_limit is False
        assert full.value.retry_after == pytest.approx(4500, abs=5)

    async def test_a_call_that_is_larger_than_the_share_is_refused_at_once(self) -> None:
        limited = self.make(limits=TaskLimits(bytes_per_principal=4000))
        with pytest.raises(TasksFullError) as full:
            await limited.create(large_task(5000))
        assert (full.value.is_owner_limit, full.value.retry_after) == (True, 1)
        limited = self.make(limits=TaskLimits(total_bytes=4000))
        with pytest.raises(TasksFullError) as full:
            await limited.create(large_task(5000))
        assert (full.value.is_owner_limit, full.value.retry_after) == (False, 1)

    async def test_a_result_without_room_fails_its_task_in_words_and_a_smaller_one_does_not(self) -> None:
        limited = self.make(limits=TaskLimits(bytes_per_principal=14_000))
        await limited.create(new_task())
        await self.wait(0.002)  # so that it is claimed first
        await limited.create(large_task(7000))
        failed = await limited.finish(await claim_one(limited), large_result(6000))
        completed = await limited.finish(await claim_one(limited), large_result(6000))
        assert completed is not None
        assert failed is not None
        assert [await limited.read(completed.key), await limited.read(failed.key)] == [completed, failed]
        assert (completed.status, failed.status) == ("completed", "failed")
        assert failed.outcome is not None
        assert decode(failed.outcome.text) == {
            "code": -32603,
            "message": f"The tool ran. There is no room for its result of 6000 bytes. {FULL}.",
        }
        await limited.create(large_task(1000))

    async def test_a_task_always_ends_however_full_the_store_is(self) -> None:
        limited = self.make(limits=TaskLimits(total_bytes=10_000))
        await limited.create(large_task(0, OTHER))
        await limited.create(large_task(5800))
        for _ in range(2):
            assert await limited.finish(await claim_one(limited), large_result(OUTCOME_BYTES))
        assert await limited.create(large_task(6000))

    async def test_questions_without_room_fail_their_task_in_words(self) -> None:
        limited = self.make(limits=TaskLimits(bytes_per_principal=4000))
        await limited.create(new_task())
        message = {"method": "elicitation/create", "params": {"message": "?" * 4000}}
        failed = await limited.ask(await claim_one(limited), {"name": Question("name", "digest", message)})
        assert failed is not None
        assert (failed.status, failed.message) == (
            "failed",
            f"There is no room for the questions of the tool. {FULL}.",
        )

    async def test_an_answer_without_room_is_refused_and_can_be_given_again(self) -> None:
        limited = self.make(limits=TaskLimits(bytes_per_principal=8000))
        record = await limited.create(new_task())
        assert await limited.ask(await claim_one(limited), QUESTIONS)
        long: list[dict[str, Any]] = [{"content": {"name": "x" * 8000}}, {"content": {"names": [{}] * 60}}]
        for answer in long:
            with pytest.raises(TasksFullError) as full:
                await limited.answer(record.key, {"name.1": answer})
            assert full.value.is_owner_limit
        assert await limited.answer(record.key, {"name.1": ANSWER, "size.2": ANSWER})
        assert (await claim_one(limited)).record.answers["name"] == ("digest 1", ANSWER)

    async def test_nothing_counts_any_more_when_the_tasks_are_removed(self) -> None:
        limited = self.make(limits=TaskLimits(total_bytes=9000, bytes_per_principal=9000))
        for owner, address in ((OWNER, None), (None, HOME), (None, None)) * 2:
            await limited.create(large_task(6000, owner, address=address, ttl=0.5, keep=0.1))
            assert await limited.finish(await claim_one(limited), large_result(3000))
            await self.wait(0.65)
        await limited.create(large_task(6900))

    async def test_servers_of_other_names_have_other_tasks(self) -> None:
        store = self.store
        if not store.shared:
            pytest.skip("the store has the tasks of one server")
        other = self.make()
        other.bind("other")
        store.bind("one")
        task = new_task()
        await store.create(task)
        assert await other.read(task.key) is None
        await self.idle(other)
        assert (await claim_one(store)).key == task.key

    async def test_a_claim_that_waits_ends_when_the_worker_stops(self) -> None:
        store = self.store
        await self.idle(store)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(any_store, "CLAIM_WAIT", 10 * PATIENCE)
            claiming = asyncio.ensure_future(store.claim(1))
            while not claiming.done():
                store.wake()
                await asyncio.sleep(0.01)
            assert list(await claiming) == []

    async def test_of_many_workers_exactly_one_gets_each_task(self) -> None:
        store = self.store
        workers = [store, *[self.make() for _ in range(2)]] if store.shared else [store] * 3
        tasks = [new_task(None) for _ in range(30)]
        for task in tasks:
            await store.create(task)
        claimed: list[TaskKey] = []

        async def work(worker: TaskStore) -> None:
            while len(claimed) < len(tasks):
                claims = await worker.claim(2)
                claimed.extend(claim.key for claim in claims)
                assert all([await worker.finish(claim, RESULT) for claim in claims])

        await asyncio.wait_for(asyncio.gather(*(work(worker) for worker in workers)), PATIENCE)
        assert sorted(claimed) == sorted(task.key for task in tasks)

    async def test_of_two_cancellations_and_a_finish_at_once_one_succeeds(self) -> None:
        store = self.store
        for _ in range(10):
            task = new_task(None)
            await store.create(task)
            claim = await claim_one(store)
            outcomes = await asyncio.gather(store.cancel(task.key), store.finish(claim, RESULT), store.cancel(task.key))
            assert sum(outcome is not None for outcome in outcomes) == 1
            record = await store.read(task.key)
            assert record is not None
            assert record.status == ("completed" if outcomes[1] else "cancelled")


def test_class(stores: Stores, wait: Wait, name: str) -> type:
    """Return a class with a test for each rule.

    Args:
        stores: See `funcmcp.testing.task_store_tests`.
        wait: The same.
        name: Of the class.
    """

    def run(rule: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(any_store, "CLAIM_WAIT", IDLE_CLAIM)
            asyncio.run(_run(rule, stores, wait))

    return class_of_rules(Rules, run, name)


async def _run(rule: str, stores: Stores, wait: Wait) -> None:
    async with stores() as make:
        rules = Rules(make, wait)
        try:
            await getattr(rules, rule)()
        finally:
            await rules.aclose()
