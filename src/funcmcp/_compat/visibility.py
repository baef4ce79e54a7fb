"""Rules of ``mcp.enable`` and ``mcp.disable`` as FastMCP has them: by name or URI, key, version, tag and kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._compat.versions import VersionSpec
from funcmcp._server.catalog.features import Resource, ResourceTemplate
from funcmcp._server.catalog.visibility import kind_of, visibility_rule

if TYPE_CHECKING:
    from collections.abc import Collection

    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.catalog.visibility import VisibilityRule


@dataclass(frozen=True)
class ComponentRule:
    """Shows or hides the components that meet all of its conditions. Without a condition it matches none.

    Attributes:
        rule: The conditions that funcmcp's own rules have, too, but for the names.
        names: Names, or URIs of resources and templates; None for any.
        keys: FastMCP's keys, such as ``"tool:add@"`` and ``"resource:menu://today@1.0"``; None for any.
        version: The versions; None for any, and for components without one.
        match_all: Whether it matches all components.
    """

    rule: VisibilityRule
    names: frozenset[str] | None
    keys: frozenset[str] | None
    version: VersionSpec | None = None
    match_all: bool = False

    @property
    def shows(self) -> bool:
        """Whether it shows the components; otherwise it hides them."""
        return self.rule.shows

    @property
    def only(self) -> bool:
        """Whether it hides all other components."""
        return self.rule.only

    @property
    def kinds(self) -> frozenset[str] | None:
        """The kinds of components; None for any."""
        return self.rule.kinds

    @property
    def conditions(self) -> tuple[Any, ...]:
        """The names, keys, versions, tags and kinds."""
        versions = None if self.version is None else (self.version.gte, self.version.lt, self.version.eq)
        return self.match_all or None, self.names, self.keys, versions, self.rule.tags, self.rule.kinds

    def matches(self, feature: Any) -> bool:
        """Return whether a component meets all conditions."""
        if self.match_all:
            return True
        if all(condition is None for condition in self.conditions):
            return False
        if self.version is not None and not self.version.matches(feature.version, match_none=False):
            return False
        if self.names is not None and self.names.isdisjoint(_names_of(feature)):
            return False
        return self.rule.matches(feature) and (self.keys is None or self._has_key_of(feature))

    def matches_component(self, component: Any) -> bool:
        """Return whether an object such as `funcmcp.compat.Tool` meets all conditions."""
        if self.match_all:
            return True
        if all(condition is None for condition in self.conditions):
            return False
        kind, _, rest = component.key.partition(":")
        names = {component.name, rest.rpartition("@")[0]}
        return (
            (self.version is None or self.version.matches(component.version, match_none=False))
            and (self.names is None or not self.names.isdisjoint(names))
            and (self.keys is None or component.key in self.keys)
            and (self.rule.tags is None or not self.rule.tags.isdisjoint(component.tags))
            and (self.kinds is None or kind in self.kinds)
        )

    def _has_key_of(self, feature: Feature) -> bool:
        """Return whether one of the keys is a component's. A key without ``@`` hides all versions, and shows none."""
        key = f"{kind_of(feature)}:{feature.key}"
        keys = self.keys or frozenset()
        return f"{key}@{feature.version or ''}" in keys or (not self.shows and key in keys)


def _names_of(feature: Any) -> set[str]:
    """Return the name of a component, and its URI if it has one."""
    if isinstance(feature, Resource | ResourceTemplate):
        return {feature.key, feature.describe()["name"]}
    return {feature.key}


def component_rule(
    conditions: dict[str, Any], *, shows: bool, only: bool = False, match_all: bool = False
) -> ComponentRule:
    """Return a rule for the arguments of an author.

    Args:
        conditions: ``names``, ``keys``, ``version``, ``tags`` and ``components``. Empty tags and components are not a
            condition.
        shows: Whether the rule shows what it matches.
        only: Whether it hides everything else.
        match_all: Whether it matches all components.

    Raises:
        TypeError: A condition is not a collection of strings, or does not exist here.
        ValueError: A kind is unknown.
    """
    version = conditions.get("version")
    if not (version is None or isinstance(version, VersionSpec)):
        raise TypeError(f"version must be a VersionSpec, such as VersionSpec(gte='2'); got {version!r:.60}.")
    unknown = sorted(conditions.keys() - {"names", "keys", "tags", "components", "version"})
    if unknown:
        raise TypeError(
            f"Unknown option {', '.join(map(repr, unknown))} of enable and disable. "
            "Valid options: names, keys, version, tags, components, only."
        )
    tags = conditions.get("tags") or None
    kinds = conditions.get("components") or None
    rule = visibility_rule(conditions.get("names"), tags, kinds, shows=shows, only=only)
    keys = _checked_keys(conditions.get("keys"))
    return ComponentRule(rule._replace(names=None), rule.names, keys, version, match_all)


def _checked_keys(keys: Collection[str] | None) -> frozenset[str] | None:
    """Return the keys of a condition; raise TypeError or ValueError for what is not a key."""
    if keys is None:
        return None
    checked = visibility_rule(keys, None, None, shows=True).names or frozenset()
    for key in sorted(checked):
        if ":" not in key:
            raise ValueError(f"Invalid key {key!r}. Write the kind before the name, such as 'tool:add@'.")
    return checked
