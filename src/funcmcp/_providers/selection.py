"""Transforms that choose features, and that change their names, descriptions and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._authoring.features.registration_checks import feature_name
from funcmcp._objects.definitions import replace
from funcmcp._objects.public_names import public
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
from funcmcp._server.catalog.transformed import Transform
from funcmcp._server.catalog.versions import order_of
from funcmcp._server.catalog.visibility import KINDS, kind_of, visibility_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Literal

    from funcmcp._server.catalog.transformed import AnyFeature, Transformed

    F = TypeVar("F", bound=AnyFeature)
    Component = Literal["tool", "resource", "template", "prompt"]


@public("funcmcp.transforms")
class Select(Transform):
    """Leaves out all features but those that meet all conditions.

    A kind of feature that `components` does not contain remains as it is.

    Args:
        names: Names of tools and prompts, and URIs of resources and templates.
        tags: Tags of which the feature must have at least one.
        components: The kinds of features that are chosen from. By default all of them.

    Raises:
        TypeError: A condition is not a collection of strings.
        ValueError: A kind of feature is unknown.
    """

    def __init__(
        self,
        names: Collection[str] | None = None,
        *,
        tags: Collection[str] | None = None,
        components: Collection[Component] | None = None,
    ) -> None:
        self._rule = visibility_rule(names, tags, None, shows=True)
        self._kinds = visibility_rule(None, None, components, shows=True).kinds or frozenset(KINDS)

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return the feature if it is chosen, or None."""
        if kind_of(feature) not in self._kinds or self._rule.matches(feature):
            return feature
        return None


@public("funcmcp.transforms")
class Hide(Transform):
    """Leaves out the features that meet all conditions. Their names are free for others.

    Arguments and errors are those of `Select`.
    """

    def __init__(
        self,
        names: Collection[str] | None = None,
        *,
        tags: Collection[str] | None = None,
        components: Collection[Component] | None = None,
    ) -> None:
        self._rule = visibility_rule(names, tags, components, shows=False)

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return the feature unless it is left out."""
        return None if self._rule.matches(feature) else feature


@public("funcmcp.transforms")
class Rename(Transform):
    """Gives tools and prompts other names: ``Rename({"search_v2_final": "search"})``.

    Args:
        names: The new names by the names that the features have.

    Raises:
        ValueError: Two features would get the same name.
        RegistrationError: A new name is not allowed.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        self._sources = _reversed(self._names)
        for name in self._sources:
            feature_name(_unused, name, "tool")

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return the feature under its new name."""
        if isinstance(feature, Resource | ResourceTemplate) or feature.name not in self._names:
            return feature
        return with_members(feature, name=self._names[feature.name])

    def source_key(self, kind: type, key: str) -> str:
        """Return the name before the change."""
        return self._sources.get(key, key) if kind in {Tool, Prompt} else key


@public("funcmcp.transforms")
class Describe(Transform):
    """Gives features other descriptions: ``Describe({"search": "Search in all invoices."})``.

    Args:
        descriptions: The new descriptions by the names of tools and prompts, and the URIs of resources and templates.

    Raises:
        TypeError: A description is not a string.
    """

    def __init__(self, descriptions: Mapping[str, str]) -> None:
        self._descriptions = dict(descriptions)
        for key, description in self._descriptions.items():
            if not isinstance(description, str):
                raise TypeError(f"The description of {key} must be a string, not {type(description).__name__}.")

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return the feature with its new description."""
        description = self._descriptions.get(feature.key)
        return feature if description is None else with_members(feature, description=description)


@public("funcmcp.transforms")
class VersionFilter(Transform):
    """Leaves out the features whose version is not in a range: ``VersionFilter(version_lt="3")``.

    Args:
        version_gte: The lowest version that remains.
        version_lt: The version from which on no version remains.
        include_unversioned: Whether features without a version remain.

    Raises:
        ValueError: Neither a lowest nor a highest version is given.
    """

    def __init__(
        self, *, version_gte: str | None = None, version_lt: str | None = None, include_unversioned: bool = True
    ) -> None:
        if version_gte is None and version_lt is None:
            raise ValueError("VersionFilter needs version_gte=, version_lt= or both.")
        self._order_of = order_of
        self._lowest = None if version_gte is None else order_of(version_gte)
        self._end = None if version_lt is None else order_of(version_lt)
        self._include_unversioned = include_unversioned

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return the feature if its version is in the range."""
        if feature.version is None:
            return feature if self._include_unversioned else None
        order = self._order_of(feature.version)
        is_too_low = self._lowest is not None and order < self._lowest
        is_too_high = self._end is not None and order >= self._end
        return None if is_too_low or is_too_high else feature


def with_members(feature: F, **members: Any) -> F:
    """Return a feature whose definition has other members; ``name`` is also the name of a tool or prompt."""
    changes: dict[str, Any] = {"describe": lambda: {**feature.describe(), **members}}
    if "name" in members and isinstance(feature, Tool | Prompt):
        changes["name"] = members["name"]
    return replace(feature, **changes)


def _reversed(names: Mapping[str, str]) -> dict[str, str]:
    sources: dict[str, str] = {}
    for source, name in names.items():
        if name in sources:
            raise ValueError(f"{sources[name]!r} and {source!r} would both be called {name!r}. Choose another name.")
        sources[name] = source
    return sources


def _unused() -> None:
    """Stand for a function where only a name is checked."""
