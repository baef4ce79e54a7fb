"""Features on their way into a catalog: what transforms make of them.

How it works: a `TransformedFeatures` keeps each feature that was added to it, and what the transforms have made of it:
none, one or several features. These are in the catalog, and are removed with the first one. A transform that is added
later applies to all of them again. So lists and calls find plain features, and a transform costs a call nothing.
"""

from __future__ import annotations

import inspect
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._objects.definitions import replace
from funcmcp._objects.public_names import public
from funcmcp._server.catalog.features import (
    ExtensionMethod,
    Prompt,
    Resource,
    ResourceLister,
    ResourceTemplate,
    Skill,
    Tool,
)
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from funcmcp._server.catalog.features import Addable

    AnyFeature: TypeAlias = Tool | Resource | ResourceTemplate | Prompt
    Transformed: TypeAlias = AnyFeature | Iterable[AnyFeature] | None
    AnyTransform: TypeAlias = "Transform | Callable[[AnyFeature], Transformed]"

_Place: TypeAlias = tuple[type, str, str | None, tuple[int, ...]]
"""The kind, key, version and position of a feature."""

FEATURES = (Tool, Resource, ResourceTemplate, Prompt)
"""The classes of features that lists show."""


@public("funcmcp.transforms")
class Transform:
    """Changes the features of a server, a mounted server or a provider before clients see them.

    A subclass overrides ``__call__``. A plain function that takes a feature is a transform as well.

    Example:
        ```python
        class OnlyReading(Transform):
            def __call__(self, feature):
                return feature if "read" in feature.tags else None
        ```
    """

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return what becomes of a feature: one feature, several, or None to leave it out.

        Args:
            feature: A `Tool`, `Resource`, `ResourceTemplate` or `Prompt` of `funcmcp.providers`. It is immutable:
                `dataclasses.replace` returns a changed copy.

        Raises:
            RegistrationError: The feature can't be changed in this way.
        """
        return feature

    def features(self) -> Iterable[AnyFeature]:
        """Return features that the transform adds by itself."""
        return ()

    def source_key(self, kind: type, key: str) -> str:  # noqa: ARG002 - for subclasses
        """Return the key that a feature had before the transform, as far as it is known.

        A provider that can look up one feature is asked for this key, so that it need not list all of them.

        Args:
            kind: The class of the feature.
            key: The name or URI that a client uses.
        """
        return key

    def list_of(self, lister: ResourceLister) -> ResourceLister:
        """Return what becomes of a function that lists resources."""
        return lister

    def skill_of(self, skill: Skill) -> Skill:
        """Return what becomes of a skill, whose files the transform gets as resources."""
        return skill


class TransformedFeatures:
    """The features of one source, and what transforms make of them.

    Args:
        add: Adds a feature to the catalog; raises RegistrationError.
        remove: Removes a feature from the catalog.
        transforms: The transforms, the first one applied first.

    Attributes:
        transforms: The transforms.
    """

    def __init__(
        self,
        add: Callable[[Addable], None],
        remove: Callable[[Addable], None],
        transforms: Iterable[AnyTransform] = (),
    ) -> None:
        self._add = add
        self._remove = remove
        self.transforms: list[AnyTransform] = [*transforms]
        self._sources: dict[_Place, Addable] = {}
        self._results: dict[_Place, list[Addable]] = {}
        self._names: Counter[tuple[type, str, str | None]] = Counter()
        for transform in self.transforms:
            _check_transform(transform)
        try:
            self._apply_again()
        except BaseException:
            self._remove_results()
            raise

    def add(self, feature: Addable) -> None:
        """Add what the transforms make of a feature; raise RegistrationError, and add nothing, if that fails."""
        place = _place_of(feature)
        if place in self._sources:
            raise RegistrationError(f"Duplicate name or URI {feature.key!r}. Give one of the two another one.")
        self._results[place] = self._added(self.results_of(feature))
        self._sources[place] = feature
        self._names[place[:3]] += 1

    def remove(self, feature: Addable) -> None:
        """Remove what the transforms have made of a feature; raise KeyError if it was not added."""
        place = _place_of(feature)
        del self._sources[place]
        self._names[place[:3]] -= 1
        if not self._names[place[:3]]:
            del self._names[place[:3]]
        for result in self._results.pop(place):
            self._remove(result)

    def has(self, feature: Addable) -> bool:
        """Return whether a feature of the same key, version and position was added."""
        return _place_of(feature) in self._sources

    def has_name(self, feature: Addable) -> bool:
        """Return whether a feature of the same key and version was added, at any position."""
        return self._names[_place_of(feature)[:3]] > 0

    def remove_key(self, kind: type, key: str) -> None:
        """Remove the feature of a key in all versions; raise KeyError if there is none."""
        places = [place for place in self._sources if place[0] is kind and place[1] == key]
        if not places:
            raise KeyError(key)
        for place in places:
            self.remove(self._sources[place])

    def clear(self) -> None:
        """Remove everything, the last feature first, so that a name is not given to all that wait for it in turn."""
        for feature in reversed(tuple(self._sources.values())):
            self.remove(feature)

    def add_transform(self, transform: AnyTransform) -> None:
        """Add a transform behind the existing ones; raise RegistrationError, and change nothing, if that fails."""
        _check_transform(transform)
        self.transforms.append(transform)
        try:
            self._apply_again()
        except BaseException:
            self.transforms.pop()
            self._apply_again()
            raise

    def _apply_again(self) -> None:
        """Replace everything in the catalog by what the transforms make of the sources now."""
        self._remove_results()
        for place, feature in self._sources.items():
            self._results[place] = self._added(self.results_of(feature))
        for number, transform in enumerate(self.transforms):
            if isinstance(transform, Transform):
                for feature in transform.features():
                    results = self._added(self._through(feature, self.transforms[number + 1 :]))
                    self._results[type(transform), f"{number} {feature.key}", feature.version, ()] = results

    def _remove_results(self) -> None:
        for results in reversed(self._results.values()):
            for result in results:
                self._remove(result)
        self._results.clear()

    def results_of(self, feature: Addable) -> list[Addable]:
        """Return what the transforms make of a feature, without adding it."""
        return self._through(feature, self.transforms)

    def _through(self, feature: Addable, transforms: Sequence[AnyTransform]) -> list[Addable]:
        features: list[Addable] = [feature]
        for transform in transforms:
            changed: list[Addable] = []
            for item in features:
                changed += _transformed(item, transform)
            features = changed
        return [_at_position(item, feature.position) for item in features]

    def _added(self, features: list[Addable]) -> list[Addable]:
        added: list[Addable] = []
        try:
            for feature in features:
                self._add(feature)
                added.append(feature)
        except RegistrationError:
            for feature in added:
                self._remove(feature)
            raise
        return added


def listed_transforms(transforms: Sequence[AnyTransform]) -> list[AnyTransform]:
    """Return the transforms of an option as a list; raise TypeError if the option is one transform."""
    if callable(transforms):
        raise TypeError("transforms must be a list of transforms, not one. Write transforms=[...].")
    return list(transforms)


def _check_transform(transform: object) -> None:
    """Raise TypeError for a value that is not a transform."""
    if isinstance(transform, type):
        raise TypeError(f"A transform is an object, not a class. Write {transform.__name__}(...).")
    if inspect.iscoroutinefunction(transform):
        raise TypeError(f"A transform must not be async: {transform.__name__}. Write def in place of async def.")
    if not callable(transform):
        raise TypeError(f"A transform is a function or a Transform, not {type(transform).__name__}.")


def _place_of(feature: Addable) -> _Place:
    return type(feature), feature.key, feature.version, feature.position


def _at_position(feature: Any, position: tuple[int, ...]) -> Any:
    """Return what a transform has made of a feature, which may be a new one, at the position of that feature."""
    return feature if feature.position == position else replace(feature, position=position)


def _transformed(feature: Addable, transform: AnyTransform) -> list[Addable]:
    """Return what one transform makes of a feature; raise TypeError if it returns something else than features."""
    if isinstance(feature, ResourceLister):
        return [transform.list_of(feature) if isinstance(transform, Transform) else feature]
    if isinstance(feature, Skill):
        return [transform.skill_of(feature) if isinstance(transform, Transform) else feature]
    if isinstance(feature, ExtensionMethod):
        return [feature]
    result = transform(feature)
    if result is None:
        return []
    features: list[Any] = [result] if isinstance(result, FEATURES) else list(result)
    for item in features:
        if not isinstance(item, FEATURES):
            raise TypeError(f"A transform returns features, a list of them, or None, not {type(item).__name__}.")
    return features
