"""Which features clients see: the rules of `MCPServer.enable` and `MCPServer.disable`.

How it works: a feature begins with its own option ``enabled``. The rules apply in the order in which they were added,
and the last one that matches a feature decides. A rule with `only` also hides every feature that it does not match, so
it replaces all rules before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from funcmcp._server.catalog.features import ExtensionMethod, Prompt, Resource, ResourceTemplate, Tool

if TYPE_CHECKING:
    from collections.abc import Collection

    from funcmcp._server.calls.feature import Feature

KINDS: dict[str, type[Feature]] = {
    "tool": Tool,
    "resource": Resource,
    "template": ResourceTemplate,
    "prompt": Prompt,
    "method": ExtensionMethod,
}
"""Kinds of features by the names that rules have for them."""

_KIND_NAMES = {cls: kind for kind, cls in KINDS.items()}


class Rule(Protocol):
    """Shows or hides the features that it matches."""

    @property
    def shows(self) -> bool:
        """Whether it shows the features that it matches; otherwise it hides them."""

    @property
    def only(self) -> bool:
        """Whether it hides all features that it does not match."""

    @property
    def kinds(self) -> frozenset[str] | None:
        """The kinds of features that it matches, as keys of `KINDS`; None for any."""

    @property
    def conditions(self) -> tuple[Any, ...]:
        """The conditions of a match. Rules with equal conditions match the same features."""

    def matches(self, feature: Any, /) -> bool:
        """Return whether it decides about a feature."""


class VisibilityRule(NamedTuple):
    """Shows or hides the features that meet all of its conditions.

    Attributes:
        shows: Whether it shows them.
        names: Names, or URIs of resources and templates; None for any.
        tags: Tags of which the feature has one; None for any.
        kinds: Keys of `KINDS`; None for any.
        only: Whether it hides all other features.
    """

    shows: bool
    names: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    only: bool = False

    def matches(self, feature: Feature) -> bool:
        """Return whether a feature meets all conditions."""
        if self.names is not None and feature.key not in self.names:
            return False
        if self.tags is not None and self.tags.isdisjoint(feature.tags):
            return False
        return self.kinds is None or kind_of(feature) in self.kinds

    @property
    def conditions(self) -> tuple[Any, ...]:
        """The names, tags and kinds."""
        return self.names, self.tags, self.kinds


class Visibility:
    """The rules of one server.

    Attributes:
        version: A number that grows with each rule.
    """

    def __init__(self) -> None:
        self.version: int = 0
        self._rules: list[Rule] = []

    def __len__(self) -> int:
        return len(self._rules)

    @property
    def rules(self) -> list[Rule]:
        """The rules, the last one of which decides."""
        return self._rules

    def add(self, rule: Rule) -> None:
        """Add a rule behind the existing ones."""
        self.version += 1
        if rule.only:
            self._rules = [rule]
            return
        # A rule with the same conditions can't decide any more, and a server may change its mind for years.
        remaining = [existing for existing in self._rules if existing.only or existing.conditions != rule.conditions]
        self._rules = [*remaining, rule]

    def clear(self) -> None:
        """Remove all rules."""
        self.version += 1
        self._rules = []

    def allows(self, feature: Feature) -> bool:
        """Return whether clients see a feature."""
        return feature.is_built_in or self.decide(feature, default=feature.enabled)

    def decide(self, feature: Feature, *, default: bool) -> bool:
        """Return whether clients see a feature; *default* if no rule matches it."""
        visible = default
        for rule in self._rules:
            if rule.matches(feature):
                visible = rule.shows
            elif rule.only:
                visible = False
        return visible


def kind_of(feature: Feature) -> str:
    """Return the kind of a feature by its name in `KINDS`."""
    return _KIND_NAMES[type(feature)]


def visibility_rule(
    names: Collection[str] | None,
    tags: Collection[str] | None,
    kinds: Collection[str] | None,
    *,
    shows: bool,
    only: bool = False,
) -> VisibilityRule:
    """Return a rule for the arguments of an author.

    Raises:
        TypeError: A condition is not a collection of strings.
        ValueError: A kind is unknown.
    """
    for condition, values in (("names", names), ("tags", tags), ("components", kinds)):
        is_collection = isinstance(values, list | tuple | set | frozenset)
        if values is not None and not (is_collection and all(isinstance(value, str) for value in values)):
            raise TypeError(f'{condition} must be a set of strings, such as {{"admin"}}; got {values!r:.60}.')
    unknown = sorted(set(kinds or ()) - KINDS.keys())
    if unknown:
        raise ValueError(f"Unknown kind of feature {unknown[0]!r}. Valid kinds: {', '.join(KINDS)}.")
    return VisibilityRule(shows, _conditions(names), _conditions(tags), _conditions(kinds), only)


def _conditions(values: Collection[str] | None) -> frozenset[str] | None:
    return None if values is None else frozenset(values)
