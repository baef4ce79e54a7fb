"""The clients of sessions that this process has served, so that the next request of a session finds its client.

How it works: a client belongs to a `SessionKey`, which is a session or one principal's part of an anonymous session.
`Clients` is a cache: it drops the oldest idle client when it is full, and the session continues in its store. A dropped
client loses its log level, its subscriptions and its stored streams, unless other instances of the server store them
too. When a session ends, the clients of all its keys are dropped.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

from funcmcp._server.connections.client import ConnectedClient
from funcmcp._server.connections.conversation import Conversation
from funcmcp._state.sessions.store import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.connections.hub import Change
    from funcmcp._state.sessions.store import Handshake

_MAX_CHECKED = 32
"""The number of clients that are examined to find one that can be dropped."""


class SessionClient(ConnectedClient):
    """The client of a session of the handshake era.

    Attributes:
        key: The session, or the principal's part of an anonymous session, that the client belongs to. The id is empty
            for a single request without a session; `session_id` is then None, so that nothing is stored under it.
    """

    __slots__ = ("key",)
    conversation: Conversation

    def __init__(self, revision: Revision, handshake: Handshake, key: SessionKey, *, pushes: bool) -> None:
        self.key = key
        super().__init__(
            revision,
            handshake.capabilities,
            handshake.info,
            session_id=key.session_id or None,
            conversation=Conversation(pushes=pushes),
        )

    @property
    def busy(self) -> bool:
        """Whether something is under way that would be lost if the client was dropped."""
        return self.conversation.busy

    def close(self) -> None:
        """Release what the client uses outside of requests."""

    def forget(self, change: Change) -> None:
        """Do not report *change* to the client: another instance has reported it."""


C = TypeVar("C", bound=SessionClient)


class Clients(Generic[C]):
    """A cache of clients by key.

    Args:
        limit: The size of the cache. Beyond it, the oldest client that is not busy is dropped, if possible one that has
            nothing to lose. Busy clients are never dropped; limits on requests and streams bound their number.
        on_end: Is called with each client in the cache whose session has ended.

    Attributes:
        get: Returns the client of a key, which may be a plain tuple, or None if it is not in the cache.
    """

    def __init__(self, limit: int = 10_000, on_end: Callable[[ConnectedClient], None] | None = None) -> None:
        self._limit = limit
        self._on_end = on_end
        self._clients: dict[tuple[str, str | None], C] = {}
        self._parts: dict[str, set[SessionKey]] = {}
        self.get: Callable[[tuple[str, str | None]], C | None] = self._clients.get

    def add(self, client: C) -> None:
        """Add the client of a session."""
        self._make_room()
        self._clients[client.key] = client
        if client.key.owner is not None:
            self._parts.setdefault(client.key.session_id, set()).add(client.key)

    def end(self, session_id: str) -> None:
        """Drop the clients of a session that has ended, with those of its parts."""
        for key in (SessionKey(session_id), *self._parts.get(session_id, ())):
            client = self._clients.get(key)
            if client is not None:
                self._drop(key)
                if self._on_end is not None:
                    self._on_end(client)

    def is_busy(self, session_id: str) -> bool:
        """Return whether a client of a session has something under way."""
        clients = map(self.get, (SessionKey(session_id), *self._parts.get(session_id, ())))
        return any(client is not None and client.busy for client in clients)

    def _drop(self, key: SessionKey) -> None:
        """Drop one client. The session may continue, and clients of its other keys may be busy."""
        client = self._clients.pop(key)
        client.close()
        parts = self._parts.get(key.session_id)
        if parts is not None:
            parts.discard(key)
            if not parts:
                del self._parts[key.session_id]

    def _make_room(self) -> None:
        """Drop as many clients as necessary to add one.

        Only the first few are examined. The busy ones among them become the newest. If all of them are busy, the cache
        exceeds its limit by one client.
        """
        excess = len(self._clients) + 1 - self._limit
        if excess <= 0:
            return
        idle_clients: list[C] = []
        for key, client in list(islice(self._clients.items(), _MAX_CHECKED)):
            if client.busy:
                self._clients[key] = self._clients.pop(key)
            else:
                idle_clients.append(client)
        idle_clients.sort(key=lambda client: not client.conversation.idle)
        for client in idle_clients[:excess]:
            self._drop(client.key)

    def __len__(self) -> int:
        return len(self._clients)
