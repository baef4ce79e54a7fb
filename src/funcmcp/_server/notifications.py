"""Notifications of clients as functions of the author see them: with a context, as requests have one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._protocol.jsonrpc import Notification, Request
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.context import RequestContext
from funcmcp._server.connections.client import ConnectedClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._protocol.jsonrpc import Response
    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.calls.context import HTTPRequestInfo
    from funcmcp._server.calls.route import RoutedRequest

_CLOSED = ClosedChannel()


def context_of(
    route: Callable[[Request], RoutedRequest],
    newest: Revision,
    message: Notification | Response,
    client: ConnectedClient | None,
    http: HTTPRequestInfo | None,
) -> RequestContext | None:
    """Return the context of a notification, which can't send anything to the client; None for a response.

    Args:
        route: Routes a request of the server.
        newest: The newest revision that the server speaks.
        message: The message.
        client: The client; None if it is not known.
        http: The HTTP request; None on a transport without HTTP.
    """
    if not isinstance(message, Notification):
        return None
    if client is None:
        client = ConnectedClient(newest, {}, {})
    routed = route(Request("", message.method, message.params))
    return RequestContext(routed, client, _CLOSED, http)
