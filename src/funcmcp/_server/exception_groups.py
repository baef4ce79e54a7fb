"""Exception groups mean what their members mean: how an exception, alone or in a group, decides an answer.

Task groups of asyncio and anyio raise a group even for one failure, and so does a ``raise`` within ``except*``.
"""

from __future__ import annotations

from asyncio import CancelledError

from funcmcp._protocol.errors import ToolError

_MAX_DEPTH = 100
"""Levels of groups whose texts are looked for; a deeper group is not shown."""


def members_of(error: BaseException) -> list[BaseException]:
    """Return the exceptions of a group and of the groups in it, in their order; of another exception, itself.

    A group that contains nothing but itself has none.
    """
    members: list[BaseException] = []
    pending = [error]
    seen: set[int] = set()  # a group may be in several others, which would take exponential time
    while pending:
        current = pending.pop()
        if not isinstance(current, BaseExceptionGroup):
            members.append(current)
        elif id(current) not in seen:
            seen.add(id(current))
            pending.extend(reversed(current.exceptions))
    return members


def meaning_of(error: BaseException) -> BaseException:
    """Return the only member of a group, or a member of one that has nothing but cancellations; otherwise *error*."""
    members = members_of(error)
    if len(members) == 1 or (members and all(isinstance(member, CancelledError) for member in members)):
        return members[0]
    return error


def shown_text(error: BaseException, types: tuple[type[BaseException], ...]) -> str | None:
    """Return the text that clients see of an exception, for a group one line for each member; None if they see none.

    As with `BaseExceptionGroup.split`, a group is shown if all its members are, or if it has one of the types itself.

    Args:
        error: The exception.
        types: The types of exceptions whose text clients see.
    """
    lines = _shown_lines(error, types, set(), 0)
    return "\n".join(lines) if lines else None


def _shown_lines(
    error: BaseException, types: tuple[type[BaseException], ...], seen: set[int], depth: int
) -> list[str] | None:
    if isinstance(error, BaseExceptionGroup) and depth < _MAX_DEPTH:
        if id(error) in seen:  # a group in several others is shown once, as in `members_of`
            return []
        seen.add(id(error))
        lines: list[str] = []
        for member in error.exceptions:
            shown = _shown_lines(member, types, seen, depth + 1)
            if shown is None:
                break
            lines += shown
        else:
            return lines
    return [_text_of(error)] if isinstance(error, types) else None


def _text_of(error: BaseException) -> str:
    text = str(error)
    if not isinstance(error, ToolError) and (not text or isinstance(error, KeyError)):
        return f"{type(error).__name__}: {text}".rstrip(": ")
    return text
