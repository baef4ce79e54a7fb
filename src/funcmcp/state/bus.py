"""What the instances of a server tell each other: small JSON messages, by topic.

A message reaches the instances that are there when it is told; none is kept for later. It is told to the others, not
to the instance itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

Message: TypeAlias = Mapping[str, Any]
Hear: TypeAlias = Callable[[Message], None]

RESUMED = "resumed"
"""A topic of the bus itself: this instance was cut off from the others for a while, and may have missed messages."""


class Bus(Protocol):
    """The line between the instances of a server.

    Attributes:
        instance: names this instance among the others; empty where there are none.
    """

    instance: str

    def subscribe(self, topic: str, hear: Hear) -> None:
        """Call `hear`, on the event loop, with each message about a topic."""

    def tell(self, topic: str, message: Message) -> None:
        """Tell the other instances, if they can be reached; from any thread."""

    async def send(self, topic: str, message: Message) -> None:
        """Tell the other instances; raise StoreAwayError if they can't be reached."""

    async def other_instances(self) -> frozenset[str]:
        """Return the names of the other instances that listen now; raise StoreAwayError if they can't be reached.

        An instance that has died may be among them for some seconds.
        """

    def start(self) -> None:
        """Begin to hear the others, on the running event loop, unless that has begun."""

    async def ready(self) -> None:
        """Begin to hear the others, and wait until that is so; for a short while only if they can't be reached."""

    async def aclose(self) -> None:
        """Hear no more."""


class LocalBus:
    """A bus inside one process: of one server that is alone, or of several, each `beside` the first."""

    def __init__(self) -> None:
        self.instance = ""
        self._line: list[LocalBus] = [self]
        self._hearers: dict[str, list[Hear]] = {}

    def beside(self) -> LocalBus:
        """Return the bus of another instance on the same line."""
        other = LocalBus()
        other.instance = f"i{len(self._line)}."
        other._line = self._line
        self._line.append(other)
        return other

    def subscribe(self, topic: str, hear: Hear) -> None:
        """Call `hear` with each message about a topic."""
        self._hearers.setdefault(topic, []).append(hear)

    def tell(self, topic: str, message: Message) -> None:
        """Tell the other instances."""
        for other in self._line:
            if other is not self:
                other.deliver(topic, message)

    async def send(self, topic: str, message: Message) -> None:
        """Tell the other instances."""
        self.tell(topic, message)

    async def other_instances(self) -> frozenset[str]:
        """Return the names of the other instances."""
        return frozenset(other.instance for other in self._line if other is not self)

    def deliver(self, topic: str, message: Message) -> None:
        """Let this instance hear a message."""
        for hear in self._hearers.get(topic, ()):
            hear(message)

    def start(self) -> None:
        """Do nothing: it hears from the beginning."""

    async def ready(self) -> None:
        """Do nothing: it hears from the beginning."""

    async def aclose(self) -> None:
        """Do nothing: it has nothing to let go of."""
