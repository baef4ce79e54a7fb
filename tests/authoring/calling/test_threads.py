from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from funcmcp._authoring.calling.threads import CallThread, Threads
from tests.patience import PATIENCE

pytestmark = pytest.mark.every_python("Tasks, threads and timeouts are those of asyncio.")

WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("WHERE", default="nowhere")


async def soon(awaitable: Any) -> Any:
    return await asyncio.wait_for(awaitable, PATIENCE)


async def until(condition: Any) -> None:
    """Let the loop run until a condition holds."""

    async def turn() -> None:
        while not condition():  # noqa: ASYNC110 - what threads do sets no event of the loop
            await asyncio.sleep(0)

    await soon(turn())


async def test_a_function_runs_in_a_daemon_thread_with_the_caller_s_context() -> None:
    def where() -> tuple[bool, bool, str]:
        thread = threading.current_thread()
        seen = WHERE.get()
        WHERE.set("in the thread")
        return thread is threading.main_thread(), thread.daemon, seen

    WHERE.set("on the loop")
    assert await soon(Threads().run(where, {})) == (False, True, "on the loop")
    assert WHERE.get() == "on the loop"


async def test_an_idle_thread_is_used_again() -> None:
    threads = Threads()
    first = await soon(threads.run(threading.get_ident, {}))
    assert await soon(threads.run(threading.get_ident, {})) == first


async def test_an_exception_is_raised_where_the_call_is_awaited() -> None:
    def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await soon(Threads().run(fail, {}))


