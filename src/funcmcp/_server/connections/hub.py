"""Changes of lists and resources, and their listeners.

How it works: a change that this process publishes goes to its own listeners and over the bus to those of the other
instances. A listener keeps each pending change once, so its memory is bounded by the changes that it subscribed to.
After a gap in the connection to the other instances, each listener gets everything that it may have missed.

Source: 2026-07-28 "basic/patterns/subscriptions"; 2025-11-25 "server/resources, Subscriptions" and "List Changed
Notification" of every kind of feature.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._server.wakeup import Wakeup
from funcmcp._state.bus import RESUMED, LocalBus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from funcmcp._state.bus import Bus, Message

_TOPIC = "changes"


class Change(NamedTuple):
    """The change of a list, or of the resource with a URI."""

    method: str
    uri: str | None = None

    @property
    def params(self) -> dict[str, Any]:
        """The params of its notification."""
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
    """A listener on the event loop on which it is made.

    A change that is published again before the listener takes it is pending once.

    Args:
        wants: Returns whether the listener subscribed to a change.
        missed: Returns all changes that the listener may have missed during a gap.
    """

    __slots__ = ("_arrived", "_closed", "_loop", "_missed", "_pending", "_wants")

    def __init__(self, wants: Callable[[Change], bool], missed: Callable[[], Iterable[Change]] = tuple) -> None:
        self._wants = wants
        self._missed = missed
        self._pending: dict[Change, None] = {}
        self._closed = False
        self._arrived = Wakeup()
        self._loop = asyncio.get_running_loop()

    def receive(self, change: Change) -> None:
        """Add a change, unless the listener did not subscribe to it. Can be called from any thread."""
        if self._wants(change):
            self._pending[change] = None
            self._wake()

    def catch_up(self) -> None:
        """Add all changes that may have been missed."""
        self._pending.update(dict.fromkeys(self._missed()))
        self._wake()

    def take(self) -> list[Change]:
        """Remove the pending changes and return those that are still subscribed to, without waiting."""
        changes = [self._pending.popitem()[0] for _ in range(len(self._pending))]
        return [change for change in reversed(changes) if self._wants(change)]

    def forget(self, change: Change) -> None:
        """Remove a pending change, because another instance has notified the client."""
        self._pending.pop(change, None)

    def close(self) -> None:
        """End the iteration after the pending changes. Can be called from any thread."""
        self._closed = True
        self._wake()

    def __aiter__(self) -> Listener:
        return self

    async def __anext__(self) -> Change:
        """Wait for the next change; stop after the last one before `close`."""
        while not self._pending:
            if self._closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        change = next(iter(self._pending))
        del self._pending[change]
        return change

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._arrived.set)


class Hub:
    """Publishes changes to the listeners of this process and of the other instances of the server.

    Args:
        bus: Connects the instances; by default there is one instance.
    """

    def __init__(self, bus: Bus | None = None) -> None:
        self._bus = bus or LocalBus()
        self._bus.subscribe(_TOPIC, lambda message: self._deliver(Change(**message)))
        self._bus.subscribe(RESUMED, self._catch_up)
        self._listeners: dict[Listener, None] = {}
        self._closed = False

    async def ready(self) -> None:
        """Wait until changes of other instances arrive; see `Bus.ready`."""
        await self._bus.ready()

    def add(self, wants: Callable[[Change], bool], missed: Callable[[], Iterable[Change]] = tuple) -> Listener:
        """Add a listener; see `Listener`."""
        listener = Listener(wants, missed)
        self._listeners[listener] = None
        if self._closed:
            listener.close()
        return listener

    def remove(self, listener: Listener) -> None:
        """Remove a listener."""
        self._listeners.pop(listener, None)

    @contextlib.contextmanager
    def listening(
        self, wants: Callable[[Change], bool], missed: Callable[[], Iterable[Change]] = tuple
    ) -> Iterator[Listener]:
        """Add a listener during a ``with`` block."""
        listener = self.add(wants, missed)
        try:
            yield listener
        finally:
            self.remove(listener)

    def publish(self, change: Change) -> None:
        """Publish a change. Can be called from any thread."""
        self._deliver(change)
        self._bus.publish(_TOPIC, change._asdict())

    async def send(self, change: Change) -> None:
        """Publish a change to the other instances alone; raise StoreUnavailableError if they are unreachable."""
        await self._bus.send(_TOPIC, change._asdict())

    def open(self) -> None:
        """Accept listeners again, because the server starts after a stop."""
        self._closed = False

    def close(self) -> None:
        """End all listeners, and further ones at once, because the server is about to stop."""
        self._closed = True
        for listener in tuple(self._listeners):
            listener.close()

    def _deliver(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            listener.receive(change)

    def _catch_up(self, _message: Message) -> None:
        for listener in tuple(self._listeners):
            listener.catch_up()

    def __len__(self) -> int:
        return len(self._listeners)
