"""Changes of what a server offers, and those who want to hear of them.

Source: 2026-07-28 "basic/patterns/subscriptions"; 2025-11-25 "server/resources, Subscriptions" and "List Changed
Notification" of every kind of feature.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp.state.bus import RESUMED, LocalBus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from funcmcp.state.bus import Bus, Message

_TOPIC = "changes"


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


LISTS = {"tools": TOOLS, "prompts": PROMPTS, "resources": RESOURCES}
"""By capability, the change of its list."""


class Listener:
    """One who listens, on the event loop that it is made on.

    A change that comes again before it was told is told once, so there never wait more changes than it wants.

    Args:
        wants: tells whether a change is wanted.
        missed: returns what to tell when changes may have been missed.
    """

    __slots__ = ("_closed", "_loop", "_missed", "_news", "_pending", "_wants")

    def __init__(self, wants: Callable[[Change], bool], missed: Callable[[], Iterable[Change]] = tuple) -> None:
        self._wants = wants
        self._missed = missed
        self._pending: dict[Change, None] = {}
        self._closed = False
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def hear(self, change: Change) -> None:
        """Take a change; from any thread."""
        if self._wants(change):
            self._pending[change] = None
            self._wake()

    def catch_up(self) -> None:
        """Take all that may have been missed."""
        self._pending.update(dict.fromkeys(self._missed()))
        self._wake()

    def take(self) -> list[Change]:
        """Return what waits to be told, and is still wanted, without waiting for more; it counts as told."""
        taken = [self._pending.popitem()[0] for _ in range(len(self._pending))]
        return [change for change in reversed(taken) if self._wants(change)]

    def forget(self, change: Change) -> None:
        """Tell a change no more: that was done elsewhere."""
        self._pending.pop(change, None)

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
    """Tells changes to all who listen, in this process and at the other instances of the server.

    Args:
        bus: leads to the other instances; by default there are none.
    """

    def __init__(self, bus: Bus | None = None) -> None:
        self._bus = bus or LocalBus()
        self._bus.subscribe(_TOPIC, lambda message: self._tell(Change(**message)))
        self._bus.subscribe(RESUMED, self._catch_up)
        self._listeners: dict[Listener, None] = {}
        self._closed = False

    async def ready(self) -> None:
        """Wait until changes of other instances arrive; see `Bus.ready`."""
        await self._bus.ready()

    def add(self, wants: Callable[[Change], bool], missed: Callable[[], Iterable[Change]] = tuple) -> Listener:
        """Begin to tell a listener the changes that it wants, and after a gap those that it may have missed."""
        listener = Listener(wants, missed)
        self._listeners[listener] = None
        if self._closed:
            listener.close()
        return listener

    def remove(self, listener: Listener) -> None:
        """Tell a listener nothing more."""
        self._listeners.pop(listener, None)

    @contextlib.contextmanager
    def listening(
        self, wants: Callable[[Change], bool], missed: Callable[[], Iterable[Change]] = tuple
    ) -> Iterator[Listener]:
        """Tell a listener what `add` says, for the length of a ``with`` block."""
        listener = self.add(wants, missed)
        try:
            yield listener
        finally:
            self.remove(listener)

    def publish(self, change: Change) -> None:
        """Tell a change; from any thread."""
        self._tell(change)
        self._bus.tell(_TOPIC, change._asdict())

    def close(self) -> None:
        """Tell all listeners that nothing more will come: the server is about to stop."""
        self._closed = True
        for listener in tuple(self._listeners):
            listener.close()

    def _tell(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            listener.hear(change)

    def _catch_up(self, _message: Message) -> None:
        for listener in tuple(self._listeners):
            listener.catch_up()

    def __len__(self) -> int:
        return len(self._listeners)