@pytest.mark.parametrize("error", [StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
async def test_an_exception_that_would_move_the_loop_does_not_reach_it(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError, match=error.__name__):
        await soon(Threads().run(fail, {}))


async def test_no_more_than_the_limit_run_at_once_and_all_have_their_turn() -> None:
    threads, lock, gate = Threads(limit=2), threading.Lock(), threading.Event()
    running, most = 0, 0

    def work(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        assert gate.wait(PATIENCE)
        with lock:
            running -= 1
        return number

    calls = asyncio.gather(*(threads.run(work, {"number": number}) for number in range(6)))
    await until(lambda: running == 2)
    gate.set()
    assert await soon(calls) == list(range(6))
    assert most == 2


async def test_a_call_that_is_given_up_frees_its_place_at_once() -> None:
    threads, gate = Threads(limit=1), threading.Event()
    stuck = asyncio.create_task(threads.run(gate.wait, {"timeout": PATIENCE}))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(threads.run(threading.get_ident, {}))
    await asyncio.sleep(0)
    assert not waiting.done()
    stuck.cancel()
    assert await soon(waiting)
    gate.set()


async def test_cancelled_calls_leave_a_bounded_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("funcmcp._authoring.calling.threads.MAX_ABANDONED", 2)
    threads = Threads(limit=2)
    go_on = threading.Event()
    begun: list[int] = []

    def block() -> bool:
        begun.append(threading.get_ident())
        return go_on.wait(PATIENCE)

    for number in range(1, 5):
        call = asyncio.ensure_future(threads.run(block, {}))
        await until(lambda number=number: len(begun) == number)
        call.cancel()
        await asyncio.wait([call])
    waiting = asyncio.ensure_future(threads.run(_three, {}))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    assert len({*begun}) == 4
    assert "2 cancelled calls still run in threads" in caplog.text
    go_on.set()
    assert await soon(waiting) == 3
    assert await soon(asyncio.gather(*(threads.run(_three, {}) for _ in range(10)))) == [3] * 10
    await until(lambda: not threads._unfinished)
    await until(lambda: threads._running == 0)
    assert threads._abandoned == 0


async def test_one_that_gives_up_waiting_leaves_the_queue() -> None:
    threads, gate = Threads(limit=1), threading.Event()
    first = asyncio.create_task(threads.run(gate.wait, {"timeout": PATIENCE}))
    await asyncio.sleep(0)
    second = asyncio.create_task(threads.run(threading.get_ident, {}))
    third = asyncio.create_task(threads.run(threading.get_ident, {}))
    await asyncio.sleep(0)
    second.cancel()
    gate.set()
    assert await soon(first)
    assert await soon(third)
    assert second.cancelled()


async def test_a_place_that_comes_as_its_caller_gives_up_goes_to_the_next() -> None:
    threads, gate = Threads(limit=1), threading.Event()

    async def give_up_both() -> None:
        try:
            await threads.run(gate.wait, {"timeout": PATIENCE})
        finally:
            second.cancel()  # it has the place by now, but could not take it yet

    first = asyncio.create_task(give_up_both())
    await asyncio.sleep(0)
    second = asyncio.create_task(threads.run(threading.get_ident, {}))
    third = asyncio.create_task(threads.run(threading.get_ident, {}))
    await asyncio.sleep(0)
    first.cancel()
    assert await soon(third)
    assert second.cancelled()
    gate.set()


async def test_a_thread_without_work_ends_after_a_while() -> None:
    threads = Threads(idle_seconds=0.01)
    thread = await soon(threads.run(threading.current_thread, {}))
    await asyncio.to_thread(thread.join, PATIENCE)
    assert not thread.is_alive()
    assert await soon(threads.run(threading.get_ident, {}))


async def test_no_more_threads_than_the_limit_stay_idle() -> None:
    threads, gate = Threads(limit=1), threading.Event()
    seen: list[threading.Thread] = []

    def work() -> None:
        seen.append(threading.current_thread())
        gate.wait(PATIENCE)

    for number in range(3):
        call = asyncio.create_task(threads.run(work, {}))
        await until(lambda wanted=number: len(seen) > wanted)
        call.cancel()
    gate.set()
    await until(lambda: sum(thread.is_alive() for thread in seen) == 1)


def test_a_thread_outlives_its_loop_without_harm() -> None:
    threads, gate, ended = Threads(), threading.Event(), threading.Event()

    def work() -> None:
        gate.wait(PATIENCE)
        ended.set()

    async def leave() -> None:
        call = asyncio.create_task(threads.run(work, {}))
        await asyncio.sleep(0)
        call.cancel()

    asyncio.run(leave())
    gate.set()
    assert ended.wait(PATIENCE)
    assert asyncio.run(threads.run(threading.get_ident, {}))


def test_a_thread_that_is_woken_just_when_its_time_is_up_does_not_end() -> None:
    class Late:
        """A lock that is released just after the time is up."""

        def __init__(self) -> None:
            self.timeouts: list[float] = []

        def acquire(self, timeout: float = -1) -> bool:
            self.timeouts.append(timeout)
            return len(self.timeouts) > 1

    threads, late, idle = Threads(idle_seconds=5), Late(), Late()
    assert threads._sleep(late)  # type: ignore[arg-type]
    assert late.timeouts == [5, -1]
    threads._idle.append(idle)  # type: ignore[arg-type]
    assert not threads._sleep(idle)  # type: ignore[arg-type]
    assert threads._idle == []


async def test_short_jobs_share_a_thread_and_jobs_that_block_get_one_each() -> None:
    threads = Threads(limit=8)
    short = await soon(asyncio.gather(*(threads.run(threading.get_ident, {}) for _ in range(8))))
    assert len(set(short)) < 8
    barrier = threading.Barrier(8)
    assert sorted(
        await soon(asyncio.gather(*(threads.run(barrier.wait, {"timeout": PATIENCE}) for _ in range(8))))
    ) == [*range(8)]


async def test_a_call_fails_if_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads = Threads()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        await soon(threads.run(threading.get_ident, {}))
    monkeypatch.undo()
    assert await soon(threads.run(threading.get_ident, {}))


async def test_one_thread_does_all_jobs_if_no_other_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def work() -> bool:
        started.set()
        return gate.wait(PATIENCE)

    threads, started, gate = Threads(), threading.Event(), threading.Event()
    first = asyncio.create_task(threads.run(work, {}))
    await until(started.is_set)
    threads._is_waking = True  # as if a second thread were on its way, so that these calls start none
    others = [asyncio.create_task(threads.run(threading.get_ident, {})) for _ in range(3)]
    await asyncio.sleep(0)
    threads._is_waking = False
    monkeypatch.setattr(threading.Thread, "start", refuse)
    gate.set()
    assert await soon(first)
    assert len(set(await soon(asyncio.gather(*others)))) == 1


def test_calls_of_several_event_loops_share_the_slots() -> None:
    threads = Threads(limit=2)
    barrier = threading.Barrier(4)

    async def main() -> list[Any]:
        await asyncio.to_thread(barrier.wait)
        return await asyncio.gather(*(threads.run(_three, {}) for _ in range(200)))

    with ThreadPoolExecutor() as pool:
        results = [future.result() for future in [pool.submit(asyncio.run, main()) for _ in range(4)]]
    assert results == [[3] * 200] * 4
    assert threads._running == 0


def test_a_slot_for_a_call_of_a_closed_loop_goes_to_the_next_one() -> None:
    threads = Threads(limit=1)
    may_end = threading.Event()
    abandoned: list[asyncio.Future[int]] = []

    async def abandon() -> None:
        """Wait for a slot in a loop that is closed before there is one."""
        abandoned.append(asyncio.ensure_future(threads.run(_three, {})))
        await asyncio.sleep(0)

    async def main() -> Any:
        running = asyncio.ensure_future(threads.run(may_end.wait, {}))
        await asyncio.sleep(0)
        loop = asyncio.new_event_loop()
        await asyncio.to_thread(loop.run_until_complete, abandon())
        loop.close()
        last = asyncio.ensure_future(threads.run(_three, {}))
        await asyncio.sleep(0)
        may_end.set()
        await running
        result = await last
        for task in abandoned:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        return result

    assert asyncio.run(main()) == 3


def _three() -> int:
    return 3


async def test_a_function_that_a_thread_waits_for_needs_no_slot() -> None:
    threads, loop = Threads(limit=2), asyncio.get_running_loop()
    both_run = threading.Barrier(2)

    def outer() -> Any:
        both_run.wait(PATIENCE)
        return asyncio.run_coroutine_threadsafe(threads.run(_three, {}), loop).result(PATIENCE)

    assert await soon(asyncio.gather(threads.run(outer, {}), threads.run(outer, {}))) == [3, 3]
    assert threads._running == 0


async def test_an_inner_function_that_is_given_up_releases_no_slot() -> None:
    threads, loop = Threads(limit=1), asyncio.get_running_loop()
    started, gate = threading.Event(), threading.Event()

    def inner() -> None:
        started.set()
        gate.wait(PATIENCE)

    def outer() -> str:
        future = asyncio.run_coroutine_threadsafe(threads.run(inner, {}), loop)
        assert started.wait(PATIENCE)
        future.cancel()
        return "given up"

    assert await soon(threads.run(outer, {})) == "given up"
    gate.set()
    await until(lambda: not threads._unfinished)
    assert (threads._running, threads._abandoned) == (0, 0)


async def test_all_functions_of_a_call_run_in_one_thread_and_one_slot() -> None:
    threads = Threads(limit=1)
    thread = CallThread(threads)
    first = await soon(thread.run(threading.get_ident, {}))
    waiting = asyncio.create_task(threads.run(threading.get_ident, {}))
    assert await soon(thread.run(threading.get_ident, {})) == first
    assert not waiting.done()
    thread.close()
    assert await soon(waiting)
    await until(lambda: threads._running == 0)


async def test_a_task_of_a_call_that_has_a_thread_waits_for_a_slot_of_its_own() -> None:
    threads = Threads(limit=1)
    thread = CallThread(threads)
    await thread.run(threading.get_ident, {})
    waiting = asyncio.create_task(threads.run(threading.get_ident, {}))
    await until(lambda: threads._waiting or waiting.done())
    assert not waiting.done()
    thread.close()
    assert await soon(waiting)


async def test_context_variables_pass_between_the_thread_of_a_call_and_the_loop() -> None:
    thread = CallThread(Threads())
    tokens: list[contextvars.Token[str]] = []

    def use() -> None:
        tokens.append(WHERE.set("in the thread"))

    def reset() -> str:
        seen = WHERE.get()
        WHERE.reset(tokens.pop())
        return seen

    WHERE.set("on the loop")
    assert await thread.run(WHERE.get, {}) == "on the loop"
    WHERE.set("later")
    assert await thread.run(WHERE.get, {}) == "later"
    await thread.run(use, {})
    assert WHERE.get() == "in the thread"
    assert await thread.run(reset, {}) == "in the thread"
    assert WHERE.get() == "later"
    await thread.run(use, {})
    thread.close()
    assert WHERE.get() == "later"


async def test_a_call_that_moves_to_another_task_ends_without_harm() -> None:
    thread = CallThread(Threads())
    await thread.run(_set_where, {})
    await asyncio.create_task(_close(thread))
    assert WHERE.get() == "in the thread"


async def test_a_call_that_is_given_up_passes_on_its_slot_and_its_thread_runs_what_is_left() -> None:
    threads = Threads(limit=1)
    thread = CallThread(threads)
    started, gate, closed = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        gate.wait(PATIENCE)

    call = asyncio.create_task(thread.run(work, {}))
    await until(started.is_set)
    call.cancel()
    await asyncio.wait([call])
    assert thread.is_abandoned
    thread.run_later(closed.set, {})
    thread.close()
    assert await soon(threads.run(_three, {})) == 3
    assert not closed.is_set()
    gate.set()
    await until(closed.is_set)
    await until(lambda: not threads._unfinished)


async def test_a_function_of_a_call_that_is_given_up_before_it_starts_does_not_run() -> None:
    threads, gate = Threads(limit=1), threading.Event()
    busy = asyncio.create_task(threads.run(gate.wait, {"timeout": PATIENCE}))
    await asyncio.sleep(0)
    thread = CallThread(threads)
    calls: list[int] = []
    call = asyncio.create_task(thread.run(lambda: calls.append(1), {}))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    gate.set()
    assert await soon(busy)
    thread.run_later(_three, {})
    thread.close()
    await until(lambda: threads._running == 0)
    assert calls == []


async def test_the_first_function_of_a_call_fails_if_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    thread = CallThread(Threads())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        await soon(thread.run(_three, {}))
    thread.close()


async def test_a_thread_of_a_call_that_has_run_nothing_ends_at_once() -> None:
    thread = CallThread(Threads())
    thread.close()
    assert not thread.has_started


async def _close(thread: CallThread) -> None:
    thread.close()


def _set_where() -> None:
    WHERE.set("in the thread")
