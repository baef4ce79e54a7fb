"""Whether something outside of the process fails. The first of several failures is logged, and the return."""

from __future__ import annotations

import logging
from collections import deque
from time import monotonic

_logger = logging.getLogger("funcmcp")

_MOST_RETURNS, _PERIOD = 3, 60.0
"""Returns that are logged within so many seconds. A store may fail for some requests and answer others."""


class Outage:
    """The state of something outside of the process.

    A read does not end an outage of writes, because a file on a full disk can still be read.
    """

    __slots__ = ("_is_of_writes", "_lasts", "_returns")

    def __init__(self) -> None:
        self._lasts = False
        self._is_of_writes = False
        self._returns: deque[float] = deque(maxlen=_MOST_RETURNS)

    def begin(self, message: str, *arguments: object, is_write: bool = False) -> None:
        """Log a failure, unless an earlier one lasts, or there were several returns in the last minute.

        Args:
            message: The message, with a placeholder for each argument.
            arguments: What the placeholders stand for.
            is_write: Whether a write failed, so that only a write can end the outage.
        """
        self._is_of_writes = self._is_of_writes or is_write
        if self._lasts:
            return
        if len(self._returns) == _MOST_RETURNS and monotonic() < self._returns[0] + _PERIOD:
            return
        self._lasts = True
        _logger.warning(message, *arguments)

    def end(self, message: str, *arguments: object, is_write: bool = False) -> None:
        """Log the return, if a failure was logged; the arguments are those of `begin`."""
        if self._is_of_writes and not is_write:
            return
        self._is_of_writes = False
        if self._lasts:
            self._lasts = False
            self._returns.append(monotonic())
            _logger.warning(message, *arguments)
