"""The features of one kind, by name or URI.

How it works: features with one key are versions of each other. Lookup and iteration have the newest one that is
visible; `in_version` finds the others. Listeners get every version, so that a server that mounts this one has all of
them. Lists are in the order of the features' positions, so that a provider that answers late, or again, does not change
it. Of two features that can't both be there, one without a provider, or of the first provider, has the name. The other
one waits until the name is free.
"""

from __future__ import annotations

import operator
import unicodedata
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from funcmcp._objects.public_names import public
from funcmcp._server.catalog.versions import newest_first, order_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


@public("funcmcp")
class RegistrationError(ValueError):
    """A feature can't be registered; the text says why and what to do."""


class Keyed(Protocol):
    """Anything with a unique key."""

    @property
    def key(self) -> str:
        """The name or URI, unique in its kind."""

    @property
    def version(self) -> str | None:
        """The version, if there are several features of one key."""

    @property
    def position(self) -> tuple[int, ...]:
        """The place of its source in lists."""


F = TypeVar("F", bound=Keyed)

BY_POSITION = operator.attrgetter("position")
"""The key by which features, and the sources of features, are sorted."""


def normalized(name: str) -> str:
    """Return a name in the form in which similar names are equal: they differ by case or compatible characters only."""
    return unicodedata.normalize("NFKC", name).casefold()


