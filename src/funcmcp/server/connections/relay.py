"""One session at several instances of a server: what its client sends to one of them reaches the one that it is for.

A response goes where its question was asked, and `notifications/cancelled` where the request runs. What the session
chooses (log level, subscriptions) is kept in its store, and told to the instances that know the session already; so is
what its client has been told of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from funcmcp.protocol.jsonrpc import Notification, Response
from funcmcp.protocol.levels import LEVELS
from funcmcp.server.connections.clients import SessionClient
from funcmcp.server.connections.conversation import cancel_requested
from funcmcp.server.connections.hub import Change
from funcmcp.state.bus import RESUMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from funcmcp.server.connections.clients import Clients
    from funcmcp.state.bus import Bus, Message
    from funcmcp.state.sessions.store import SharedSessions

C = TypeVar("C", bound=SessionClient)

_TOPIC = "sessions"


class Relay(Generic[C]):
    """Passes on what concerns a session.

    Args:
        bus: leads to the other instances.
        clients: those of the sessions that this instance has met.
        store: keeps what sessions choose; None where it is kept in this process alone.
    """

    def __init__(self, bus: Bus, clients: Clients[C], store: SharedSessions | None) -> None:
        self._bus = bus
        self._clients = clients
        self._store = store
        self._gaps = 0
        bus.subscribe(_TOPIC, self._hear)
        bus.subscribe(RESUMED, self._resume)

    def meet(self, client: C) -> None:
        """Take note of a session that is new to this instance."""
        if self._store is not None:
            client.conversation.keeper = _Keeper(self, self._store, client)

    async def receive(self, message: Notification | Response, client: C) -> bool:
        """Take a message that gets no answer; a notification that means nothing anywhere is dropped.

        Returns:
            False for a response that answers no open question of this process, where no other instance can have asked.

        Raises:
            StoreAwayError: The other instances can't be reached.
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
        """Forget a session that was ended, at every instance."""
        self._clients.end(session_id)
        self._bus.tell(_TOPIC, {"session": session_id, "kind": "ended", "said": {}})

    def told(self, client: C, changes: Iterable[Change]) -> None:
        """Take note that a client was told of changes, so that no other instance tells it of them again."""
        for change in changes:
            self._bus.tell(_TOPIC, {"session": client.key, "kind": "told", "said": change._asdict()})

    async def send(self, key: str, kind: str, said: Mapping[str, Any]) -> None:
        """Tell the other instances something about a session, by its client's key; raise StoreAwayError."""
        await self._bus.send(_TOPIC, {"session": key, "kind": kind, "said": said})

    @property
    def gaps(self) -> int:
        """How often messages of other instances may have been missed."""
        return self._gaps

    def _hear(self, message: Message) -> None:
        if message["kind"] == "ended":
            self._clients.end(message["session"])
            return
        client = self._clients.get(message["session"])
        if client is not None:
            _KINDS[message["kind"]](client, message["said"])

    def _resume(self, _message: Message) -> None:
        self._gaps += 1


class _Keeper:
    """Keeps what one session chooses."""

    __slots__ = ("_client", "_known", "_relay", "_store")

    def __init__(self, relay: Relay[Any], store: SharedSessions, client: SessionClient) -> None:
        self._relay = relay
        self._store = store
        self._client = client
        self._known = -1

    async def restore(self) -> None:
        """Read what the session has chosen, unless nothing can have been missed since that was last done."""
        gaps = self._relay.gaps
        if self._known == gaps:
            return
        notes = await self._store.notes(self._client.key)
        conversation = self._client.conversation
        conversation.log_level = notes.level or conversation.log_level
        conversation.subscribed.replace(notes.subscribed)
        self._known = gaps

    async def keep_level(self, level: str) -> None:
        """Remember a log level, and tell it."""
        await self._store.note_level(self._client.key, level)
        await self._relay.send(self._client.key, "level", {"level": level})

    async def keep_subscription(self, uri: str, *, wanted: bool) -> None:
        """Remember, or forget, the URI of a resource, and tell it."""
        await self._store.note_subscription(self._client.key, uri, wanted=wanted)
        await self._relay.send(self._client.key, "subscription", {"uri": uri, "wanted": wanted})


def _response(client: SessionClient, said: Mapping[str, Any]) -> None:
    client.conversation.answer(Response(said["id"], said["result"], said["error"]))


def _cancelled(client: SessionClient, said: Mapping[str, Any]) -> None:
    cancel_requested(client.conversation, said)


def _level(client: SessionClient, said: Mapping[str, Any]) -> None:
    if said["level"] in LEVELS:  # an instance of another version may know further ones
        client.conversation.log_level = said["level"]


def _subscription(client: SessionClient, said: Mapping[str, Any]) -> None:
    subscribed = client.conversation.subscribed
    if said["wanted"]:
        subscribed.add(said["uri"])
    else:
        subscribed.discard(said["uri"])


def _told(client: SessionClient, said: Mapping[str, Any]) -> None:
    client.forget(Change(**said))


_KINDS: dict[str, Callable[[SessionClient, Mapping[str, Any]], None]] = {
    "response": _response,
    "cancelled": _cancelled,
    "level": _level,
    "subscription": _subscription,
    "told": _told,
}
