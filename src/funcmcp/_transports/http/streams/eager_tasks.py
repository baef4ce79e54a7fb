"""Tasks that begin at once, in place of at the next turn of the event loop. Most runs end before they wait.

How it works: Python 3.12 has eager tasks. On Python 3.11 the first step of the coroutine runs in the name of its new
task, with the functions that asyncio has for this. The event loop resumes the task where the coroutine waits, so the
whole coroutine belongs to one task, with its time limits, its cancel scopes and its context variables.

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
    """Return a task whose coroutine has run up to its first wait; a future that is done if there was none."""
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    context = copy_context()
    begun = _Begun(work)
    task: asyncio.Task[T] = asyncio.Task(begun, loop=loop, context=context)
    done: asyncio.Future[T] = loop.create_future()
    outer = asyncio.current_task()
    _switch(loop, outer, task)
    try:
        context.run(begun.begin)
    except StopIteration as stop:
        done.set_result(stop.value)
    except BaseException as error:  # noqa: BLE001 - the future raises it
        done.set_exception(error)
    finally:
        _switch(loop, task, outer)
    return done if begun.has_ended else task


def _switch(loop: asyncio.AbstractEventLoop, left: asyncio.Task[Any] | None, entered: asyncio.Task[Any] | None) -> None:
    """Change the current task of an event loop."""
    if left is not None:
        asyncio._leave_task(loop, left)  # noqa: SLF001 - documented, in spite of its name
    if entered is not None:
        asyncio._enter_task(loop, entered)  # noqa: SLF001 - as above


class _Begun(Coroutine[Any, Any, T]):
    """A coroutine of which the first step runs before its task resumes it.

    Attributes:
        has_ended: Whether the first step was the last one.
    """

    __slots__ = ("_is_ahead", "_waits_for", "_work", "has_ended")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._waits_for: Any = None
        self._is_ahead = True
        self.has_ended = False

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the coroutine, such as ``cr_frame``, which libraries read."""
        return getattr(self._work, name)

    def __await__(self) -> NoReturn:
        raise TypeError("Only a task can run this.")

    def begin(self) -> None:
        """Run the coroutine up to its first wait; raise what ends it before."""
        try:
            self._waits_for = self._work.send(None)
        except BaseException:
            self.has_ended = True
            raise

    def send(self, value: Any) -> Any:
        """Resume the coroutine; the first time return what it waits for."""
        if self.has_ended:
            raise StopIteration
        if self._is_ahead:
            self._is_ahead = False
            return self._waits_for
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an exception in the coroutine. A cancellation first cancels what it waits for, as that of a task."""
        if self._is_ahead:
            self._is_ahead = False
            if self._waits_for is not None and self._waits_for.cancel():
                return self._waits_for
        return self._work.throw(*error)

    def close(self) -> None:
        """Close the coroutine."""
        self._work.close()
