"""The result of a completer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from funcmcp._public_names import public

if TYPE_CHECKING:
    from collections.abc import Sequence


@public("funcmcp")
@dataclass(frozen=True, slots=True)
class Completion:
    """Suggestions for a value that a user has begun to type.

    Attributes:
        values: Suggested values, the best first; clients get at most 100 of them.
        total: The number of all matching values; None if it is not known.
        has_more: Whether more values match than those in `values`.
    """

    values: Sequence[str]
    total: int | None = None
    has_more: bool = False
