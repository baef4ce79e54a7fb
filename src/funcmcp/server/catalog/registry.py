"""The features that a server offers, by name or URI."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class RegistrationError(ValueError):
    """A feature can't be registered; the text says why and what to do."""


class Keyed(Protocol):
    """Anything with a unique key."""

    @property
    def key(self) -> str:
        """The name or URI, unique in its kind."""


F = TypeVar("F", bound=Keyed)


def looks(name: str) -> str:
    """Return what a name looks like to a person: the same for names that differ by case or compatible forms only."""
    return unicodedata.normalize("NFKC", name).casefold()


class Registry(Generic[F]):
    """Features of one kind in the order of their registration.

    Look-up is exact and case-sensitive.

    Args:
        kind: what the features are, for errors.
        looks: two keys for which it returns the same are one too many. By default it is as `looks` says, because a
            person or a model could take one name for the other.
        by: what their keys are, for errors.
    """

    def __init__(self, kind: str, looks: Callable[[str], str] = looks, *, by: str = "name") -> None:
        self.kind = kind
        self._by = by
        self._looks = looks
        self.version = 0
        """Goes up with every change, so that a cached list knows when it is old."""
        self.listeners: list[Callable[[], None]] = []
        """Called after every change."""
        self._features: dict[str, F] = {}
        self._folded: dict[str, str] = {}
        self.get: Callable[[str], F | None] = self._features.get
        """Returns the feature of exactly this key, or None."""

    def add(self, feature: F) -> None:
        """Add a feature; raise RegistrationError if its key is taken."""
        folded = self._looks(feature.key)
        taken = self._folded.get(folded)
        if taken is not None:
            detail = "" if taken == feature.key else f" (as {taken!r}, which looks the same)"
            raise RegistrationError(
                f"A {self.kind} with the {self._by} {feature.key!r} is registered already{detail}; "
                f"give one of the two another {self._by}."
            )
        self._folded[folded] = feature.key
        self._features[feature.key] = feature
        self._changed()

    def remove(self, key: str) -> None:
        """Remove a feature; raise KeyError if there is none of that key."""
        del self._features[key]
        del self._folded[self._looks(key)]
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        for listener in self.listeners:
            listener()

    def __iter__(self) -> Iterator[F]:
        return iter(tuple(self._features.values()))  # a plain tool, in its thread, may add a feature in the meantime

    def __len__(self) -> int:
        return len(self._features)
