"""The bus between the instances of a server, for small JSON messages.

How it works: each message has a topic. An instance subscribes to topics before it starts, and then its callbacks get
the messages of all other instances, but not its own. A message reaches the instances that are connected when it is
sent, and is not stored. `publish` sends without waiting, and drops the message if the other instances are unreachable.
`send` waits and raises instead. After an interruption the bus itself calls the subscribers of `RESUMED`, because
messages may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

Message: TypeAlias = Mapping[str, Any]
Subscriber: TypeAlias = Callable[[Message], None]

RESUMED = "resumed"
"""A topic of the bus itself: this instance was disconnected for a while and may have missed messages."""


class Bus(Protocol):
    """A connection to the other instances of a server.

    Attributes:
        instance: The name of this instance. It is empty if there are no other instances.
    """

    instance: str

    def subscribe(self, topic: str, subscriber: Subscriber) -> None:
        """Call *subscriber* on the event loop with each message of a topic."""

    def publish(self, topic: str, message: Message) -> None:
        """Send a message from any thread, without waiting. It is dropped if the other instances are unreachable."""

    async def send(self, topic: str, message: Message) -> None:
        """Send a message; raise StoreUnavailableError if the other instances are unreachable."""

    async def other_instances(self) -> frozenset[str]:
        """Return the names of the connected instances; raise StoreUnavailableError if they are unreachable.

        The names may include an instance that died a few seconds ago.
        """

    def start(self) -> None:
        """Start to receive messages on the running event loop, unless the bus has started."""

    async def ready(self) -> None:
        """Start, and wait until messages are received, or for a short time if the other instances are unreachable."""

    async def aclose(self) -> None:
        """Stop receiving messages."""


class LocalBus:
    """A bus inside one process: of a single instance, or of several that `beside` creates, as tests use them."""

    def __init__(self) -> None:
        self.instance = ""
        self._instances: list[LocalBus] = [self]
        self._subscribers: dict[str, list[Subscriber]] = {}

    def beside(self) -> LocalBus:
        """Return the bus of another instance that is connected to this one."""
        bus = LocalBus()
        bus.instance = f"i{len(self._instances)}."
        bus._instances = self._instances
        self._instances.append(bus)
        return bus

    def subscribe(self, topic: str, subscriber: Subscriber) -> None:
        """Call *subscriber* with each message of a topic."""
        self._subscribers.setdefault(topic, []).append(subscriber)

    def publish(self, topic: str, message: Message) -> None:
        """Call the subscribers of the other instances."""
        for bus in self._instances:
            if bus is not self:
                bus.deliver(topic, message)

    async def send(self, topic: str, message: Message) -> None:
        """Call the subscribers of the other instances."""
        self.publish(topic, message)

    async def other_instances(self) -> frozenset[str]:
        """Return the names of the other instances."""
        return frozenset(bus.instance for bus in self._instances if bus is not self)

    def deliver(self, topic: str, message: Message) -> None:
        """Call the subscribers of this instance."""
        for subscriber in self._subscribers.get(topic, ()):
            subscriber(message)

    def start(self) -> None:
        """Do nothing: messages are always received."""

    async def ready(self) -> None:
        """Do nothing: messages are always received."""

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""
