"""Worker threads for plain functions, so that a blocking tool does not block the event loop.

How it works: a call takes a slot, of which there are *limit*. If none is free, it waits in `_waiting` until a call that
ends passes on its slot. With a slot, it adds its job to `_jobs`. While there are jobs, one thread is on its way to take
one (`_is_waking`): the thread that became idle last, or a new one. When it takes a job and others remain, it wakes the
next thread. So each job soon has a thread, even if all of them block; and where they are short, one thread runs many
jobs, and few threads have to wake up. An idle thread ends after *idle_seconds*.

The calls may come from several event loops, each in a thread of its own, so a lock guards the slots as well. A waiting
call of another loop gets its slot through that loop.

A call that times out or is cancelled releases its slot at once, although its thread may still run: functions that hang
can't use up the slots. Of such threads there are `MAX_ABANDONED` at most, so that callers who cancel can't use up the
memory: further calls keep their slots until their threads return. The threads are daemon threads, so that one that
hangs does not keep the process alive.

A function that a thread with a slot waits for, such as that of `Context.once` in a plain tool, needs no slot of its
own. Otherwise, if all slots belonged to threads that wait for such functions, none of them would ever end.

Objects such as connections of sqlite3 belong to the thread that made them. A call that needs such objects has a
`CallThread`: it takes a thread with the first function, and keeps it until it is closed.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from contextlib import suppress
from contextvars import ContextVar
from enum import Enum, auto
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

Job: TypeAlias = "tuple[contextvars.Context, Callable[..., Any], Mapping[str, Any], asyncio.Future[Any]]"

MAX_ABANDONED = 256
"""Threads whose calls have ended before them, and which need no slot."""

_log = logging.getLogger("funcmcp")

_LOOP_ONLY = (StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
"""Exceptions that control the event loop. A function's exception of these types must not be raised there."""


_slot_of: ContextVar[Threads | None] = ContextVar("slot_of", default=None)
"""The threads of which the current code holds a slot."""

_NO_VALUE: Any = object()
"""Stands for the value of a context variable that has none."""


class _Slot(Enum):
    """Who releases the slot of a thread that runs."""

    OF_CALL = auto()
    RELEASED = auto()
    KEPT = auto()


class Threads:
    """A bounded number of worker threads, for all event loops of a server.

    Args:
        limit: The number of calls that may run at once. Further calls wait.
        idle_seconds: The time after which an idle thread ends.
    """

    def __init__(self, limit: int = 64, idle_seconds: float = 30.0) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._lock = Lock()  # for the next seven attributes
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._jobs: deque[Job] = deque()
        self._idle: list[Lock] = []  # each of them is released to wake a thread
        self._is_waking = False
        self._unfinished: dict[asyncio.Future[Any], _Slot] = {}
        self._abandoned = 0

    async def run(self, function: Callable[..., T], kwargs: Mapping[str, Any]) -> T:
        """Call a function in a thread, with a copy of the caller's context variables, and return its result."""
        loop = asyncio.get_running_loop()
        needs_slot = _slot_of.get() is not self
        slot = self._take_slot(loop) if needs_slot else None
        if slot is not None:
            await self._wait_for(slot)
        context = contextvars.copy_context()
        context.run(_slot_of.set, self)
        future: asyncio.Future[T] = loop.create_future()
        try:
            self._submit((context, function, kwargs, future))
            return await future
        finally:
            if needs_slot and self._may_release(future):
                self._release()

    def _may_release(self, future: asyncio.Future[Any]) -> bool:
        """Return whether a call that has ended releases its slot; otherwise its thread does."""
        with self._lock:
            if future not in self._unfinished:
                return True
            if self._abandoned < MAX_ABANDONED:
                self._abandoned += 1
                self._unfinished[future] = _Slot.RELEASED
                return True
            self._unfinished[future] = _Slot.KEPT
        _log.warning("%s cancelled calls still run in threads. Further calls wait for them.", MAX_ABANDONED)
        return False

    def _note_end(self, future: asyncio.Future[Any]) -> bool:
        """Note that a thread has returned; return whether it has to release the slot. The caller holds the lock."""
        slot = self._unfinished.pop(future)
        self._abandoned -= slot is _Slot.RELEASED
        return slot is _Slot.KEPT

    def _take_slot(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None] | None:
        """Take a free slot, or return a future that is done when a call that ends passes on its slot."""
        with self._lock:
            if self._running < self._limit:
                self._running += 1
                return None
            slot: asyncio.Future[None] = loop.create_future()
            self._waiting.append(slot)
            return slot

    async def _wait_for(self, slot: asyncio.Future[None]) -> None:
        try:
            await slot
        except asyncio.CancelledError:
            if not slot.cancelled():
                self._release()  # the slot arrived together with the cancellation
            raise

    def _release(self) -> None:
        """Pass on the slot of a call that has ended, or make it free."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                slot = self._waiting.popleft()
            with suppress(RuntimeError):  # the loop of the waiting call is closed
                slot.get_loop().call_soon_threadsafe(self._grant, slot)
                return

    def _grant(self, slot: asyncio.Future[None]) -> None:
        """Give a slot to a call of this event loop, or to the next one if that has ended."""
        if slot.done():
            self._release()
        else:
            slot.set_result(None)

    def _submit(self, job: Job) -> None:
        """Add a job; raise RuntimeError if it needs a new thread that can't be started."""
        future = job[3]
        with self._lock:
            self._jobs.append(job)
            self._unfinished[future] = _Slot.OF_CALL
            try:
                self._wake()
            except RuntimeError:
                self._jobs.pop()
                del self._unfinished[future]
                raise

    def _wake(self) -> None:
        """Wake or start a thread, unless one is on its way. The caller holds the lock."""
        if self._is_waking:
            return
        if self._idle:
            self._idle.pop().release()
        else:
            Thread(target=self._work, name="funcmcp-tool", daemon=True).start()
        self._is_waking = True

    def _work(self) -> None:
        """Run jobs until none arrives for `idle_seconds`."""
        wakeup = Lock()
        wakeup.acquire()
        job = self._next_job(wakeup, is_on_its_way=True)
        while True:
            if job is not None:
                outcome = _do(job)
                with self._lock:
                    keeps_slot = self._note_end(outcome[0])
                if keeps_slot:
                    self._release()
                job = self._next_job(wakeup)  # before the result is set, so that the next call finds this thread idle
                with suppress(RuntimeError):  # the loop is closed, so no call waits any more
                    outcome[0].get_loop().call_soon_threadsafe(_settle, *outcome)
                del outcome  # so that an idle thread holds no references
            elif self._sleep(wakeup):
                job = self._next_job(wakeup, is_on_its_way=True)
            else:
                return

    def _next_job(self, wakeup: Lock, *, is_on_its_way: bool = False) -> Job | None:
        """Take the next job, and wake another thread for those behind it; without a job, become idle.

        Args:
            wakeup: The lock of this thread.
            is_on_its_way: Whether this is the thread that was woken or started.
        """
        with self._lock:
            if is_on_its_way:
                self._is_waking = False
            if not self._jobs:
                self._idle.append(wakeup)
                return None
            job = self._jobs.popleft()
            if self._jobs:
                with suppress(RuntimeError):  # no thread can be started: this one takes the next job after its own
                    self._wake()
            return job

    def _sleep(self, wakeup: Lock) -> bool:
        """Wait to be woken; return False if nothing comes for `idle_seconds`, or if enough other threads are idle."""
        seconds = self._idle_seconds if len(self._idle) <= self._limit else 0
        if wakeup.acquire(timeout=seconds):
            return True
        with self._lock:
            if wakeup in self._idle:
                self._idle.remove(wakeup)
                return False
        return wakeup.acquire()  # a job came at the same moment