class Registry(Generic[F]):
    """Features of one kind in the order of their positions, and of their registration.

    Lookup is exact and case-sensitive. Lookup, iteration and length contain the visible features only.

    Args:
        kind: The kind of feature, for errors.
        normalize: Returns the form of a key in which it must be unique. By default names that a person or a model
            could mistake for each other are duplicates.
        key_name: The word for the features' keys, for errors.

    Attributes:
        version: A number that grows with each change, so that a cached list can be recognized as outdated.
        listeners: Functions that are called after each change, with the feature and 1 if it was added or has become
            visible, or -1 if it was removed or hidden.
        hidden_listeners: Functions that are called with a feature and 1 if it is added and hidden, or -1 if it is
            removed while it is hidden.
        waiting_listeners: Functions that are called with a feature that has to wait for its name, and the reason.
        is_visible: Decides whether a feature is visible.
        get: Returns the visible feature of exactly this key, or None.
    """

    def __init__(self, kind: str, normalize: Callable[[str], str] = normalized, *, key_name: str = "name") -> None:
        self.kind = kind
        self.version = 0
        self.listeners: list[Callable[[F, int], None]] = []
        self.hidden_listeners: list[Callable[[F, int], None]] = []
        self.waiting_listeners: list[Callable[[F, str], None]] = []
        self._key_name = key_name
        self._normalize = normalize
        self.is_visible: Callable[[F], bool] = lambda _feature: True
        self._all: dict[tuple[str, str | None], F] = {}  # by key and version
        self._visible: set[tuple[str, str | None]] = set()
        self._features: dict[str, F] = {}  # the newest visible one of each key
        self._versions: dict[str, list[F]] = {}  # the features that have versions by key, the newest first
        self.get: Callable[[str], F | None] = self._features.get
        self._keys: dict[str, str] = {}  # by normalized key
        self._waiting: dict[str, dict[int, F]] = {}  # features without their name, by normalized key and their id
        self._has_positions = False

    def key_like(self, key: str) -> str | None:
        """Return the key of the feature, visible or not, with the same normalized key; None if there is none."""
        return self._keys.get(self._normalize(key))

    def in_version(self, key: str, version: str) -> F | None:
        """Return the visible feature of a key in a version; None if there is none."""
        order = order_of(version)
        for feature in self._versions.get(key, ()):
            if order_of(feature.version) == order and (key, feature.version) in self._visible:
                return feature
        return None

    def visible_versions(self, key: str) -> list[str]:
        """Return the versions of the visible features of a key, the newest first."""
        features = self._versions.get(key, ())
        return [str(feature.version) for feature in features if (key, feature.version) in self._visible]

    def versions_of(self, key: str) -> list[F]:
        """Return the features of a key, visible or not, the newest first."""
        feature = self._all.get((key, None))
        return list(self._versions.get(key, ())) if feature is None else [feature]

    def rivals_of(self, feature: F) -> list[F]:
        """Return the features, visible or not, that can't be here beside another one."""
        key = self._keys.get(self._normalize(feature.key))
        if key is None:
            return []
        versions = self._versions.get(key, ())
        if key != feature.key or feature.version is None or not versions:
            return list(versions) or [self._all[key, None]]
        return [other for other in versions if other.version == feature.version]

    def holds(self, feature: F) -> bool:
        """Return whether this very feature was added."""
        waiting = self._waiting.get(self._normalize(feature.key), ())
        return id(feature) in waiting or any(item is feature for item in self.versions_of(feature.key))

    def add(self, feature: F) -> None:
        """Add a feature, or let it wait for its name; raise RegistrationError if one at its position has the name."""
        rivals = self.rivals_of(feature)
        for rival in rivals:
            if rival.position == feature.position:
                raise self._error(feature, rival)
            if rival.position < feature.position:
                self._let_wait(feature, rival)
                return
        for rival in rivals:
            self._remove(rival)
            self._let_wait(rival, feature)
        self._put(feature)

    def _let_wait(self, feature: F, winner: F) -> None:
        self._waiting.setdefault(self._normalize(feature.key), {})[id(feature)] = feature
        for listener in self.waiting_listeners:
            listener(feature, str(self._error(feature, winner)))

    def _put(self, feature: F) -> None:
        self._keys[self._normalize(feature.key)] = feature.key
        self._all[feature.key, feature.version] = feature
        self._has_positions = self._has_positions or bool(feature.position)
        if feature.version is not None:
            self._versions[feature.key] = newest_first([*self._versions.get(feature.key, ()), feature])
        if not self.is_visible(feature):
            self._notify_hidden(feature, 1)
        else:
            self._visible.add((feature.key, feature.version))
            self._choose(feature)
            try:
                self._notify(feature, 1)
            except RegistrationError:  # a server that mounts this one can't have the feature
                self.discard(feature)
                raise

    def _error(self, feature: F, other: F) -> RegistrationError:
        """Return the error for a feature that can't be here beside another one."""
        if feature.key != other.key or (feature.version is None and other.version is None):
            detail = "" if other.key == feature.key else f", which differs from {other.key!r} too little"
            upstream = getattr(other, "upstream", None)
            source = "" if upstream is None else f" The first one is that of {upstream.upstream.name}."
            return RegistrationError(
                f"Duplicate {self.kind} {self._key_name} {feature.key!r}{detail}. "
                f"Give one of the two another {self._key_name}.{source}"
            )
        if feature.version is None or other.version is None:
            return RegistrationError(
                f"The {self.kind} {feature.key!r} has a version in one place and none in another. "
                "Give all of them version=, or none."
            )
        return RegistrationError(
            f"Duplicate version {feature.version!r} of the {self.kind} {feature.key!r}. "
            "Give one of the two another version."
        )

    def remove(self, key: str) -> None:
        """Remove the feature of a key in all versions; raise KeyError if there is none."""
        features = list(self._versions.get(key, ())) or [self._all[key, None]]
        for feature in features:
            self.discard(feature)

    def discard(self, feature: F) -> None:
        """Remove one version of a feature, and give its name to one that waits; raise KeyError if there is none."""
        normalized_key = self._normalize(feature.key)
        waiting = self._waiting.get(normalized_key, {})
        if waiting.pop(id(feature), None) is not None:
            if not waiting:
                del self._waiting[normalized_key]
            return
        self._remove(feature)
        for item in sorted(self._waiting.pop(normalized_key, {}).values(), key=BY_POSITION):
            self.add(item)

    def _remove(self, feature: F) -> None:
        key, version = feature.key, feature.version
        removed = self._all.pop((key, version))
        remaining = [other for other in self._versions.pop(key, ()) if other.version != version]
        if remaining:
            self._versions[key] = remaining
        else:
            del self._keys[self._normalize(key)]
        if (key, version) in self._visible:
            self._visible.discard((key, version))
            self._choose(removed)
            self._notify(removed, -1)
        else:
            self._notify_hidden(removed, -1)

    def exchange(self, feature: F, replacement: F) -> None:
        """Put a feature of the same key and version in the place of another one; raise KeyError without that one."""
        place = feature.key, feature.version
        if self._all[place] is not feature or place != (replacement.key, replacement.version):
            raise KeyError(place)
        self._all[place] = replacement
        if feature.key in self._versions:
            self._versions[feature.key] = [
                replacement if other is feature else other for other in self._versions[feature.key]
            ]
        if place in self._visible:
            self._choose(replacement)
            self._notify(feature, -1)
            self._notify(replacement, 1)

    def _choose(self, feature: F) -> None:
        """Choose the newest visible version of a feature that was added or removed."""
        for candidate in self._versions.get(feature.key, (feature,)):
            if (candidate.key, candidate.version) in self._visible:
                self._features[feature.key] = candidate
                return
        self._features.pop(feature.key, None)

    def update_visibility(self) -> None:
        """Ask `is_visible` again for every feature."""
        for place, feature in tuple(self._all.items()):
            is_visible = self.is_visible(feature)
            if self._all.get(place) is not feature or is_visible == (place in self._visible):
                continue  # a listener has removed it, or it stays as it is
            if is_visible:
                self._visible.add(place)
            else:
                self._visible.discard(place)
            self._choose(feature)
            self._notify(feature, 1 if is_visible else -1)
        self._features = {key: self._features[key] for key, _ in self._all if key in self._features}
        self.get = self._features.get

    def describe(self, feature: Any) -> Mapping[str, Any]:
        """Return the definition of a feature, with the versions that there are, if it has one."""
        definition: Mapping[str, Any] = feature.describe()
        if feature.version is None:
            return definition
        meta = definition.get("_meta", {})
        known = meta.get("fastmcp", {})
        visible = self.visible_versions(feature.key) or known.get("versions", [])  # of a catalog beside this one
        own = {**known, "version": feature.version, "versions": visible}
        return {**definition, "_meta": {**meta, "fastmcp": own}}

    def every(self) -> list[F]:
        """Return the features in all versions, also those that are hidden."""
        return self._in_order(self._all.values())

    def waiting(self) -> list[F]:
        """Return the features that have to wait for their names."""
        return [feature for features in self._waiting.values() for feature in features.values()]

    def empty(self) -> Registry[F]:
        """Return a registry without features, with the same rules."""
        return Registry(self.kind, self._normalize, key_name=self._key_name)

    def every_version(self) -> Iterator[F]:
        """Iterate over the visible features in all versions."""
        visible = [feature for place, feature in self._all.items() if place in self._visible]
        return iter(self._in_order(visible))

    def _in_order(self, features: Iterable[F]) -> list[F]:
        ordered = list(features)
        if self._has_positions:
            ordered.sort(key=BY_POSITION)
        return ordered

    def _notify(self, feature: F, change: int) -> None:
        self.version += 1
        for listener in self.listeners:
            listener(feature, change)

    def _notify_hidden(self, feature: F, change: int) -> None:
        for listener in self.hidden_listeners:
            listener(feature, change)

    def __contains__(self, key: str) -> bool:
        """Return whether a feature has the key, visible or not."""
        return self._keys.get(self._normalize(key)) == key

    def __iter__(self) -> Iterator[F]:
        return iter(self._in_order(self._features.values()))  # a tool in a worker thread may add a feature meanwhile

    def __len__(self) -> int:
        return len(self._features)
