"""Gates that hold calls in the middle, so that tests see them arrive, let them go and see how they end."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tests.patience import PATIENCE

Moment: TypeAlias = Literal["arrived", "left", "cancelled"]


@dataclass
class Gates:
    """Where calls stand, by key.

    Attributes:
        stuck: opens the plain functions that block their thread.
    """

    stuck: threading.Event = field(default_factory=threading.Event)
    _events: dict[tuple[Moment, str], threading.Event] = field(default_factory=dict)
    _held: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Event]] = field(default_factory=dict)

    async def hold(self, key: str) -> None:
        """Wait until the test opens the gate; tell what became of the call."""
        gate = asyncio.Event()
        self._held[key] = (asyncio.get_running_loop(), gate)
        self._event("arrived", key).set()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            self._event("cancelled", key).set()
            raise
        self._event("left", key).set()

    def open(self, key: str) -> None:
        """Let a call go on."""
        loop, gate = self._held[key]
        loop.call_soon_threadsafe(gate.set)

    def wait(self, moment: Moment, key: str) -> None:
        """Wait until a call has arrived, left or been cancelled; fail after a while."""
        assert self._event(moment, key).wait(PATIENCE), f"the call {key!r} never {moment}"

    async def seen(self, moment: Moment, key: str) -> None:
        """Wait as `wait` does, without holding the loop."""
        await asyncio.to_thread(self.wait, moment, key)

    def was(self, moment: Moment, key: str) -> bool:
        """Tell whether it has happened so far."""
        return self._event(moment, key).is_set()

    def _event(self, moment: Moment, key: str) -> threading.Event:
        return self._events.setdefault((moment, key), threading.Event())
