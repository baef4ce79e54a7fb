"""Reading of the iterators that functions return, such as generators, ``map(...)`` and ``itertools.count()``.

An iterator may never end. It is read up to `MAX_MEMBERS`, so that it can't use up the memory of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO, IOBase, StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_MEMBERS = 1_000_000
BUILT_IN = frozenset({bool, bytes, dict, float, int, list, str, tuple, type(None)})
"""Types of values that are no iterators. To ask an abstract class takes longer than most other steps of a call."""


def with_members(value: Any, is_over: Callable[[], bool] | None = None) -> Any:
    """Return the members of an iterator as a list, the content of a file in memory, and any other value unchanged.

    Other files are not iterators here.

    Args:
        value: What a function returned.
        is_over: Returns whether the members are no longer needed, so that the reading ends.

    Raises:
        RuntimeError: The iterator has more than `MAX_MEMBERS` members.
    """
    if isinstance(value, BytesIO | StringIO):
        return value.getvalue()
    if not isinstance(value, Iterator) or isinstance(value, IOBase):
        return value
    members: list[Any] = []
    for member in value:
        if is_over is not None and is_over():
            break
        if len(members) == MAX_MEMBERS:
            raise RuntimeError(f"The returned iterator has more than {MAX_MEMBERS:,} members. Return fewer of them.")
        members.append(member)
    return members
