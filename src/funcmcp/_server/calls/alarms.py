"""Functions that are called when a request has waited for some time, with one timer for all of them.

How it works: a request that waits has a time limit (minutes), comments for a client that gets nothing (15 seconds) and
a watch for its disconnect (0.1 seconds). Nearly all requests end before that. So the timer of a request first expires
after `FIRST_SECONDS`, or earlier if a function is due earlier, and what is due next is decided when it expires. A
request that ends soon costs one timer, whatever waits for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_SECONDS = 0.1
"""After how long the timer first expires. It is the shortest time that requests are given in their usual course."""

_RESOLUTION = 0.001
"""By how much a timer may expire early. uvloop counts in milliseconds."""


class Alarms:
    """Calls functions at their times. Each function has one time; they must not raise exceptions."""

    __slots__ = ("_expires", "_functions", "_loop", "_timer")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._functions: dict[Callable[[], object], float] = {}
        self._expires = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def set(self, function: Callable[[], object], seconds: float) -> None:
        """Call a function after some time, and no more at the time that was set for it before."""
        self.set_at(function, self._loop.time() + seconds)

    def set_at(self, function: Callable[[], object], when: float) -> None:
        """Do as `set`, at a time in the clock of the event loop."""
        self._functions[function] = when
        if self._timer is None:
            self._start(min(when, self._loop.time() + FIRST_SECONDS))
        elif when < self._expires:
            self._start(when)

    def cancel(self, function: Callable[[], object]) -> None:
        """Do not call a function, if it has a time."""
        self._functions.pop(function, None)
        if not self._functions and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._expires = when
        self._timer = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        """Call the functions that are due, and start the timer for the next one."""
        self._timer = None
        now = self._loop.time() + _RESOLUTION
        for function, when in list(self._functions.items()):
            if when <= now and self._functions.pop(function, None) is not None:
                function()
        if self._functions:
            self._start(min(self._functions.values()))
