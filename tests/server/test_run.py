"""One request under way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from funcmcp._server.run import Run, RunCancelledError, Waiting, begin
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


T = TypeVar("T")


def begun(work: Coroutine[Any, Any, T]) -> Waiting[T]:
    """Begin work that waits."""
    waiting = begin(work)
    assert isinstance(waiting, Waiting)
    return waiting


async def give(value: int) -> int:
    return value


async def give_after(event: asyncio.Event, value: int) -> int:
    await event.wait()
    return value


def test_work_that_never_waits_is_done_at_once() -> None:
    assert begin(give(3)) == 3


def test_what_work_raises_before_its_first_wait_comes_at_once() -> None:
    async def fail() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        begin(fail())


def test_generator_exit_that_work_raises_is_a_failure() -> None:
    async def leave() -> None:
        raise GeneratorExit

    with pytest.raises(RuntimeError, match="raised GeneratorExit"):
        begin(leave())


async def test_generator_exit_that_work_raises_after_a_wait_is_a_failure() -> None:
    async def leave() -> None:
        await asyncio.sleep(0)
        raise GeneratorExit

    with pytest.raises(RuntimeError, match="raised GeneratorExit"):
        await begun(leave())


async def test_work_that_is_closed_while_it_waits_ends() -> None:
    cleaned = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    async def around() -> None:
        await begun(wait())

    outer = around()
    outer.send(None)
    outer.close()
    assert cleaned == [True]


async def test_work_that_waits_goes_on_when_it_is_awaited() -> None:
    event = asyncio.Event()
    waiting = begun(give_after(event, 3))
    asyncio.get_running_loop().call_soon(event.set)
    async with asyncio.timeout(PATIENCE):
        assert await waiting == 3


async def test_work_may_wait_many_times_and_for_bare_turns_of_the_loop() -> None:
    async def count() -> int:
        total = 0
        for number in range(5):
            await asyncio.sleep(0)
            total += await asyncio.ensure_future(give(number))
        return total

    async with asyncio.timeout(PATIENCE):
        assert await begun(count()) == 10


async def test_work_inside_work_is_begun_at_once_too() -> None:
    event = asyncio.Event()

    async def outer() -> int:
        return await begun(give_after(event, 4)) + 1

    started = begun(outer())
    event.set()
    async with asyncio.timeout(PATIENCE):
        assert await started == 5


async def test_a_failure_after_a_wait_comes_to_whoever_awaits() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise KeyError("gone")

    started = begun(fail())
    with pytest.raises(KeyError, match="gone"):
        await started


async def test_work_sees_the_failure_of_what_it_waits_for() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def survive() -> str:
        try:
            await future
        except ValueError:
            return "survived"
        return "nothing happened"

    started = begun(survive())
    future.set_exception(ValueError("no"))
    async with asyncio.timeout(PATIENCE):
        assert await started == "survived"


async def test_work_begun_in_a_task_stays_in_it() -> None:
    async def who() -> set[asyncio.Task[object] | None]:
        first = asyncio.current_task()
        await asyncio.sleep(0)
        return {first, asyncio.current_task()}

    assert await begun(who()) == {asyncio.current_task()}


async def test_a_time_limit_around_begun_work_reaches_it() -> None:
    cleaned = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(1)

    started = begun(wait_for_ever())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await started
    assert cleaned


def test_work_that_is_dropped_while_it_waits_cleans_up() -> None:
    cleaned = []

    class Pause:
        def __await__(self) -> Generator[None]:
            yield

    async def wait() -> None:
        try:
            await Pause()
        finally:
            cleaned.append(1)

    waiting = begun(wait()).__await__()
    next(waiting)
    waiting.close()
    assert cleaned


async def test_a_run_returns_what_its_work_returns() -> None:
    assert await Run().wait(give(3)) == 3
    assert await Run().wait(give(4)) == 4


async def begin_waiting(run: Run) -> asyncio.Task[int]:
    task = asyncio.create_task(run.wait(give_after(asyncio.Event(), 3)))
    await asyncio.sleep(0)
    return task


async def test_a_cancelled_run_says_that_it_was_cancelled() -> None:
    run = Run()
    task = await begin_waiting(run)
    run.cancel()
    with pytest.raises(RunCancelledError):
        await asyncio.wait_for(task, PATIENCE)
    assert run.cancelled
    assert not task.cancelled()


async def test_a_cancelled_run_leaves_its_task_fit_for_more() -> None:
    run = Run()

    async def carry_on() -> int:
        with pytest.raises(RunCancelledError):
            await run.wait(give_after(asyncio.Event(), 1))
        async with asyncio.timeout(PATIENCE):
            await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    task = asyncio.create_task(carry_on())
    await asyncio.sleep(0)
    run.cancel()
    assert await asyncio.wait_for(task, PATIENCE) == 0


async def test_a_cancelled_task_is_cancelled_and_not_the_run() -> None:
    run = Run()
    task = await begin_waiting(run)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)
    assert task.cancelled()
    assert not run.cancelled


async def test_a_task_that_is_cancelled_together_with_its_run_is_cancelled() -> None:
    run = Run()
    task = await begin_waiting(run)
    run.cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)
    assert task.cancelled()


async def test_cancelling_a_run_that_is_over_touches_nothing() -> None:
    run = Run()
    await run.wait(give(1))
    run.cancel()
    await asyncio.sleep(0)
    assert await give(2) == 2


async def test_the_result_of_work_that_would_not_stop_is_wanted_by_nobody() -> None:
    run, begun = Run(), asyncio.Event()

    async def stubborn() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "a result all the same"
        return "never"

    waiting = asyncio.create_task(run.wait(stubborn()))
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        run.cancel()
        with pytest.raises(RunCancelledError):
            await waiting
    assert waiting.cancelling() == 0
