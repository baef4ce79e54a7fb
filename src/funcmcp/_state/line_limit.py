"""Limits for the lines of the log that clients and other servers can cause."""

from __future__ import annotations

import logging
import traceback
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_logger = logging.getLogger("funcmcp")

_PERIOD = 60.0
"""Seconds in which one line of a kind is written."""

MAX_SUBJECTS = 1_000
"""Subjects of which each has a line of its own."""

_MAX_CAUSES = 5
_MAX_FRAMES = 50
_MAX_TEXT = 600
"""Characters of a text from outside in one line."""


class LineLimit:
    """Writes at most one line of a kind in a minute, and the others at the level DEBUG. The next line has their number.

    Args:
        level: The level of the lines.
        clock: Returns monotonic seconds.
    """

    __slots__ = ("_clock", "_left_out", "_level", "_next_at")

    def __init__(self, level: int = logging.WARNING, clock: Callable[[], float] = monotonic) -> None:
        self._level = level
        self._clock = clock
        self._next_at = float("-inf")
        self._left_out = 0

    def write(self, message: str, *arguments: object, error: BaseException | None = None) -> None:
        """Write a line, at the level DEBUG if one was written in the last minute.

        Args:
            message: The message, with a placeholder for each argument.
            arguments: What the placeholders stand for. Texts of clients must be escaped.
            error: An error whose traceback follows the line. Its texts are escaped: they may have what a user calls
                itself.
        """
        now = self._clock()
        if now < self._next_at:
            self._left_out += 1
            _write(logging.DEBUG, message, arguments, error)
            return
        self._next_at = now + _PERIOD
        if self._left_out:
            message, arguments = message + " There were %d more since the last such line.", (*arguments, self._left_out)
            self._left_out = 0
        _write(self._level, message, arguments, error)


class LineOfEach:
    """Writes one line for each subject. The subjects behind the first `MAX_SUBJECTS` have one in a minute together.

    Another server may choose the subjects, such as names of tools, so neither the memory nor the log grows with them.

    Args:
        level: The level of the lines.
        clock: Returns monotonic seconds.
    """

    __slots__ = ("_further", "_level", "_subjects")

    def __init__(self, level: int = logging.WARNING, clock: Callable[[], float] = monotonic) -> None:
        self._level = level
        self._subjects: set[int] = set()  # hashes, because a subject may be as long as a list of another server
        self._further = LineLimit(level, clock)

    def write(self, subject: Hashable, message: str, *arguments: object) -> None:
        """Write a line, unless one of the first subjects has one already.

        Args:
            subject: What the line is about.
            message: The message, with a placeholder for each argument.
            arguments: What the placeholders stand for. Texts from outside must be escaped.
        """
        if hash(subject) in self._subjects:
            return
        if self.count_as_written(subject):
            _logger.log(self._level, message, *arguments)
        else:
            self._further.write(message, *arguments)

    def count_as_written(self, subject: Hashable) -> bool:
        """Write no line for a subject later; return False, and change nothing, if there are too many subjects."""
        has_place = len(self._subjects) < MAX_SUBJECTS
        if has_place:
            self._subjects.add(hash(subject))
        return has_place


def _write(level: int, message: str, arguments: tuple[object, ...], error: BaseException | None) -> None:
    if error is None:
        _logger.log(level, message, *arguments)
    elif _logger.isEnabledFor(level):
        exc_info = (type(error), error, error.__traceback__)
        record = _logger.makeRecord(_logger.name, level, __file__, 0, message, arguments, exc_info)
        record.exc_text = _escaped_traceback(error)  # which formatters take in place of the one of *exc_info*
        _logger.handle(record)


def _escaped_traceback(error: BaseException) -> str:
    """Return the traceback of an error and of its causes, with their texts escaped."""
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(parts) < _MAX_CAUSES:
        frames = "".join(traceback.format_tb(cause.__traceback__, -_MAX_FRAMES))
        text = f"{type(cause).__name__}: {escaped(str(cause))}"
        parts.insert(0, f"Traceback (most recent call last):\n{frames}{text}")
        cause = cause.__cause__ or cause.__context__
    return "\n\n".join(parts)


def escaped(text: str) -> str:
    """Return a text from outside for one line of the log, at most 600 characters of it."""
    return text[:_MAX_TEXT].encode("unicode_escape").decode("ascii")
