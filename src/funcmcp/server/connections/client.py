"""Who asks: what is known of the client of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp.protocol.revisions import Revision
    from funcmcp.server.connections.conversation import Conversation


class Client:
    """The client of one request (per-request era) or of one session (handshake era).

    Attributes:
        revision: the protocol revision that the two agreed on.
        capabilities: the client's ClientCapabilities as declared; empty when it declared none.
        info: the client's Implementation (name, version, ...); empty when unknown.
        session_id: the session, or None in the per-request era and on transports without sessions.
        conversation: the moving parts of the handshake era's session in this process; None in the per-request era.
    """

    __slots__ = ("capabilities", "conversation", "info", "revision", "session_id")

    def __init__(
        self,
        revision: Revision,
        capabilities: Mapping[str, Any],
        info: Mapping[str, Any],
        *,
        session_id: str | None = None,
        conversation: Conversation | None = None,
    ) -> None:
        self.revision = revision
        self.capabilities = capabilities
        self.info = info
        self.session_id = session_id
        self.conversation = conversation

    def listen(self) -> None:
        """Take note that the client wants to hear of changes, where that has to be prepared."""
