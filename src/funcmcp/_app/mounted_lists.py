"""Lists of a mounted server on their way to the server above: through the middleware of the mounted server.

How it works: the features of a list are those that the server above has of the mounted one, and that the caller may
use. `MountedLists` sends a request for exactly these through the middleware of the mounted server, as if its own client
had sent it. A definition that does not come back is left out above. One that comes back changed, or in addition, passes
the transforms of both servers again.
"""

from __future__ import annotations

import copy
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.codec import decode
from funcmcp._protocol.errors import UnknownFeature
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.methods import FEATURE_LISTS, METHODS
from funcmcp._protocol.uri_template import URITemplate
from funcmcp._server.calls.route import Audience, Interactivity, Route, RoutedRequest
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.handlers.lists import encoded_definition
from funcmcp._server.log import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.dispatch import Server

    Place = tuple[str, str | None]

_logger = logging.getLogger("funcmcp.server")

_KEYS = {
    "tools/list": "name",
    "resources/list": "uri",
    "resources/templates/list": "uriTemplate",
    "prompts/list": "name",
}
"""The member of definitions with the name or URI, by the method of the list."""


class MountedLists:
    """Sends lists through the middleware of a mounted server: a `ListFilter`.

    Args:
        server: The mounted server.
        is_active: Returns whether its middleware, or that of a server that it mounts, may change lists.
        copies_of: Returns the features that the server above makes of one of the mounted server.
    """

    def __init__(
        self, server: Server, is_active: Callable[[], bool], copies_of: Callable[[Any], Sequence[Any]]
    ) -> None:
        self._server = server
        self.is_active = is_active
        self._copies_of = copies_of

    async def shown(self, method: str, features: Sequence[Any], context: RequestContext) -> list[Any]:
        """Return the features of a list of the server above that the mounted server shows, and all others.

        If the middleware fails, no feature of the mounted server is shown, and the log has the reason.
        """
        sources = {
            _place_of(feature.mount.feature): feature.mount.feature
            for feature in features
            if feature.mount is not None and feature.mount.lists is self
        }
        originals: dict[Place, Mapping[str, Any]] = {}
        reply = await self._answer(method, list(sources.values()), originals, context)
        result = reply.result()
        if result is None:
            name, error = self._server.options.name, quote(reply.message())
            _logger.error("%s of %s has failed, so the server above lists none: %s", method, name, error)
        definitions = [] if result is None else result[FEATURE_LISTS[method]]
        answers = {_place_in(definition, method): definition for definition in definitions}
        return self._merged(method, features, originals, answers)

    def _merged(
        self,
        method: str,
        features: Sequence[Any],
        originals: Mapping[Place, Mapping[str, Any]],
        answers: dict[Place, dict[str, Any]],
    ) -> list[Any]:
        merged: list[Any] = []
        done: set[Place] = set()
        for feature in features:
            if feature.mount is None or feature.mount.lists is not self:
                merged.append(feature)
                continue
            source = feature.mount.feature
            place = _place_of(source)
            definition = answers.get(place)
            if definition is None or place in done:
                continue
            if definition == originals.get(place):
                merged.append(feature)
                continue
            done.add(place)
            merged += self._copies_of(replace(source, describe=lambda definition=definition: definition))
        for place, definition in answers.items():
            if place not in originals:
                merged += self._copies_of(_only_listed(method, definition))
        return merged

    async def _answer(
        self, method: str, sources: Sequence[Any], originals: dict[Place, Mapping[str, Any]], context: RequestContext
    ) -> Any:
        """Send a request for features through the middleware of the mounted server.

        Args:
            method: The method of the list.
            sources: The features.
            originals: Gets their definitions.
            context: The request of the server above.
        """
        features_of_method = self._server.routes.lists[method]

        async def run(inner: RequestContext) -> dict[str, Any]:
            features = await features_of_method.through_mounts(list(sources), inner)
            originals.clear()
            for feature in features:
                try:
                    encoded = encoded_definition(features_of_method.registry, feature, _unshaped, inner.client.revision)
                except RegistrationError:
                    continue  # the list of the server above says so
                originals[_place_of(feature)] = decode(encoded)
            return {FEATURE_LISTS[method]: list(originals.values())}

        params = {name: value for name, value in context.request.params.items() if name != "cursor"}
        request = Request(context.request.id, method, params)
        revisions = frozenset(self._server.revisions)
        capability = METHODS[method].capability
        route = Route(method, run, Audience.FEATURE, None, Interactivity.FEATURE, capability, revisions)
        inner = copy.copy(context)
        inner.outer = context
        inner.request = request
        inner.routed = RoutedRequest(request, route, None, {})
        return await self._server.answer(inner)


def _place_of(feature: Any) -> Place:
    return feature.key, feature.version


def _place_in(definition: Mapping[str, Any], method: str) -> Place:
    """Return the key and the version of a definition."""
    own = (definition.get("_meta") or {}).get("fastmcp") or {}
    version = own.get("version")
    return str(definition[_KEYS[method]]), None if version is None else str(version)


def _unshaped(definition: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return a definition in the form of the newest revision: the server above gives it the form for the client."""
    del revision
    return dict(definition)


def _only_listed(method: str, definition: dict[str, Any]) -> Any:
    """Return a feature for a definition that middleware has added. A request for it is one for an unknown name."""
    key = definition[_KEYS[method]]

    async def refuse(*_: Any) -> Any:
        raise UnknownFeature("feature", key)

    def describe() -> dict[str, Any]:
        return definition

    if method == "tools/list":
        return Tool(key, describe, refuse)
    if method == "prompts/list":
        return Prompt(key, describe, refuse)
    if method == "resources/list":
        return Resource(key, describe, refuse)
    return ResourceTemplate(URITemplate(key), describe, refuse)
