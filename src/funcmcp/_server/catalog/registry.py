"""The features of one kind, by name or URI."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from funcmcp._public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@public("funcmcp")
class RegistrationError(ValueError):
    """A feature can't be registered; the text says why and what to do."""


class Keyed(Protocol):
    """Anything with a unique key."""

    @property
    def key(self) -> str:
        """The name or URI, unique in its kind."""


F = TypeVar("F", bound=Keyed)


def normalized(name: str) -> str:
    """Return a name in the form in which similar names are equal: they differ by case or compatible characters only."""
    return unicodedata.normalize("NFKC", name).casefold()


class Registry(Generic[F]):
    """Features of one kind in the order of their registration.

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
        is_visible: Decides whether a feature is visible.
        get: Returns the visible feature of exactly this key, or None.
    """

    def __init__(self, kind: str, normalize: Callable[[str], str] = normalized, *, key_name: str = "name") -> None:
        self.kind = kind
        self.version = 0
        self.listeners: list[Callable[[F, int], None]] = []
        self._key_name = key_name
        self._normalize = normalize
        self.is_visible: Callable[[F], bool] = lambda _feature: True
        self._all: dict[str, F] = {}
        self._features: dict[str, F] = {}  # the visible ones
        self._keys: dict[str, str] = {}  # by normalized key

    def get(self, key: str) -> F | None:
        """Return the visible feature with a key, or None."""
        return self._features.get(key)

    def key_like(self, key: str) -> str | None:
        """Return the key of the feature, visible or not, with the same normalized key; None if there is none."""
        return self._keys.get(self._normalize(key))

    def add(self, feature: F) -> None:
        """Add a feature; raise RegistrationError if its key is taken."""
        normalized_key = self._normalize(feature.key)
        existing = self._keys.get(normalized_key)
        if existing is not None:
            detail = "" if existing == feature.key else f", which differs from {existing!r} too little"
            raise RegistrationError(
                f"Duplicate {self.kind} {self._key_name} {feature.key!r}{detail}. "
                f"Give one of the two another {self._key_name}."
            )
        self._keys[normalized_key] = feature.key
        self._all[feature.key] = feature
        if self.is_visible(feature):
            self._features[feature.key] = feature
            try:
                self._notify(feature, 1)
            except RegistrationError:  # a server that mounts this one can't have the feature
                self.remove(feature.key)
                raise

    def remove(self, key: str) -> None:
        """Remove a feature; raise KeyError if no feature has the key."""
        feature = self._all.pop(key)
        del self._keys[self._normalize(key)]
        if self._features.pop(key, None) is not None:
            self._notify(feature, -1)

    def update_visibility(self) -> None:
        """Ask `is_visible` again for every feature."""
        before = self._features
        self._features = {key: feature for key, feature in self._all.items() if self.is_visible(feature)}
        for key, feature in self._all.items():
            if (key in self._features) != (key in before):
                self._notify(feature, 1 if key in self._features else -1)

    def _notify(self, feature: F, change: int) -> None:
        self.version += 1
        for listener in self.listeners:
            listener(feature, change)

    def __contains__(self, key: str) -> bool:
        """Return whether a feature has the key, visible or not."""
        return key in self._all

    def __iter__(self) -> Iterator[F]:
        return iter(tuple(self._features.values()))  # a tool in a worker thread may add a feature meanwhile

    def __len__(self) -> int:
        return len(self._features)
