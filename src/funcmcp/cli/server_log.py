"""The log of a server that a command runs in its own process, as lines on stderr."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from funcmcp.cli.causes import cause_of, place_in
from funcmcp.cli.output import write_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_IGNORED = "Auth level is not applied to non http function app"
"""What azure-functions logs about each app whose functions are not HTTP functions."""


class LogLines(logging.Handler):
    """Writes a record as one line. A traceback becomes the author's file and line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        message = record.getMessage()
        if message.startswith(_IGNORED):
            return
        error_id = getattr(record, "error_id", None)
        if error_id is not None and record.exc_text:
            write_line(f"{cause_of(record.exc_text)} (error id {error_id})", error=True)
        elif message.startswith("Traceback"):
            write_line(f"at {place_in(message)}", error=True)
        else:
            write_line(message.partition("\n")[0], error=True)


@contextmanager
def log_lines(*, verbose: bool) -> Iterator[None]:
    """Write the log of funcmcp as lines. Do nothing if the server's code has set up logging, or if *verbose* is set."""
    logger = logging.getLogger("funcmcp")
    if verbose or logger.hasHandlers():
        yield
        return
    handler = LogLines(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
