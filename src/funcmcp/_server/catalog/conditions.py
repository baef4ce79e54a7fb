"""Features that only some callers have: those whose `Feature.shown_if` returns True for the request.

To all other callers such a feature does not exist: lists and searches leave it out, and a request that names it gets
the error of an unknown name. If it has several versions, a caller gets the newest one that is shown to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
from funcmcp._server.catalog.needs import unknown_to
from funcmcp._server.catalog.versions import requested_version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.calls.route import RoutedRequest
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.registry import Registry


async def is_shown(feature: Feature, context: RequestContext) -> bool:
    """Return whether the caller of a request has a feature."""
    return feature.shown_if is None or await feature.shown_if(feature, context)


async def shown_features(features: Iterable[Any], context: RequestContext, registry: Registry[Any]) -> list[Any]:
    """Return the features of a list that the caller of a request has, each in the newest version that it has.

    Args:
        features: The features.
        context: The request.
        registry: The registry that has the other versions of the features.
    """
    shown: list[Any] = []
    for feature in features:
        version = await _newest_shown(feature, context, registry)
        if version is not None:
            shown.append(version)
    return shown


async def shown_request(context: RequestContext, catalog: Catalog) -> RoutedRequest:
    """Return the routed request with the feature that its caller has under the name.

    Raises:
        MCPError: The caller has no such feature.
    """
    routed = context.routed
    feature = routed.feature
    if feature is None or await is_shown(feature, context):
        return routed
    registry = _registry_of(feature, catalog)
    if registry is not None and requested_version(context.request.params) is None:
        older = await _newest_shown(feature, context, registry)
        if older is not None:
            return routed.with_feature(older, routed.values)
    raise unknown_to(feature, routed)


async def _newest_shown(feature: Any, context: RequestContext, registry: Registry[Any]) -> Any:
    """Return a feature, or its newest other version, that the caller of a request has; None if it has none."""
    if await is_shown(feature, context):
        return feature
    if feature.version is None:
        return None
    for version in registry.versions_of(feature.key):
        if version is not feature and registry.is_visible(version) and await is_shown(version, context):
            return version
    return None


def _registry_of(feature: Feature, catalog: Catalog) -> Registry[Any] | None:
    registries: dict[type, Registry[Any]] = {
        Tool: catalog.tools,
        Prompt: catalog.prompts,
        Resource: catalog.resources,
        ResourceTemplate: catalog.templates,
    }
    return registries.get(type(feature))
