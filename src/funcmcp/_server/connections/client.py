"""The client of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.connections.conversation import Conversation


class ConnectedClient:
    """The client of one request (per-request era) or of one session (handshake era).

    Attributes:
        revision: The protocol revision of the session or request.
        capabilities: The ClientCapabilities that the client declared; empty if it declared none.
        info: The client's Implementation (name, version, ...); empty if it is not known.
        session_id: The id of the session; None in the per-request era and on transports without sessions.
        conversation: The state of the session in this process; None in the per-request era.
        connection_id: A random id of the connection that is the session, as of a WebSocket; None elsewhere.
    """

    __slots__ = ("capabilities", "connection_id", "conversation", "info", "revision", "session_id")

    def __init__(
        self,
        revision: Revision,
        capabilities: Mapping[str, Any],
        info: Mapping[str, Any],
        *,
        session_id: str | None = None,
        conversation: Conversation | None = None,
        connection_id: str | None = None,
    ) -> None:
        self.revision: Revision = revision
        self.capabilities: Mapping[str, Any] = capabilities
        self.info: Mapping[str, Any] = info
        self.session_id: str | None = session_id
        self.conversation: Conversation | None = conversation
        self.connection_id: str | None = connection_id

    def listen(self) -> None:
        """Start to collect changes for the client, if its transport needs that."""
