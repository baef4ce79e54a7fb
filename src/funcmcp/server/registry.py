"""The features that a server offers, by name."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class RegistrationError(ValueError):
    """A feature can't be registered; the text says why and what to do."""


class Named(Protocol):
    """Anything with a unique name."""

    @property
    def name(self) -> str:
        """The name, unique in its kind."""


F = TypeVar("F", bound=Named)


class Registry(Generic[F]):
    """Features of one kind in the order of their registration.

    Look-up is exact and case-sensitive. A name that differs from a registered one only by case or by
    compatible Unicode forms is refused, because a person or a model could take one for the other.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.version = 0
        """Goes up with every change, so that a cached list knows when it is old."""
        self._features: dict[str, F] = {}
        self._folded: dict[str, str] = {}
        self.get: Callable[[str], F | None] = self._features.get
        """Returns the feature of exactly this name, or None."""

    def add(self, feature: F) -> None:
        """Add a feature; raise RegistrationError if its name is taken."""
        folded = _fold(feature.name)
        taken = self._folded.get(folded)
        if taken is not None:
            detail = "" if taken == feature.name else f" (as {taken!r}, which looks the same)"
            raise RegistrationError(
                f"A {self.kind} named {feature.name!r} is registered already{detail}; give one of the two another name."
            )
        self._folded[folded] = feature.name
        self._features[feature.name] = feature
        self.version += 1

    def remove(self, name: str) -> None:
        """Remove a feature; raise KeyError if there is none of that name."""
        del self._features[name]
        del self._folded[_fold(name)]
        self.version += 1

    def __iter__(self) -> Iterator[F]:
        return iter(self._features.values())

    def __len__(self) -> int:
        return len(self._features)


def _fold(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
