"""Names of features, made of the names of functions."""

from __future__ import annotations

import re

_BEFORE_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Return a name in snake_case: `AddNumbers` -> `add_numbers`; one that is in it already stays."""
    return _BEFORE_CAPITAL.sub("_", name).lower()


def humanise(name: str) -> str:
    """Return a name for people: `add_numbers` and `AddNumbers` -> `Add Numbers`."""
    words = re.split(r"[_.-]+", _BEFORE_CAPITAL.sub("_", name))
    return " ".join(word[:1].upper() + word[1:] for word in words if word)