class CallThread:
    """A worker thread that a call keeps for several functions.

    Context variables that code of the call sets in the event loop are also set for the functions. Those that a function
    sets are also set in the event loop, until the thread is closed.

    Args:
        threads: The threads of which the call takes one.

    Attributes:
        has_started: Whether the call has taken a thread.
        is_abandoned: Whether the call has ended before a function of it. Its thread then continues without the call.
    """

    __slots__ = (
        "_context",
        "_jobs",
        "_loop",
        "_serving",
        "_synchronized",
        "_threads",
        "_tokens",
        "_waits_for",
        "has_started",
        "is_abandoned",
    )

    _context: contextvars.Context
    _jobs: SimpleQueue[Job | None]
    _loop: asyncio.AbstractEventLoop
    _synchronized: dict[ContextVar[Any], Any]
    _serving: asyncio.Task[None]
    _waits_for: asyncio.Future[Any]

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._tokens: list[contextvars.Token[Any]] = []
        self.has_started: bool = False
        self.is_abandoned: bool = False

    async def run(self, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a function in the thread, after those of earlier calls of this method, and return its result."""
        if not self.has_started:
            self._start()
        self._pass_on_variables()
        self._waits_for = self._submit(function, kwargs)
        try:
            return await self._waits_for
        except (asyncio.CancelledError, GeneratorExit):
            self.is_abandoned = True
            raise
        finally:
            if not self.is_abandoned:
                self._take_over_variables()

    def run_later(self, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
        """Call a function in the thread when it has ended what it runs. It must not raise exceptions."""
        self._submit(function, kwargs)

    def close(self) -> None:
        """End the thread after what it runs. Release its slot at once if the call does not wait for that."""
        if not self.has_started:
            return
        self._jobs.put(None)
        if self.is_abandoned:
            self._serving.cancel()
        for token in reversed(self._tokens):
            with suppress(ValueError):  # the call has moved to a task with a copy of the context variables
                token.var.reset(token)

    def _start(self) -> None:
        self.has_started = True
        self._loop = asyncio.get_running_loop()
        self._jobs = SimpleQueue()
        self._context = contextvars.copy_context()
        self._context.run(_slot_of.set, self._threads)
        self._synchronized = dict(self._context)
        self._serving = self._loop.create_task(self._threads.run(self._serve, {}))
        self._serving.add_done_callback(self._note_end)

    def _note_end(self, serving: asyncio.Task[None]) -> None:
        """End the wait of the call if the thread could not be started."""
        if not serving.cancelled() and (error := serving.exception()) is not None and not self._waits_for.done():
            self._waits_for.set_exception(error)

    def _submit(self, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put((self._context, function, kwargs, future))
        return future

    def _serve(self) -> None:
        """Run the functions in the thread, until it is closed."""
        while (job := self._jobs.get()) is not None:
            if not job[3].cancelled():
                outcome = _do(job)
                with suppress(RuntimeError):  # the loop is closed, so no call waits any more
                    outcome[0].get_loop().call_soon_threadsafe(_settle, *outcome)
                del outcome
            del job  # so that a thread that waits holds no references

    def _pass_on_variables(self) -> None:
        """Set for the functions in the thread what code in the event loop has set."""
        for variable, value in contextvars.copy_context().items():
            if value is not self._synchronized.get(variable, _NO_VALUE):
                self._context.run(variable.set, value)
                self._synchronized[variable] = value

    def _take_over_variables(self) -> None:
        """Set in the event loop what a function in the thread has set."""
        for variable, value in self._context.items():
            if value is not self._synchronized.get(variable, _NO_VALUE):
                self._tokens.append(variable.set(value))
                self._synchronized[variable] = value


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
