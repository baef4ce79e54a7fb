"""Worker threads for plain functions, so that a blocking tool never holds up the event loop.

They are daemon threads: one that hangs does not keep the process from ending. A call whose caller has gone away
(time limit, cancellation) no longer counts, so hanging functions can't use up all places.
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
"""Exceptions that mean something to the event loop, and so must not be raised there on a function's behalf."""


class Threads:
    """A bounded number of worker threads, for one event loop at a time.

    Args:
        limit: how many calls may run at once; further ones wait for their turn.
        idle_seconds: how long a thread without work lives.
    """

    def __init__(self, limit: int = 64, idle_seconds: float = 30.0) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._running = 0
        self._idle: list[SimpleQueue[Job]] = []
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def run(self, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a function in a thread, in a copy of the caller's context variables, and return what it returns."""
        loop = asyncio.get_running_loop()
        if self._running < self._limit:
            self._running += 1
        else:
            await self._turn(loop)
        future: asyncio.Future[Any] = loop.create_future()
        try:
            self._worker().put((contextvars.copy_context(), function, kwargs, future))
            return await future
        finally:
            self._release()

    async def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until a finished call hands over its place."""
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._release()  # the place came at the same moment
            raise

    def _release(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
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
        """Do jobs until none has come for a while, or enough other threads wait for some."""
        while True:
            try:
                job = jobs.get(timeout=self._idle_seconds)
            except Empty:
                with suppress(ValueError):  # somebody took this thread from the list just now: its job is on the way
                    self._idle.remove(jobs)
                    return
                continue
            outcome, loop = _do(job), job[3].get_loop()
            del job  # an idle thread keeps nothing alive
            stays = len(self._idle) < self._limit
            if stays:
                self._idle.append(jobs)  # before the answer is handed over, so that the next call finds this thread
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(_settle, *outcome)
            del outcome
            if not stays:
                return


def _do(job: Job) -> tuple[asyncio.Future[Any], Any, BaseException | None]:
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
        return  # the call was given up
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
