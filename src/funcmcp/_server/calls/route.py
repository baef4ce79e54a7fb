"""The route of a request: which handler answers its method, which feature it names, and who may send it.

A request is routed once, when it arrives. The guard, the check of headers, the choice between a JSON body and a stream,
middleware and the handler all use the same `RoutedRequest`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._objects.definitions import definition
from funcmcp._protocol.jsonrpc import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._protocol.errors import MCPError
    from funcmcp._protocol.jsonrpc import Malformed, Notification, Response
    from funcmcp._protocol.uri_template import Values
    from funcmcp._server.calls.feature import Feature

    Handler: TypeAlias = Callable[[Any], Any]
    RoutedBody: TypeAlias = "RoutedRequest | Notification | Response | Malformed | list[Any]"
    FindFeature: TypeAlias = Callable[[dict[str, Any]], tuple[Feature, Values]]

NO_VALUES: Values = {}

READS = frozenset({"resources/read", "resources/subscribe"})
"""The methods whose feature is the resource or the template that ``params["uri"]`` names."""


class Audience(Enum):
    """Who may send the requests of a method."""

    FEATURE = auto()
    """The callers who may use the feature that the request names."""
    LIST = auto()
    """The callers who may list features; see `Auth.lists`."""
    CONVERSATION = auto()
    """The callers who may use anything at all."""


class Interactivity(Enum):
    """When the handler of a method may send messages before its answer."""

    NEVER = auto()
    FEATURE = auto()
    """When the feature that the request names is interactive."""
    ALWAYS = auto()


@definition
class Route:
    """One method that the server serves.

    Attributes:
        method: The method's name.
        handler: Answers a request. It gets the `RequestContext`, and returns the result, or an awaitable of the result.
        audience: Who may send the request.
        find: Returns the feature that a request's params name, with the values of a template's variables. It raises
            MCPError if there is none. None for methods without a feature.
        interactivity: Whether the handler may send messages before its answer.
        capability: The server capability that the method belongs to; None if every server has the method.
        revisions: Dates of the revisions that have the method.
    """

    method: str
    handler: Handler
    audience: Audience
    find: FindFeature | None
    interactivity: Interactivity
    capability: str | None
    revisions: frozenset[str]


_FEATURE, _ALWAYS = Interactivity.FEATURE, Interactivity.ALWAYS  # each access to a member of an Enum takes time


class RoutedRequest:
    """A request with its route and the feature that it names.

    Attributes:
        request: The JSON-RPC request.
        sent: The request as the client has sent it. It differs for a call that stands for one of another tool.
        route: The route of its method; None for a method that the server does not know.
        feature: The feature that it names; None if the method has none, or if the lookup failed.
        values: The values that its URI has for the variables of a resource template.
        fault: The error of a lookup that failed.
        size: Bytes of memory that the request takes up; 0 if they are few.
        interactive: Whether the answer may come with other messages, so that the transport must be ready to stream.
    """

    __slots__ = ("fault", "feature", "interactive", "request", "route", "sent", "size", "values")

    def __init__(
        self,
        request: Request,
        route: Route | None = None,
        feature: Feature | None = None,
        values: Values = NO_VALUES,
        *,
        fault: MCPError | None = None,
    ) -> None:
        self.request: Request = request
        self.sent: Request = request
        self.route: Route | None = route
        self.feature: Feature | None = feature
        self.values: Values = values
        self.fault: MCPError | None = fault
        self.size: int = 0
        interactivity = None if route is None else route.interactivity
        self.interactive: bool = interactivity is _ALWAYS
        if interactivity is _FEATURE and feature is not None:
            self.interactive = feature.interactive

    def with_feature(
        self, feature: Feature | None = None, values: Values = NO_VALUES, *, fault: MCPError | None = None
    ) -> RoutedRequest:
        """Return the same request with another feature, or with a fault."""
        changed = RoutedRequest(self.request, self.route, feature, values, fault=fault)
        changed.size, changed.sent = self.size, self.sent
        return changed

    def require_feature(self) -> Any:
        """Return the feature that the request names; raise the MCPError of a lookup that failed."""
        if self.fault is not None:
            raise self.fault
        return self.feature


def with_scheme_of(text: str, routed: RoutedRequest) -> RoutedRequest:
    """Return a read with the scheme in the URI spelled as in the registered one, whatever case the client writes.

    Middleware that compares URIs would miss another spelling, with which the same resource is served.

    Args:
        text: The URI or the template of the feature.
        routed: The request.
    """
    params = routed.request.params
    uri = params.get("uri")
    scheme = text.partition(":")[0]
    if not isinstance(uri, str) or uri.startswith(f"{scheme}:"):
        return routed
    sent_scheme, _, remainder = uri.partition(":")
    if sent_scheme.lower() != scheme.lower():
        return routed
    respelled = f"{scheme}:{remainder}"
    changed = RoutedRequest(
        Request(routed.request.id, routed.request.method, {**params, "uri": respelled}),
        routed.route,
        routed.feature,
        routed.values,
    )
    changed.size, changed.sent = routed.size, routed.sent
    return changed
