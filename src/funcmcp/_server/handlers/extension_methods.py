"""Methods of extensions that authors have added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import without
from funcmcp._protocol.errors import METHOD_NOT_FOUND, MCPError, MissingClientCapability
from funcmcp._protocol.extensions import NOT_PARAMETERS, declared_settings, has_extensions
from funcmcp._server.calls.route import NO_VALUES, Audience, Interactivity, Route

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from funcmcp._protocol.uri_template import Values
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature_call import FeatureCalls
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.features import ExtensionMethod


class _Calls:
    """Answers the requests of one method.

    Args:
        name: The name of the method.
        calls: Runs its handler.
        catalog: The features.
    """

    def __init__(self, name: str, calls: FeatureCalls, catalog: Catalog) -> None:
        self._name = name
        self._calls = calls
        self._catalog = catalog

    def find(self, _params: dict[str, Any]) -> tuple[ExtensionMethod, Values]:
        """Return the method; raise MCPError -32601 if it is hidden."""
        method = self._catalog.methods.get(self._name)
        if method is None:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", {"method": self._name})
        return method, NO_VALUES

    def call(self, context: RequestContext) -> dict[str, Any] | Awaitable[dict[str, Any]]:
        """Answer a request, if the client declares what the method needs."""
        method: ExtensionMethod = context.routed.require_feature()
        extension = method.extension
        if extension is not None and declared_settings(context.client.capabilities, extension) is None:
            raise MissingClientCapability({"extensions": {extension: {}}})
        self._calls.open_rounds(context, method)
        work = method.handler(context, without(context.request.params, *NOT_PARAMETERS))
        return self._calls.begin(method, work, _unchanged, context)


def _unchanged(result: dict[str, Any], _context: RequestContext) -> dict[str, Any]:
    return result


def method_route(method: ExtensionMethod, calls: FeatureCalls, catalog: Catalog, revisions: Iterable[str]) -> Route:
    """Return the route of a method, in those revisions that have extensions.

    Args:
        method: The method.
        calls: Runs its handler.
        catalog: The features.
        revisions: Dates of the revisions that the server speaks.
    """
    served = _Calls(method.name, calls, catalog)
    dates = frozenset(filter(has_extensions, revisions))
    return Route(method.name, served.call, Audience.FEATURE, served.find, Interactivity.FEATURE, None, dates)
