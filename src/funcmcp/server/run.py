"""One request under way, and the two ways in which it is stopped from outside: by its client, or by time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class RunCancelledError(Exception):
    """The client cancelled the request or left; nothing more may be sent for it."""


class Run:
    """Runs a coroutine in the current task in such a way that somebody else can cancel it."""

    __slots__ = ("_task", "cancelled")

    def __init__(self) -> None:
        self.cancelled = False
        self._task: asyncio.Task[object] | None = None

    def cancel(self) -> None:
        """Stop the run; `wait` raises RunCancelledError."""
        self.cancelled = True
        if self._task is not None:
            self._task.cancel()

    async def wait(self, work: Coroutine[object, object, T]) -> T:
        """Do the work and return its result."""
        task = self._task = asyncio.current_task()
        try:
            return await work
        except asyncio.CancelledError:
            if not self.cancelled or task is None:
                raise
            if task.uncancel() > 0:  # somebody else wants this task gone too
                raise
            raise RunCancelledError from None
        finally:
            self._task = None
