"""One request under way: begun at once, and stopped from outside only if it has to wait for something."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

T = TypeVar("T")


def begin(work: Coroutine[Any, Any, T]) -> T | Waiting[T]:
    """Run a coroutine up to its first wait; return its result, or a `Waiting` to await if there was a wait.

    Most calls never wait for anything. They are done here, before time limits, watches for the client's leaving
    and the like have cost anything; nobody could have stopped them anyway.

    Raises:
        BaseException: whatever the coroutine raises before its first wait.
    """
    try:
        return Waiting(work, work.send(None))
    except StopIteration as stop:
        result: T = stop.value
        return result


class Waiting(Generic[T]):
    """A coroutine that has been run up to its first wait, in the task that it stays in. Await it for its result."""

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
            except BaseException as error:  # noqa: BLE001 - cancellation and all else belongs to the coroutine
                resume, value = self._work.throw, error
            try:
                waits_for = resume(value)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                value = (
                    None  # an exception would keep itself, and all that the coroutine held, until garbage collection
                )


class RunCancelledError(Exception):
    """The client cancelled the request or left; nothing more may be sent for it."""


class Run:
    """Waits for a coroutine in the current task in such a way that somebody else can cancel it."""

    __slots__ = ("_task", "cancelled")

    def __init__(self) -> None:
        self.cancelled = False
        self._task: asyncio.Task[object] | None = None

    def cancel(self) -> None:
        """Stop the run; `wait` raises RunCancelledError."""
        self.cancelled = True
        if self._task is not None:
            self._task.cancel()

    async def wait(self, work: Coroutine[Any, Any, T] | Waiting[T]) -> T:
        """Do the work and return its result."""
        task = self._task = asyncio.current_task()
        try:
            result = await work
        except asyncio.CancelledError:
            if not self.cancelled or task is None or task.uncancel() > 0:
                raise  # somebody else wants this task gone, perhaps too
            raise RunCancelledError from None
        finally:
            self._task = None
        self._check_wanted(task)
        return result

    def _check_wanted(self, task: asyncio.Task[object] | None) -> None:
        """Raise RunCancelledError if the work went on in spite of being cancelled: nobody wants its result."""
        if self.cancelled and task is not None:
            task.uncancel()
            raise RunCancelledError


def is_failure(error: BaseException) -> bool:
    """Return whether an exception is a failure of the code that ran, and not a cancellation from outside.

    All types count: libraries raise exceptions that don't derive from `Exception`, such as panics in Rust extensions.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return not isinstance(error, GeneratorExit)
