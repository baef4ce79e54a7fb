"""The disconnect of a client, which cancels its request in the per-request era.

Source: 2026-07-28 "basic/transports": a client cancels a request by closing the connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._server.calls.alarms import Alarms
    from funcmcp._server.run import Run

T = TypeVar("T")

WATCH_DELAY = 0.1
"""Seconds for which a request runs unwatched: most requests end sooner than a watch pays off."""


class DisconnectWatch:
    """Cancels a run when the client disconnects.

    Args:
        run: The run.
        disconnected: Returns when the client has disconnected.
        alarms: Begin the watch.
    """

    __slots__ = ("_alarms", "_disconnected", "_task", "run")

    def __init__(self, run: Run, disconnected: Callable[[], Awaitable[None]], alarms: Alarms) -> None:
        self.run = run
        self._disconnected = disconnected
        self._alarms = alarms
        self._task: asyncio.Task[None] | None = None

    async def watch(self) -> None:
        """Wait until the client disconnects, and cancel the run."""
        await self._disconnected()
        self.run.cancel()

    async def during(self, work: Awaitable[T]) -> T:
        """Await something, and watch if that takes longer than `WATCH_DELAY`."""
        self._alarms.set(self._begin, WATCH_DELAY)
        try:
            return await work
        finally:
            self._alarms.cancel(self._begin)
            if self._task is not None:
                self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.create_task(self.watch())
