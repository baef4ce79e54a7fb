"""The disconnect of a client, which cancels its request in the per-request era.

Source: 2026-07-28 "basic/transports": a client cancels a request by closing the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from funcmcp._protocol.replies import Reply
    from funcmcp._server.run import Run, Waiting

WATCH_DELAY = 0.1
"""Seconds for which a request runs unwatched: most requests end sooner than a watch pays off."""


class DisconnectWatch:
    """Cancels a run when the client disconnects.

    Args:
        run: The run.
        disconnected: Returns when the client has disconnected.
    """

    __slots__ = ("_disconnected", "run")

    def __init__(self, run: Run, disconnected: Callable[[], Awaitable[None]]) -> None:
        self.run = run
        self._disconnected = disconnected

    async def watch(self) -> None:
        """Wait until the client disconnects, and cancel the run."""
        await self._disconnected()
        self.run.cancel()

    async def answer(self, work: Waiting[Reply]) -> Reply:
        """Wait for the answer to a request without a stream.

        Raises:
            RunCancelledError: The client disconnected before.
        """
        with self.later():
            return await self.run.wait(work)

    @contextlib.contextmanager
    def later(self) -> Iterator[None]:
        """Watch during a ``with`` block that lasts longer than `WATCH_DELAY`."""
        tasks: list[asyncio.Task[None]] = []
        timer = asyncio.get_running_loop().call_later(
            WATCH_DELAY, lambda: tasks.append(asyncio.ensure_future(self.watch()))
        )
        try:
            yield
        finally:
            timer.cancel()
            for task in tasks:
                task.cancel()
