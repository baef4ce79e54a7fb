"""What one session sees: the rules of `Context.enable` and `Context.disable`, which precede those of the server.

How it works: the conversation of a session has its rules. Without rules, requests cost nothing more. With rules, a
request is routed as for all clients first, and then again by the rules (`SessionView.route`): to a feature that is
hidden from other clients, to another version, or to none. A feature that was not checked before needs the check of the
guard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._protocol.errors import ResourceNotFound, UnknownFeature
from funcmcp._protocol.uri_template import UnsafeValueError
from funcmcp._server.calls.route import NO_VALUES, READS, RoutedRequest, with_scheme_of
from funcmcp._server.catalog.features import ExtensionMethod, Prompt, Resource, ResourceTemplate, Skill, Tool
from funcmcp._server.catalog.versions import order_of, requested_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from funcmcp._protocol.uri_template import Values
    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.registry import Registry
    from funcmcp._server.connections.conversation import Rules


class SessionView:
    """The features that one session sees.

    Args:
        rules: The rules of the session.
        catalog: The features of the server.
    """

    def __init__(self, rules: Rules, catalog: Catalog) -> None:
        self._rules = rules
        self._catalog = catalog

    def shows(self, feature: Feature) -> bool:
        """Return whether the session sees a feature."""
        return self._rules.decide(feature, default=self._catalog.visibility.allows(feature))

    def route(self, routed: RoutedRequest) -> RoutedRequest:
        """Return a request with the feature that the session sees under its name; with a fault if there is none."""
        if routed.route is None or routed.route.find is None or isinstance(routed.feature, Skill | ExtensionMethod):
            return routed
        if routed.feature is not None and routed.feature.version is None and self.shows(routed.feature):
            return routed
        named = _named_by(routed)
        if named is None:
            return routed  # its fault says what is wrong with it
        kind, key = named
        for feature, values in self._candidates(kind, key, routed):
            if self.shows(feature):
                if isinstance(feature, Tool) and feature.reroute is not None:
                    return routed  # a call of the tool that calls others, which says what is wrong with it
                resolved = routed.with_feature(feature, values)
                return with_scheme_of(feature.key, resolved) if routed.request.method in READS else resolved
        if kind in {Tool, Prompt}:
            return routed.with_feature(fault=UnknownFeature("tool" if kind is Tool else "prompt", key))
        return routed.with_feature(fault=ResourceNotFound(key))

    def _candidates(self, kind: type, key: str, routed: RoutedRequest) -> Iterator[tuple[Feature, Values]]:
        """Yield the features that a name or URI stands for, visible or not."""
        catalog = self._catalog
        if kind is not Resource:
            registries: dict[type, Registry[Any]] = {Tool: catalog.tools, Prompt: catalog.prompts}
            registry = registries.get(kind, catalog.templates)
            yield from ((feature, NO_VALUES) for feature in _in_version(registry.versions_of(key), routed))
            return
        like = catalog.resources.key_like(key)
        if like is not None:
            yield from ((feature, {}) for feature in _in_version(catalog.resources.versions_of(like), routed))
            return
        for template in _in_version(catalog.templates.every(), routed):
            try:
                values = template.template.match(key)
            except UnsafeValueError:
                return
            if values is not None:
                yield template, values


def seen_features(registry: Registry[Any], rules: Rules) -> list[Any]:
    """Return the features of a registry that a session sees, in the newest version that it sees."""
    features: dict[str, Any] = {}
    for feature in registry.every():
        if feature.key not in features:
            for version in registry.versions_of(feature.key):
                if rules.decide(version, default=registry.is_visible(version)):
                    features[feature.key] = version
                    break
    return list(features.values())


def _named_by(routed: RoutedRequest) -> tuple[type, str] | None:
    """Return the class and the name or URI of the feature that a request names; None if it is malformed."""
    params, method = routed.request.params, routed.request.method
    kind: type = Tool if method == "tools/call" else Prompt
    key = params.get("name")
    if method in READS:
        kind, key = Resource, params.get("uri")
    elif method == "completion/complete":
        reference = params.get("ref")
        if not isinstance(reference, dict):
            return None
        is_prompt = reference.get("type") == "ref/prompt"
        kind = Prompt if is_prompt else ResourceTemplate
        key = reference.get("name" if is_prompt else "uri")
    return (kind, key) if isinstance(key, str) else None


def _in_version(features: Iterable[Any], routed: RoutedRequest) -> Iterator[Any]:
    """Yield the features in the version that a request names, or all of them if it names none."""
    version = requested_version(routed.request.params)
    for feature in features:
        if version is None or feature.version is None or order_of(feature.version) == order_of(version):
            yield feature
