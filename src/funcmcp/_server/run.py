"""Runs of coroutines that finish at once if they never wait, and that can be cancelled if they do.

How it works: `begin` runs a coroutine up to its first wait, without a task of its own. Most calls end there. Only a
coroutine that waits gets a `Run`, which another task can cancel, a time limit, and a watch for the client's disconnect.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from funcmcp._server.exception_groups import meaning_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

T = TypeVar("T")


_RAISED_GENERATOR_EXIT = "The function raised GeneratorExit."
"""The failure of work that raised GeneratorExit itself. Otherwise the exception means that the work is closed."""


_NO_ASYNCIO = (
    "funcmcp needs a running event loop of asyncio. trio is not supported: run the program with asyncio.run(main()) or "
    "anyio.run(main), and set the fixture anyio_backend to 'asyncio' in tests."
)


def require_asyncio() -> None:
    """Raise RuntimeError unless an event loop of asyncio runs, as under trio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(_NO_ASYNCIO) from None


def begin(work: Coroutine[Any, Any, T]) -> T | Waiting[T]:
    """Run a coroutine up to its first wait; return its result, or a `Waiting` to await if there was a wait.

    Most calls never wait. They end here, before a time limit or a watch for the client's disconnect costs anything.
    Nothing could cancel them anyway.

    Raises:
        RuntimeError: The coroutine raised GeneratorExit.
        BaseException: The coroutine raised it before its first wait.
    """
    try:
        return Waiting(work, work.send(None))
    except StopIteration as stop:
        result: T = stop.value
        return result
    except GeneratorExit as error:
        raise RuntimeError(_RAISED_GENERATOR_EXIT) from error


class Waiting(Generic[T]):
    """A coroutine that has run up to its first wait, in the task in which it stays. Await it for its result."""

    __slots__ = ("_waits_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], waits_for: Any) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        waits_for = self._waits_for
        while True:
            resume: Callable[[Any], Any] = self._work.send
            try:
                value = yield waits_for
            except BaseException as error:  # noqa: BLE001 - the coroutine gets each exception, cancellation included
                resume, value = self._work.throw, error
            try:
                waits_for = resume(value)
            except StopIteration as stop:
                result: T = stop.value
                return result
            except GeneratorExit as error:
                if isinstance(value, GeneratorExit):  # the work is closed from outside
                    raise
                raise RuntimeError(_RAISED_GENERATOR_EXIT) from error
            finally:
                # An exception in a local variable refers to itself through its traceback. It would keep the
                # coroutine's objects alive until the next garbage collection.
                value = None


class RunCancelledError(Exception):
    """The client cancelled the request or disconnected; nothing more may be sent for it."""


class Run:
    """A coroutine that is awaited in the current task and that another task can cancel.

    Attributes:
        cancelled: Whether `cancel` was called.
        clean_ups: Clean-ups of services that are under way. A cancellation does not interrupt them: it would leave
            what they close open.
    """

    __slots__ = ("_has_cancelled_task", "_task", "cancelled", "clean_ups")

    def __init__(self) -> None:
        self.cancelled: bool = False
        self.clean_ups: int = 0
        self._has_cancelled_task = False
        self._task: asyncio.Task[object] | None = None

    def cancel(self) -> None:
        """Stop the run, unless it cleans up; `wait` raises RunCancelledError."""
        self.cancelled = True
        if self._task is not None and not self.clean_ups:
            self._has_cancelled_task = True
            self._task.cancel()

    async def wait(self, work: Coroutine[Any, Any, T] | Waiting[T]) -> T:
        """Await the work and return its result; raise RunCancelledError if `cancel` was called."""
        task = self._task = asyncio.current_task()
        outer = current_run.get()
        current_run.set(self)
        try:
            result = await work
        except asyncio.CancelledError:
            if not self.cancelled or task is None or task.uncancel() > 0:
                raise  # cancelled from outside as well as by the client
            raise RunCancelledError from None
        finally:
            self._task = None
            current_run.set(outer)
        self._raise_if_cancelled(task)
        return result

    def _raise_if_cancelled(self, task: asyncio.Task[object] | None) -> None:
        """Raise RunCancelledError if the work ignored its cancellation: its result must not be sent."""
        if self.cancelled and task is not None:
            if self._has_cancelled_task:
                task.uncancel()
            raise RunCancelledError


current_run: ContextVar[Run | None] = ContextVar("current_run", default=None)
"""The run that the current code is a part of; None if nothing can cancel it."""


def is_failure(error: BaseException) -> bool:
    """Return whether an exception is a failure of the code that ran, and not a cancellation from outside.

    All types count: libraries raise exceptions that don't derive from `Exception`, such as panics in Rust extensions.
    """
    error = meaning_of(error)
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return not isinstance(error, GeneratorExit)
