"""Calls of tools that do not exist. The originals answer a client with a result that says so, not with an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._app.direct_calls import DirectContext
from funcmcp._compat.errors import NotFoundError
from funcmcp._protocol.errors import INVALID_PARAMS, MCPError, UnknownFeature

if TYPE_CHECKING:
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext


def answered_unknown(request: RequestContext, reply: Reply) -> Reply | dict[str, Any]:
    """Return the answer to a request; for a client's call of an unknown tool the result of FastMCP.

    Args:
        request: The request. One of the server's author, and one of a server that mounts this one, keep the error.
        reply: The answer.
    """
    if request.request.method == "skills/get" and reply.error == INVALID_PARAMS and request.outer is None:
        raise MCPError(INVALID_PARAMS, f"Unknown skill URI: {request.request.params.get('uri')}")
    if (
        not isinstance(request.error, UnknownFeature | NotFoundError)
        or reply.error is None
        or request.request.method != "tools/call"
    ):
        return reply
    if request.outer is not None or isinstance(request, DirectContext):
        return reply
    text = f"Unknown tool: {request.request.params.get('name')!r}"
    return {"content": [{"type": "text", "text": text}], "isError": True}
