"""Rules of ``mcp.enable`` and ``mcp.disable`` as FastMCP has them: by name or URI, key, tag and kind.

A component has one version here. A key of a rule that hides applies to all versions, and a key of a rule that shows
applies to the version in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._server.catalog.features import Resource, ResourceTemplate
from funcmcp._server.catalog.visibility import kind_of, visibility_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.catalog.visibility import VisibilityRule


@dataclass(frozen=True)
class ComponentRule:
    """Shows or hides the components that meet all of its conditions. Without a condition it matches none.

    Attributes:
        rule: The conditions that funcmcp's own rules have, too, but for the names.
        version_of: Returns the version of a component; an empty text for a component without one.
        names: Names, or URIs of resources and templates; None for any.
        keys: FastMCP's keys, such as ``"tool:add@"`` and ``"resource:menu://today@1.0"``; None for any.
    """

    rule: VisibilityRule
    version_of: Callable[[Feature], str]
    names: frozenset[str] | None
    keys: frozenset[str] | None

    @property
    def shows(self) -> bool:
        """Whether it shows the components; otherwise it hides them."""
        return self.rule.shows

    @property
    def only(self) -> bool:
        """Whether it hides all other components."""
        return self.rule.only

    @property
    def conditions(self) -> tuple[Any, ...]:
        """The names, keys, tags and kinds."""
        return self.names, self.keys, self.rule.tags, self.rule.kinds

    def matches(self, feature: Any) -> bool:
        """Return whether a component meets all conditions."""
        if all(condition is None for condition in self.conditions):
            return False
        if self.names is not None and self.names.isdisjoint(_names_of(feature)):
            return False
        return self.rule.matches(feature) and (self.keys is None or self._has_key_of(feature))

    def _has_key_of(self, feature: Feature) -> bool:
        """Return whether one of the keys is a component's."""
        key = f"{kind_of(feature)}:{feature.key}"
        if self.shows:
            return f"{key}@{self.version_of(feature)}" in (self.keys or ())
        return any(key in {hidden, hidden.rpartition("@")[0]} for hidden in self.keys or ())


def _names_of(feature: Any) -> set[str]:
    """Return the name of a component, and its URI if it has one."""
    if isinstance(feature, Resource | ResourceTemplate):
        return {feature.key, feature.describe()["name"]}
    return {feature.key}


def component_rule(
    version_of: Callable[[Feature], str], conditions: dict[str, Any], *, shows: bool, only: bool = False
) -> ComponentRule:
    """Return a rule for the arguments of an author.

    Args:
        version_of: Returns the version of a component.
        conditions: ``names``, ``keys``, ``tags`` and ``components``. Empty tags and components are no condition.
        shows: Whether the rule shows what it matches.
        only: Whether it hides everything else.

    Raises:
        TypeError: A condition is not a collection of strings, or does not exist here.
        ValueError: A kind is unknown.
    """
    if conditions.get("version") is not None:
        raise TypeError("enable and disable of funcmcp.compat have no option 'version': features have no versions.")
    unknown = sorted(conditions.keys() - {"names", "keys", "tags", "components", "version"})
    if unknown:
        raise TypeError(
            f"Unknown option {', '.join(map(repr, unknown))} of enable and disable. "
            "Valid options: names, keys, tags, components, only."
        )
    tags = conditions.get("tags") or None
    kinds = conditions.get("components") or None
    rule = visibility_rule(conditions.get("names"), tags, kinds, shows=shows, only=only)
    keys = _checked_keys(conditions.get("keys"))
    return ComponentRule(rule._replace(names=None), version_of, rule.names, keys)


def _checked_keys(keys: Collection[str] | None) -> frozenset[str] | None:
    """Return the keys of a condition; raise TypeError or ValueError for what is not a key."""
    if keys is None:
        return None
    checked = visibility_rule(keys, None, None, shows=True).names or frozenset()
    for key in sorted(checked):
        if ":" not in key:
            raise ValueError(f"Invalid key {key!r}. Write the kind before the name, such as 'tool:add@'.")
    return checked
