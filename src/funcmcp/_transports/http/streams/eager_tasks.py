"""Tasks that begin at once, in place of at the next turn of the event loop. Most runs end before they wait.

How it works: Python 3.12 has eager tasks. On Python 3.11 the first step of the coroutine runs in the name of its new
task, with the functions that asyncio has for this. The event loop resumes the task where the coroutine waits, so the
whole coroutine belongs to one task, with its time limits, its cancel scopes and its context variables. A coroutine that
ends with an error or a cancellation in its first step ends the task at the next turn, as that of any other task.

Source: Python's documentation, "asyncio, Extending" (task lifetime support).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


def eager_task(work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
    """Return a task whose coroutine has run up to its first wait; a future that is done if it returned before that."""
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    context = copy_context()
    begun = _Begun(work)
    task: asyncio.Task[T] = asyncio.Task(begun, loop=loop, context=context)
    outer = asyncio.current_task()
    _switch(loop, outer, task)
    try:
        context.run(begun.begin)
    finally:
        _switch(loop, task, outer)
    if not begun.has_returned or task._must_cancel:  # type: ignore[attr-defined] # noqa: SLF001 - by itself
        return task
    done: asyncio.Future[T] = loop.create_future()
    done.set_result(begun.value)
    return done


def _switch(loop: asyncio.AbstractEventLoop, left: asyncio.Task[Any] | None, entered: asyncio.Task[Any] | None) -> None:
    """Change the current task of an event loop."""
    if left is not None:
        asyncio._leave_task(loop, left)  # noqa: SLF001 - documented, in spite of its name
    if entered is not None:
        asyncio._enter_task(loop, entered)  # noqa: SLF001 - as above


class _Begun(Coroutine[Any, Any, T]):
    """A coroutine of which the first step runs before its task resumes it. The task gets the outcome of that step.

    Attributes:
        has_returned: Whether the first step was the last one, without an error.
        value: What it returned.
    """

    __slots__ = ("_error", "_is_ahead", "_waits_for", "_work", "has_returned", "value")

    value: T

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._waits_for: Any = None
        self._is_ahead = True
        self.has_returned = False

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the coroutine, such as ``cr_frame``, which libraries read."""
        return getattr(self._work, name)

    def __await__(self) -> NoReturn:
        raise TypeError("Only a task can run this.")

    def begin(self) -> None:
        """Run the coroutine up to its first wait."""
        try:
            self._waits_for = self._work.send(None)
        except StopIteration as stop:
            self.has_returned, self.value = True, stop.value
        except BaseException as error:  # noqa: BLE001 - the task raises it
            self._error = error
        if asyncio.isfuture(self._waits_for):
            self._waits_for._asyncio_future_blocking = False  # noqa: SLF001 - others may wait for it before the task

    def send(self, value: Any) -> Any:
        """Resume the coroutine; the first time return what it waits for."""
        if not self._is_ahead:
            return self._work.send(value)
        self._raise_outcome()
        return self._first_wait()

    def throw(self, *error: Any) -> Any:
        """Raise an exception in the coroutine. A cancellation first cancels what it waits for, as that of a task."""
        if not self._is_ahead:
            return self._work.throw(*error)
        if self.has_returned:
            raise error[0]
        self._raise_outcome()
        if asyncio.isfuture(self._waits_for) and self._waits_for.cancel(*error[0].args):
            return self._first_wait()
        return self._work.throw(*error)

    def close(self) -> None:
        """Close the coroutine."""
        self._work.close()

    def _raise_outcome(self) -> None:
        """End the task as the coroutine ended in its first step, if it did."""
        self._is_ahead = False
        if self.has_returned:
            raise StopIteration(self.value)
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _first_wait(self) -> Any:
        waits_for, self._waits_for = self._waits_for, None
        if asyncio.isfuture(waits_for):
            waits_for._asyncio_future_blocking = True  # noqa: SLF001 - a task accepts only what is awaited
        return waits_for
