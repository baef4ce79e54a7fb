"""A signal to one coroutine that waits for it."""

from __future__ import annotations

import asyncio


class Wakeup:
    """Wakes the one coroutine that waits for it, which may limit the time.

    There is one for each open stream. An `asyncio.Event` with `asyncio.timeout` takes ten times the memory.
    """

    __slots__ = ("_is_set", "_waiter")

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: asyncio.Future[bool] | None = None

    def set(self) -> None:
        """Wake the coroutine, or let the next `wait` return at once."""
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(True)

    def clear(self) -> None:
        """Make the next `wait` wait for the next `set`."""
        self._is_set = False

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for `set`; return False if it is not called within this time."""
        if self._is_set:
            return True
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiter = waiter
        timer = None if seconds is None else loop.call_later(seconds, _expire, waiter)
        try:
            return await waiter
        finally:
            if timer is not None:
                timer.cancel()
            if self._waiter is waiter:
                self._waiter = None


def _expire(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
