"""Worker threads for plain functions, so that a blocking tool does not block the event loop.

How it works: a call takes a slot, of which there are *limit*. If none is free, it waits in `_waiting` until a call that
ends passes on its slot. With a slot, it puts its job into the queue of an idle thread, or of a new thread. Each thread
has a queue of its own, so the next job goes to the thread that became idle last. The thread runs the job, adds its
queue to `_idle`, and then sets the result in the event loop. An idle thread ends after *idle_seconds*.

A call that times out or is cancelled releases its slot at once, although its thread may still run: functions that hang
can't use up the slots. The threads are daemon threads, so that one that hangs does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Job: TypeAlias = "tuple[contextvars.Context, Callable[..., Any], Mapping[str, Any], asyncio.Future[Any]]"

_LOOP_ONLY = (StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
"""Exceptions that control the event loop. A function's exception of these types must not be raised there."""


class Threads:
    """A bounded number of worker threads, for one event loop at a time.

    Args:
        limit: The number of calls that may run at once. Further calls wait.
        idle_seconds: The time after which an idle thread ends.
    """

    def __init__(self, limit: int = 64, idle_seconds: float = 30.0) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._running = 0
        self._idle: list[SimpleQueue[Job]] = []
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def run(self, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a function in a thread, with a copy of the caller's context variables, and return its result."""
        loop = asyncio.get_running_loop()
        if self._running < self._limit:
            self._running += 1
        else:
            await self._wait_for_slot(loop)
        future: asyncio.Future[Any] = loop.create_future()
        try:
            self._worker().put((contextvars.copy_context(), function, kwargs, future))
            return await future
        finally:
            self._release()

    async def _wait_for_slot(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until a call that ends passes on its slot."""
        slot: asyncio.Future[None] = loop.create_future()
        self._waiting.append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if not slot.cancelled():
                self._release()  # the slot arrived together with the cancellation
            raise

    def _release(self) -> None:
        while self._waiting:
            slot = self._waiting.popleft()
            if not slot.done():
                slot.set_result(None)
                return
        self._running -= 1

    def _worker(self) -> SimpleQueue[Job]:
        try:
            return self._idle.pop()
        except IndexError:
            jobs: SimpleQueue[Job] = SimpleQueue()
            Thread(target=self._work, args=(jobs,), name="funcmcp-tool", daemon=True).start()
            return jobs

    def _work(self, jobs: SimpleQueue[Job]) -> None:
        """Run jobs until none arrives for `idle_seconds`, or until there are enough idle threads."""
        while True:
            try:
                job = jobs.get(timeout=self._idle_seconds)
            except Empty:
                with suppress(ValueError):  # another call took this queue at the same moment, and puts a job into it
                    self._idle.remove(jobs)
                    return
                continue
            loop = job[3].get_loop()
            outcome = _do(job)
            del job  # so that an idle thread holds no references
            stays_idle = len(self._idle) < self._limit
            if stays_idle:
                self._idle.append(jobs)  # before the result is set, so that the next call finds this thread
            with suppress(RuntimeError):  # the loop is closed, so no call waits any more
                loop.call_soon_threadsafe(_settle, *outcome)
            del outcome
            if not stays_idle:
                return


def _do(job: Job) -> tuple[asyncio.Future[Any], Any, BaseException | None]:
    """Run a job, and return its future, its result and its exception."""
    context, function, kwargs, future = job
    try:
        return future, context.run(function, **kwargs), None
    except _LOOP_ONLY as error:
        failure = RuntimeError(f"The function raised {type(error).__name__}.")
        failure.__cause__ = error
        return future, None, failure
    except BaseException as error:  # noqa: BLE001 - everything else is raised where the call is awaited
        return future, None, error


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return  # the call has timed out or was cancelled
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
