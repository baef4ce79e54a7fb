"""Tasks that begin at once, which Python 3.12 has and Python 3.11 has not."""

from __future__ import annotations

import asyncio
import types
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from funcmcp._transports.http.streams.eager_tasks import eager_task
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.every_python("Python 3.12 has eager tasks, and Python 3.11 has those of funcmcp.")
PLACE: ContextVar[str] = ContextVar("PLACE", default="outside")


async def test_a_coroutine_that_never_waits_is_done_at_once() -> None:
    async def work() -> str:
        return "done"

    task = eager_task(work())
    assert task.done()
    assert await task == "done"


async def test_an_error_before_the_first_wait_is_that_of_the_task() -> None:
    async def work() -> None:
        raise KeyError("stock")

    task = eager_task(work())
    with pytest.raises(KeyError, match="stock"):
        await task
    assert not task.cancelled()


async def test_a_coroutine_stays_in_one_task_and_one_context() -> None:
    caller = asyncio.current_task()
    tasks: list[Any] = []

    async def work() -> str:
        token = PLACE.set("inside")
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        tasks.append(asyncio.current_task())
        place = PLACE.get()
        PLACE.reset(token)
        return place

    task = eager_task(work())
    assert (len(tasks), task.done(), asyncio.current_task(), PLACE.get()) == (1, False, caller, "outside")
    assert await task == "inside"
    assert tasks == [task, task]


@pytest.mark.parametrize("library", ["asyncio", "anyio"])
async def test_a_time_limit_from_before_the_first_wait_ends_what_is_within_it_alone(library: str) -> None:
    async def work() -> str:
        if library == "asyncio":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await asyncio.Event().wait()
        else:
            with anyio.move_on_after(0.001) as limit:
                await anyio.Event().wait()
            assert limit.cancelled_caught
        return "ended"

    assert await asyncio.wait_for(eager_task(work()), PATIENCE) == "ended"


@pytest.mark.parametrize("turns", [0, 2])
async def test_a_cancellation_reaches_what_the_coroutine_waits_for(turns: int) -> None:
    events: list[str] = []

    async def inner() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            events.append("inner")
            raise

    async def work() -> None:
        child = asyncio.create_task(inner())
        await asyncio.sleep(0)
        try:
            await child
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # what ends here may wait
            events.append("outer")
            raise

    task = eager_task(work())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == (["inner", "outer"] if turns else [])


async def test_a_cancellation_at_once_lets_the_coroutine_end() -> None:
    events: list[str] = []

    async def work() -> None:
        waits_for = asyncio.get_running_loop().create_future()
        try:
            await waits_for
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            events.append("future cancelled" if waits_for.cancelled() else "future pending")
            raise

    task = eager_task(work())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["future cancelled"]


async def test_libraries_see_the_coroutine_of_a_task() -> None:
    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 0)
            await anyio.lowlevel.checkpoint()

    task = eager_task(work())
    assert isinstance(task, asyncio.Task)
    assert "work" in repr(task)
    await task


async def test_an_eager_task_within_another_one_leaves_it_current() -> None:
    async def inner() -> asyncio.Task[Any] | None:
        return asyncio.current_task()

    async def outer() -> tuple[Any, Any, Any]:
        before = asyncio.current_task()
        seen = await eager_task(inner())
        return before, seen, asyncio.current_task()

    before, seen, after = await eager_task(outer())
    assert before is after
    assert seen is not before


async def test_coroutines_wait_for_one_future_from_their_first_step() -> None:
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> int:
        return await answer

    tasks = [eager_task(work()) for _ in range(3)]
    asyncio.get_running_loop().call_soon(answer.set_result, 7)
    assert await answer == 7  # also the caller may wait for it, before the tasks do
    assert await asyncio.gather(*tasks) == [7, 7, 7]


@pytest.mark.parametrize("ends_by", ["returning", "raising"])
async def test_a_coroutine_that_is_cancelled_in_its_first_step_cancels_its_task(ends_by: str) -> None:
    async def work() -> None:
        if ends_by == "raising":
            raise asyncio.CancelledError("enough")
        asyncio.current_task().cancel("enough")  # type: ignore[union-attr] # it runs in a task

    task = eager_task(work())
    with pytest.raises(asyncio.CancelledError, match="enough"):
        await task
    assert task.cancelled()


async def test_an_error_outweighs_a_cancellation_in_the_first_step() -> None:
    async def work() -> None:
        asyncio.current_task().cancel()  # type: ignore[union-attr] # it runs in a task
        raise KeyError("stock")

    with pytest.raises(KeyError, match="stock"):
        await eager_task(work())


async def test_a_cancellation_in_the_first_step_reaches_the_first_wait_with_its_message() -> None:
    async def work() -> tuple[Any, ...]:
        asyncio.current_task().cancel("enough")  # type: ignore[union-attr] # it runs in a task
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError as error:
            return error.args
        return ()

    assert await eager_task(work()) == ("enough",)


async def test_a_coroutine_that_yields_something_else_fails() -> None:
    @types.coroutine
    def wait_for_nothing() -> Generator[int, None, None]:
        yield 5

    async def work() -> None:
        await wait_for_nothing()

    with pytest.raises(RuntimeError, match="bad yield: 5"):
        await eager_task(work())


async def test_what_took_the_task_of_a_coroutine_that_returned_at_once_gets_its_value() -> None:
    tasks: list[Any] = []

    async def work() -> str:
        tasks.append(asyncio.current_task())
        return "done"

    assert await eager_task(work()) == "done"
    assert await tasks[0] == "done"


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_an_end_of_the_process_in_the_first_step_ends_the_event_loop(end: type[BaseException]) -> None:
    async def work() -> None:
        raise end

    async def serve() -> None:
        await eager_task(work())

    with pytest.raises(end):
        asyncio.run(serve())
