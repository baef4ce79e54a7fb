"""The request whose feature is being looked up, for providers whose answers depend on the request."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from funcmcp._server.calls.context import HTTPRequestInfo
    from funcmcp._server.calls.route import RoutedRequest


class Resolving(NamedTuple):
    """A request before it has its feature.

    Attributes:
        routed: The request.
        http: The HTTP request; None on a transport without HTTP.
    """

    routed: RoutedRequest
    http: HTTPRequestInfo | None


resolving: ContextVar[Resolving | None] = ContextVar("resolving", default=None)
