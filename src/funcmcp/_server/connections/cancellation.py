"""`notifications/cancelled` of the handshake era: the client no longer wants the answer to a request.

Source: "basic/utilities/cancellation". In 2026-07-28 a client cancels by closing the response stream instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._server.connections.conversation import Conversation


def cancel_requested(conversation: Conversation, params: Mapping[str, Any]) -> bool:
    """Cancel the run that a `notifications/cancelled` names; return False if it is not under way in this process."""
    request_id = params.get("requestId")
    if type(request_id) is str or type(request_id) is int:
        return conversation.cancel(request_id)
    return True
