"""Looks at the tasks that wait in a store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from funcmcp._server.tasks import backlog as module
from funcmcp._server.tasks.backlog import BacklogWatch
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.memory import MemoryTasks
from funcmcp.testing._task_stores import new_task
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._state.tasks.store import Backlog

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


class FailingTasks(MemoryTasks):
    """A store that fails while it has a fault."""

    fault: Exception | None = None
    looks = 0

    async def backlog(self) -> Backlog:
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        return await super().backlog()


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_INTERVAL", 0.01)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - the looks have no event
            await asyncio.sleep(0.002)


@pytest.mark.parametrize("fault", [StoreUnavailableError(), RuntimeError("broken")])
async def test_there_is_no_number_while_a_store_fails(fault: Exception, caplog: pytest.LogCaptureFixture) -> None:
    store = FailingTasks()
    watch = BacklogWatch(store)
    assert watch.latest is None
    await store.create(new_task())
    watch.start()
    watch.start()
    await until(lambda: watch.latest is not None and watch.latest.waiting == 1)
    store.fault = fault
    await until(lambda: watch.latest is None)
    assert ("backlog of tasks" in caplog.text) == isinstance(fault, RuntimeError)
    store.fault = None
    await until(lambda: watch.latest is not None)
    await watch.stop()
    assert watch.latest is None
    looks = store.looks
    await asyncio.sleep(0.05)
    assert store.looks == looks


async def test_a_process_that_a_platform_may_stop_does_not_look() -> None:
    store = FailingTasks()
    store.pulls = False
    watch = BacklogWatch(store)
    watch.start()
    await asyncio.sleep(0.05)
    assert store.looks == 0
    await watch.stop()


def test_looks_begin_again_on_another_event_loop() -> None:
    watch = BacklogWatch(FailingTasks())

    async def look() -> None:
        watch.start()
        await until(lambda: watch.latest is not None)
        watch.latest = None

    asyncio.run(look())
    asyncio.run(look())
    asyncio.run(watch.stop())
