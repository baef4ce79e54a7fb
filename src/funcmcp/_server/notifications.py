"""Notifications of clients as functions of the author see them: with a context, as requests have one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._protocol.jsonrpc import Notification, Request
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.context import RequestContext
from funcmcp._server.connections.client import ConnectedClient

if TYPE_CHECKING:
    from funcmcp._protocol.jsonrpc import Response
    from funcmcp._server.calls.context import HTTPRequestInfo
    from funcmcp._server.dispatch import Server

_CLOSED = ClosedChannel()


def context_of(
    server: Server, message: Notification | Response, client: ConnectedClient | None, http: HTTPRequestInfo | None
) -> RequestContext | None:
    """Return the context of a notification, which can't send anything to the client; None for a response.

    Args:
        server: The server.
        message: The message.
        client: The client; None if it is not known.
        http: The HTTP request; None on a transport without HTTP.
    """
    if not isinstance(message, Notification):
        return None
    if client is None:
        client = ConnectedClient(server.revisions[server.supported[0]], {}, {})
    routed = server.routes.route(Request("", message.method, message.params))
    return RequestContext(routed, client, _CLOSED, http)
