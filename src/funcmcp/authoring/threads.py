"""Threads for plain functions, so that a blocking one never holds up the event loop.

The threads are daemons: one that hangs must not keep the process from ending. A call that is given up (its time is up,
or its client has left) no longer counts, so others are not shut out by functions that hang; its thread ends by itself
when the function returns.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    Job: TypeAlias = tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]]

T = TypeVar("T")

MAX_THREADS = 64
_KEPT_IDLE = 16


class _Worker(Thread):
    """Runs one call after another until it is told to stop."""

    def __init__(self, pool: ThreadPool) -> None:
        super().__init__(name="funcmcp worker", daemon=True)
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._pool = pool

    def run(self) -> None:
        """Take calls from the queue."""
        while (job := self.jobs.get()) is not None:
            loop, future, call = job
            try:
                outcome: tuple[Any, BaseException | None] = (call(), None)
            except BaseException as error:  # noqa: BLE001 - it belongs to the caller, who waits for it
                outcome = (None, error)
            if loop.is_closed():
                return
            try:
                loop.call_soon_threadsafe(self._pool.finish, self, future, *outcome)
            except RuntimeError:  # the loop was closed just now: nobody waits any more
                return


class ThreadPool:
    """Threads that are made when needed and kept for the next call.

    Args:
        limit: how many calls may run at once; more wait for their turn.
    """

    def __init__(self, limit: int = MAX_THREADS) -> None:
        self._limit = limit
        self._running = 0
        self._idle: deque[_Worker] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def run(self, function: Callable[..., T], arguments: dict[str, Any]) -> T:
        """Call a function in a thread, with this task's context variables; return or raise what it does."""
        loop = asyncio.get_running_loop()
        while self._running >= self._limit:
            turn = loop.create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake_next()
                raise
        future: asyncio.Future[T] = loop.create_future()
        context = copy_context()
        worker = self._idle.pop() if self._idle else self._hire()
        self._running += 1
        worker.jobs.put((loop, future, lambda: context.run(function, **arguments)))
        try:
            return await future
        finally:
            self._running -= 1
            self._wake_next()

    def finish(self, worker: _Worker, future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        """Hand the outcome to the caller, if it still waits, and keep the thread for the next call."""
        if len(self._idle) < _KEPT_IDLE:
            self._idle.append(worker)
        else:
            worker.jobs.put(None)
        if future.done():
            return
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration):
            future.set_exception(RuntimeError("The function raised StopIteration."))
        else:
            future.set_exception(error)

    def _hire(self) -> _Worker:
        worker = _Worker(self)
        worker.start()
        return worker

    def _wake_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
