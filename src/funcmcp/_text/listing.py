"""Numbers and names in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as "1 error" or "2 errors"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def some_of(names: Sequence[str], limit: int) -> str:
    """Return the names, or the first ones and the number of the others, such as "a, b and 3 more"."""
    text = ", ".join(names[:limit])
    return text if len(names) <= limit else f"{text} and {len(names) - limit} more"
