"""The log of a server that a command runs in its own process, as lines on stderr."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from funcmcp._server.exception_groups import members_of
from funcmcp._server.log import quote, traceback_of, types_and_texts
from funcmcp._server.log_output import VARIABLE
from funcmcp_cli.output import write_if_possible
from funcmcp_cli.server_stderr import place_in

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN_MEMBERS = 3
_MAX_TEXT = 2000
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
        if error_id is not None and record.exc_info and record.exc_info[1] is not None:
            causes = "; ".join(_cause_of(member) for member in members_of(record.exc_info[1])[:_SHOWN_MEMBERS])
            write_if_possible(f"{causes} (error id {error_id})" if error_id else causes, error=True)
        elif message.startswith("Traceback"):
            write_if_possible(f"at {place_in(message)}", error=True)
        else:
            write_if_possible(message.partition("\n")[0], error=True)


def _cause_of(error: BaseException) -> str:
    """Return an exception in one line, after the author's file and line."""
    place, text = place_in(traceback_of(error)), quote(types_and_texts(error), _MAX_TEXT)
    return f"{place}: {text}" if place else text


@contextmanager
def log_lines(*, verbose: bool) -> Iterator[None]:
    """Write the log of funcmcp as lines. Do nothing if the server's code has set up logging, or if *verbose* is set.

    The environment variable for the format is for servers that serve others, so it has no effect here.
    """
    os.environ.pop(VARIABLE, None)
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
