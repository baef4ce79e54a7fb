"""Features that only clients with certain capabilities have.

A server may offer a tool only to clients that can be asked, as servers behind `funcmcp.upstreams.Upstream` do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._protocol.errors import InvalidParams, MCPError, ResourceNotFound, UnknownFeature
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from funcmcp._server.calls.feature import Capability, Feature
    from funcmcp._server.calls.route import RoutedRequest


def missing_of(needs: Iterable[Capability], capabilities: Mapping[str, Any]) -> frozenset[Capability]:
    """Return the capabilities that a client with these ClientCapabilities lacks."""
    return frozenset(path for path in needs if not _has(capabilities, path))


def _has(capabilities: Mapping[str, Any], path: Capability) -> bool:
    value: Any = capabilities
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value is not None and value is not False


def unknown_to(feature: Feature, routed: RoutedRequest) -> MCPError:
    """Return the error for a request that names a feature which its client does not have."""
    if isinstance(feature, Tool | Prompt):
        return UnknownFeature("tool" if isinstance(feature, Tool) else "prompt", feature.key)
    uri = routed.request.params.get("uri")
    if isinstance(feature, Resource | ResourceTemplate) and isinstance(uri, str):
        return ResourceNotFound(uri)
    return InvalidParams('"ref" names no resource template of this server. Its "uri" must be the template\'s text.')
