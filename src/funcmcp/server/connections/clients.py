"""The clients of the living sessions that this process has met, so that a session's next request finds them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

from funcmcp.server.connections.client import Client
from funcmcp.server.connections.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.protocol.revisions import Revision
    from funcmcp.server.connections.hub import Change
    from funcmcp.state.sessions.store import Handshake

_MAX_CHECKED = 32
"""Clients that are looked at to find one that can be forgotten."""


def part_of(session_id: str, owner: str | None) -> str:
    """Return the key of what is a principal's own in a session that nobody in particular began."""
    return f"{session_id} {owner}"  # no session id has a space


class SessionClient(Client):
    """The client of a session of the handshake era.

    Attributes:
        key: the session's id; or, for a principal in a session that nobody in particular began, a `part_of` it. Runs,
            questions, streams and subscriptions are a key's own: who only knows the session's id gets none of them.
    """

    __slots__ = ("key",)
    conversation: Conversation
    session_id: str

    def __init__(
        self, revision: Revision, handshake: Handshake, session_id: str, *, pushes: bool, key: str | None = None
    ) -> None:
        self.key = key or session_id
        super().__init__(
            revision,
            handshake.capabilities,
            handshake.info,
            session_id=session_id,
            conversation=Conversation(pushes=pushes),
        )

    @property
    def busy(self) -> bool:
        """Whether something is under way that would be lost if the client was forgotten."""
        return self.conversation.busy

    def close(self) -> None:
        """Let go of what goes on for the client outside of requests."""

    def forget(self, change: Change) -> None:
        """Tell it a change no more: another instance has."""


C = TypeVar("C", bound=SessionClient)


class Clients(Generic[C]):
    """Clients by key.

    A client that is forgotten loses its log level, its subscriptions and what is kept of its streams; the session
    itself lives elsewhere.

    Args:
        limit: How many are kept. Beyond, the oldest is forgotten that is not busy, before others one that has nothing
            to lose. Busy ones are never forgotten: limits on requests and streams bound their number.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._clients: dict[str, C] = {}
        self._parts: dict[str, set[str]] = {}
        self.get: Callable[[str], C | None] = self._clients.get
        """Returns the client of a key, if it is remembered."""

    def add(self, client: C) -> None:
        """Remember a session's client."""
        self._make_room()
        self._clients[client.key] = client
        if client.key != client.session_id:
            self._parts.setdefault(client.session_id, set()).add(client.key)

    def end(self, session_id: str) -> None:
        """Forget a session with all its parts; a part's key is no session's id, whoever sends it as one."""
        client = self._clients.get(session_id)
        if client is not None and client.session_id == session_id:
            self._forget(session_id)
        for part in tuple(self._parts.get(session_id, ())):
            self._forget(part)

    def _forget(self, key: str) -> None:
        """Let go of one client. Others of its session, which lives on, may have something under way."""
        client = self._clients.pop(key)
        client.close()
        parts = self._parts.get(client.session_id, set())
        parts.discard(key)
        if not parts:
            self._parts.pop(client.session_id, None)

    def _make_room(self) -> None:
        """Forget as many clients as are too many, for one more.

        Only the first few are looked at; those of them that are busy go to the end of the line. If all of them are,
        there is one client too many for a while.
        """
        excess = len(self._clients) + 1 - self._limit
        if excess <= 0:
            return
        dispensable: list[C] = []
        for key, client in list(islice(self._clients.items(), _MAX_CHECKED)):
            if client.busy:
                self._clients[key] = self._clients.pop(key)
            else:
                dispensable.append(client)
        dispensable.sort(key=lambda client: not client.conversation.idle)
        for client in dispensable[:excess]:
            self._forget(client.key)

    def __len__(self) -> int:
        return len(self._clients)
