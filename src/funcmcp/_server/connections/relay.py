"""One session at several instances of a server.

How it works: the instances share a store of sessions and a bus. The requests of one session may arrive at any of them.

- A response of the client belongs to the instance that sent the question. `notifications/cancelled` belongs to the
  instance that runs the request. An instance that can't use one of them itself sends it to all others.
- The log level and the subscriptions of a session are in the store. The instance that changes them also sends the
  change to the others. An instance that serves a session for the first time reads them from the store, and reads them
  again after it may have missed messages (`RESUMED`).
- When an instance reports a change to the client, the others drop that change from what they would report.
- When a session ends, every instance drops its clients.

Every message has the key of the session, a kind and a content. `_KINDS` has a handler for each kind but "ended".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from funcmcp._protocol.jsonrpc import Notification, Response
from funcmcp._protocol.levels import LEVELS
from funcmcp._server.connections.cancellation import cancel_requested
from funcmcp._server.connections.hub import Change
from funcmcp._server.connections.session_clients import SessionClient
from funcmcp._state.bus import RESUMED
from funcmcp._state.sessions.store import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from funcmcp._server.connections.session_clients import Clients
    from funcmcp._state.bus import Bus, Message
    from funcmcp._state.sessions.store import SharedSessions

C = TypeVar("C", bound=SessionClient)

_TOPIC = "sessions"
_CONTENT = "said"
"""The member of a message that holds its content. Instances of earlier versions use this name."""


class Relay(Generic[C]):
    """Sends messages about sessions to the other instances, and handles theirs.

    Args:
        bus: Connects the instances.
        clients: The clients of the sessions that this instance has served.
        store: Stores the choices of sessions; None if this process alone has them.
    """

    def __init__(self, bus: Bus, clients: Clients[C], store: SharedSessions | None) -> None:
        self._bus = bus
        self._clients = clients
        self._store = store
        self._gaps = 0
        bus.subscribe(_TOPIC, self._receive)
        bus.subscribe(RESUMED, self._count_gap)

    def meet(self, client: C) -> None:
        """Connect a client that is new to this instance with the store."""
        if self._store is not None:
            client.conversation.keeper = _Keeper(self, self._store, client)

    async def receive(self, message: Notification | Response, client: C) -> bool:
        """Handle a message that gets no answer. A notification without an effect at any instance is dropped.

        Returns:
            False for a response to no open question of this process, if there is no other instance.

        Raises:
            StoreUnavailableError: The other instances can't be reached.
        """
        if isinstance(message, Response):
            if client.conversation.answer(message):
                return True
            if not await self._bus.other_instances():
                return False
            answer = {"id": message.id, "result": message.result, "error": message.error}
            await self.send(client.key, "response", answer)
        elif message.method == "notifications/cancelled" and not cancel_requested(client.conversation, message.params):
            await self.send(client.key, "cancelled", {"requestId": message.params["requestId"]})
        return True

    def end(self, session_id: str) -> None:
        """Drop the clients of an ended session at every instance."""
        self._clients.end(session_id)
        self._bus.publish(_TOPIC, _message(SessionKey(session_id), "ended", {}))

    def reported(self, client: C, changes: Iterable[Change]) -> None:
        """Note that changes were reported to a client, so that no other instance reports them again."""
        for change in changes:
            self._bus.publish(_TOPIC, _message(client.key, "told", change._asdict()))

    async def send(self, key: SessionKey, kind: str, content: Mapping[str, Any]) -> None:
        """Send a message about a session to the other instances; raise StoreUnavailableError."""
        await self._bus.send(_TOPIC, _message(key, kind, content))

    @property
    def gaps(self) -> int:
        """The number of times that messages of other instances may have been missed."""
        return self._gaps

    def _receive(self, message: Message) -> None:
        key, kind = SessionKey.from_text(message["session"]), message["kind"]
        if kind == "ended":
            self._clients.end(key.session_id)
            return
        client = self._clients.get(key)
        if client is not None:
            _KINDS[kind](client, message[_CONTENT])

    def _count_gap(self, _message: Message) -> None:
        self._gaps += 1


def _message(key: SessionKey, kind: str, content: Mapping[str, Any]) -> Message:
    return {"session": key.to_text(), "kind": kind, _CONTENT: content}


class _Keeper:
    """Stores the choices of one session."""

    __slots__ = ("_client", "_gaps_at_restore", "_relay", "_store")

    def __init__(self, relay: Relay[Any], store: SharedSessions, client: SessionClient) -> None:
        self._relay = relay
        self._store = store
        self._client = client
        self._gaps_at_restore = -1

    async def restore(self) -> None:
        """Read the choices of the session, unless no message has been missed since the last time."""
        gaps = self._relay.gaps
        if self._gaps_at_restore == gaps:
            return
        notes = await self._store.notes(self._client.key)
        conversation = self._client.conversation
        conversation.log_level = notes.level or conversation.log_level
        conversation.subscribed.replace(notes.subscribed)
        self._gaps_at_restore = gaps

    async def keep_level(self, level: str) -> None:
        """Store a log level, and send it to the other instances."""
        await self._store.note_level(self._client.key, level)
        await self._relay.send(self._client.key, "level", {"level": level})

    async def keep_subscription(self, uri: str, *, is_subscribed: bool) -> None:
        """Add or remove the URI of a resource, and send the change to the other instances."""
        await self._store.note_subscription(self._client.key, uri, subscribe=is_subscribed)
        await self._relay.send(self._client.key, "subscription", {"uri": uri, "wanted": is_subscribed})


def _response(client: SessionClient, content: Mapping[str, Any]) -> None:
    client.conversation.answer(Response(content["id"], content["result"], content["error"]))


def _cancelled(client: SessionClient, content: Mapping[str, Any]) -> None:
    cancel_requested(client.conversation, content)


def _level(client: SessionClient, content: Mapping[str, Any]) -> None:
    if content["level"] in LEVELS:  # an instance of another version may have further levels
        client.conversation.log_level = content["level"]


def _subscription(client: SessionClient, content: Mapping[str, Any]) -> None:
    subscribed = client.conversation.subscribed
    if content["wanted"]:
        subscribed.add(content["uri"])
    else:
        subscribed.discard(content["uri"])


def _reported(client: SessionClient, content: Mapping[str, Any]) -> None:
    client.forget(Change(**content))


_KINDS: dict[str, Callable[[SessionClient, Mapping[str, Any]], None]] = {
    "response": _response,
    "cancelled": _cancelled,
    "level": _level,
    "subscription": _subscription,
    "told": _reported,
}
