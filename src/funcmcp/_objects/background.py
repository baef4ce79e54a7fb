"""Tasks that nobody else may hold.

An event loop does not hold its tasks. One that waits for an object that only its own server or client has is destroyed
together with them if nobody has closed them, so the code after its wait, such as the end of a lifespan, does not run.
A task that is held goes on until the event loop ends, which cancels it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from asyncio import Task

T = TypeVar("T")

_running: set[Task[Any]] = set()


def hold_until_done(task: Task[T]) -> Task[T]:
    """Hold *task* until it is done, and return it."""
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task
