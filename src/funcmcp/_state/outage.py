"""Whether something outside of the process fails. The first of several failures is logged, and the return."""

from __future__ import annotations

import logging

_logger = logging.getLogger("funcmcp")


class Outage:
    """The state of something outside of the process."""

    __slots__ = ("_lasts",)

    def __init__(self) -> None:
        self._lasts = False

    def begin(self, message: str, *arguments: object) -> None:
        """Log a failure, unless an earlier one lasts.

        Args:
            message: The message, with a placeholder for each argument.
            arguments: What the placeholders stand for.
        """
        if not self._lasts:
            self._lasts = True
            _logger.warning(message, *arguments)

    def end(self, message: str, *arguments: object) -> None:
        """Log the return, if there was a failure; the arguments are those of `begin`."""
        if self._lasts:
            self._lasts = False
            _logger.warning(message, *arguments)
