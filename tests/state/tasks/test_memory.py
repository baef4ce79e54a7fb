"""The store of tasks in memory."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from math import inf
from time import process_time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from funcmcp._state.tasks import any_store
from funcmcp._state.tasks.memory import MemoryTasks
from funcmcp._state.tasks.store import TaskLimits, TasksFullError
from funcmcp.testing import task_store_tests
from funcmcp.testing._task_stores import OTHER, RESULT, claim_one, new_task
from tests.clock import Clock
from tests.patience import PATIENCE
from tests.state.tasks.machine import TaskStoreMachine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from funcmcp._state.tasks.store import TaskStore

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


TIME = Clock()


@asynccontextmanager
async def stores() -> AsyncIterator[Callable[..., TaskStore]]:
    def make(*, lease: float = inf, **options: Any) -> TaskStore:
        store = MemoryTasks(clock=TIME, **options)
        store.lease = lease  # a lease that ends, so that the rules of leases are tried here, too
        return store

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(any_store, "CLAIM_WAIT", 0.05)
        yield make


async def wait(seconds: float) -> None:
    TIME.now += seconds


TestMemoryTasks = task_store_tests(stores, wait=wait)


async def test_nothing_is_left_of_tasks_that_were_removed(clock: Clock) -> None:
    store = MemoryTasks(clock=clock)
    for _ in range(100):
        await store.create(new_task(ttl=10, keep=5))
        await store.finish(await claim_one(store), RESULT)
        await store.create(new_task(None, ttl=10, keep=5))
    assert len(store) == 200
    clock.now += 16
    assert len(store) == 0
    assert (store._by_payer, store._removals) == ({}, [])
    assert list(await store.claim(200)) == []
    assert store._due == {}


async def test_the_ten_thousandth_task_of_one_caller_costs_what_the_first_one_costs(clock: Clock) -> None:
    store = MemoryTasks(clock=clock, limits=TaskLimits(per_principal=20_000, live_per_principal=100))
    for _ in range(99):
        await store.create(new_task())
        await claim_one(store)
    times = []
    for _ in range(10):
        begin = process_time()
        for _ in range(990):
            await store.create(new_task())
            await store.finish(await claim_one(store), RESULT)
        times.append(process_time() - begin)
    assert min(times[-3:]) < 3 * min(times[:3])
    await store.create(new_task())
    for _ in range(10_000):
        with pytest.raises(TasksFullError) as full:
            await store.create(new_task())
        assert full.value.is_owner_limit
    assert len(store) == 10_000
    await store.create(new_task(OTHER))


async def test_a_claim_never_lapses(clock: Clock) -> None:
    store = MemoryTasks(clock=clock)
    await store.create(new_task(ttl=1_000_000))
    claim = await claim_one(store)
    clock.now += 999_000
    assert list(await store.claim(1)) == []
    assert await store.renew(claim)
    assert await store.finish(claim, RESULT)


async def test_a_claim_that_waits_gets_a_task_as_soon_as_it_is_created() -> None:
    store = MemoryTasks()
    waiting = asyncio.ensure_future(store.claim(1))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    task = new_task()
    await store.create(task)
    async with asyncio.timeout(PATIENCE):
        (claim,) = await waiting
    assert claim.key == task.key


class MemoryMachine(TaskStoreMachine):
    async def make(self) -> list[TaskStore]:
        return [MemoryTasks()]


def test_any_sequence_of_steps_does_what_the_model_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(any_store, "CLAIM_WAIT", 0.001)
    run_state_machine_as_test(MemoryMachine, settings=settings(max_examples=40, stateful_step_count=40))
