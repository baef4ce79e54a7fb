"""Suggested values for an argument: what a completer returns, and what a client receives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import InvalidResponseError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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


def completion_of(member: Mapping[str, Any]) -> Completion:
    """Return the completion that a server has sent; raise InvalidResponseError if one of its members is invalid."""
    values, total, has_more = member.get("values"), member.get("total"), member.get("hasMore")
    if not isinstance(values, list):
        raise InvalidResponseError("The completion has no list 'values'.")
    if total is not None and not isinstance(total, int):
        raise InvalidResponseError(f"'total' of the completion has the type {type(total).__name__}.")
    if has_more is not None and not isinstance(has_more, bool):
        raise InvalidResponseError(f"'hasMore' of the completion has the type {type(has_more).__name__}.")
    return Completion([str(value) for value in values], total, has_more=bool(has_more))
