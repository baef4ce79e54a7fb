"""Changes of what a server offers, and those who want to hear of them.

Source: 2026-07-28 "basic/patterns/subscriptions"; 2025-11-25 "server/resources, Subscriptions" and "List Changed
Notification" of every kind of feature.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Change(NamedTuple):
    """One change: of the list of a kind of feature, or of the resource of a URI."""

    method: str
    uri: str | None = None

    @property
    def params(self) -> dict[str, Any]:
        """What its notification says."""
        return {} if self.uri is None else {"uri": self.uri}


TOOLS = Change("notifications/tools/list_changed")
PROMPTS = Change("notifications/prompts/list_changed")
RESOURCES = Change("notifications/resources/list_changed")


def updated(uri: str) -> Change:
    """Return the change of a resource."""
    return Change("notifications/resources/updated", uri)


class Listener:
    """One who listens, on the event loop that it is made on.

    A change that comes again before it was told is told once, so there never wait more changes than it wants.

    Args:
        wants: tells whether a change is wanted.
    """

    __slots__ = ("_closed", "_loop", "_news", "_pending", "_wants")

    def __init__(self, wants: Callable[[Change], bool]) -> None:
        self._wants = wants
        self._pending: dict[Change, None] = {}
        self._closed = False
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def hear(self, change: Change) -> None:
        """Take a change; from any thread."""
        if self._wants(change):
            self._pending[change] = None
            self._wake()

    def close(self) -> None:
        """Say that nothing more will come; from any thread."""
        self._closed = True
        self._wake()

    def __aiter__(self) -> Listener:
        return self

    async def __anext__(self) -> Change:
        """Wait for the next change; the last one is that before `close`."""
        while not self._pending:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        change = next(iter(self._pending))
        del self._pending[change]
        return change

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody listens any more
            self._loop.call_soon_threadsafe(self._news.set)


class Hub:
    """Tells changes to all who listen in this process."""

    def __init__(self) -> None:
        self._listeners: dict[Listener, None] = {}
        self._closed = False

    def add(self, wants: Callable[[Change], bool]) -> Listener:
        """Begin to tell a listener the changes that it wants."""
        listener = Listener(wants)
        self._listeners[listener] = None
        if self._closed:
            listener.close()
        return listener

    def remove(self, listener: Listener) -> None:
        """Tell a listener nothing more."""
        self._listeners.pop(listener, None)

    @contextlib.contextmanager
    def listening(self, wants: Callable[[Change], bool]) -> Iterator[Listener]:
        """Tell a listener the changes that it wants, for the length of a ``with`` block."""
        listener = self.add(wants)
        try:
            yield listener
        finally:
            self.remove(listener)

    def publish(self, change: Change) -> None:
        """Tell a change; from any thread."""
        for listener in tuple(self._listeners):
            listener.hear(change)

    def close(self) -> None:
        """Tell all listeners that nothing more will come: the server is about to stop."""
        self._closed = True
        for listener in tuple(self._listeners):
            listener.close()

    def __len__(self) -> int:
        return len(self._listeners)
