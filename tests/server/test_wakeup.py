"""A signal to one coroutine that waits for it."""

from __future__ import annotations

import asyncio
import time

import pytest

from funcmcp._server.wakeup import Wakeup
from tests.patience import PATIENCE

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


async def test_a_signal_that_came_first_is_not_lost_and_stays_until_it_is_cleared() -> None:
    wakeup = Wakeup()
    wakeup.set()
    assert await wakeup.wait()
    assert await wakeup.wait(0)
    wakeup.clear()
    assert not await wakeup.wait(0)


async def test_a_signal_wakes_the_coroutine_that_waits() -> None:
    wakeup = Wakeup()
    waiting = asyncio.create_task(wakeup.wait(PATIENCE))
    await asyncio.sleep(0)
    assert not waiting.done()
    wakeup.set()
    wakeup.set()
    assert await waiting


async def test_a_signal_counts_even_when_it_is_cleared_before_the_coroutine_runs() -> None:
    wakeup = Wakeup()
    waiting = asyncio.create_task(wakeup.wait(PATIENCE))
    await asyncio.sleep(0)
    wakeup.set()
    wakeup.clear()
    assert await waiting


async def test_a_signal_just_before_the_end_of_the_time_counts() -> None:
    wakeup = Wakeup()
    waiting = asyncio.create_task(wakeup.wait(0.002))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.001, wakeup.set)
    time.sleep(0.01)  # noqa: ASYNC251 - so that the signal and the end of the time come in one iteration of the loop
    assert await waiting


async def test_a_coroutine_that_is_cancelled_leaves_the_next_one_its_signal() -> None:
    wakeup = Wakeup()
    cancelled = asyncio.create_task(wakeup.wait(PATIENCE))
    await asyncio.sleep(0)
    cancelled.cancel()
    waiting = asyncio.create_task(wakeup.wait(PATIENCE))
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await asyncio.sleep(0)
    wakeup.set()
    assert await waiting
