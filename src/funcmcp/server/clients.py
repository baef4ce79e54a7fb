"""The clients of the living sessions that this process has met, so that a session's next request finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from funcmcp.server.client import Client
from funcmcp.server.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.protocol.revisions import Revision
    from funcmcp.sessions.store import Handshake

_LOOKS = 16


class SessionClient(Client):
    """The client of a session of the handshake era."""

    __slots__ = ()
    conversation: Conversation
    session_id: str

    def __init__(self, revision: Revision, handshake: Handshake, session_id: str, *, pushes: bool) -> None:
        super().__init__(
            revision,
            handshake.capabilities,
            handshake.info,
            session_id=session_id,
            conversation=Conversation(pushes=pushes),
        )

    def close(self) -> None:
        """Let go of what goes on for the client outside of requests."""


C = TypeVar("C", bound=SessionClient)


class Clients(Generic[C]):
    """Clients by session id.

    A client that is forgotten loses its log level and its runs under way; the session itself lives elsewhere.

    Args:
        limit: how many are kept. Beyond, one that has nothing under way goes, the oldest first.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._clients: dict[str, C] = {}
        self.get: Callable[[str], C | None] = self._clients.get
        """Returns a session's client, if it is remembered."""

    def add(self, client: C) -> None:
        """Remember a session's client."""
        self._clients[client.session_id] = client
        if len(self._clients) > self._limit:
            self.end(self._dispensable())

    def end(self, session_id: str) -> None:
        """Forget a session."""
        client = self._clients.pop(session_id, None)
        if client is not None:
            client.close()

    def _dispensable(self) -> str:
        """Return the session of the oldest client that is idle; if none of the first few is, that of the oldest."""
        oldest = [session_id for session_id, _ in zip(self._clients, range(_LOOKS), strict=False)]
        return next((session_id for session_id in oldest if self._clients[session_id].conversation.idle), oldest[0])

    def __len__(self) -> int:
        return len(self._clients)
