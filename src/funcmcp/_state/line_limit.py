"""A limit for the lines of the log that clients can cause."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_logger = logging.getLogger("funcmcp")

_PERIOD = 60.0
"""Seconds in which one line of a kind is written."""


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
            error: An error whose traceback follows the line.
        """
        now = self._clock()
        if now < self._next_at:
            self._left_out += 1
            _logger.debug(message, *arguments, exc_info=error)
            return
        self._next_at = now + _PERIOD
        if self._left_out:
            message, arguments = message + " There were %d more since the last such line.", (*arguments, self._left_out)
            self._left_out = 0
        _logger.log(self._level, message, *arguments, exc_info=error)
