"""The log of ``funcmcp run`` and ``funcmcp host``: its level, its format, and the lines for requests.

How it works: on a terminal a person looks for the cause of a failure, so a failure begins with the author's file and
line, and lines of requests are short and coloured. Elsewhere the lines are read later and with those of other
programs, so they have the time, the caller and ids, and tracebacks are complete.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from funcmcp._server.log import logger, traceback_of
from funcmcp._server.log_output import VARIABLE, TextFormatter, is_json, write_as_json, write_as_text
from funcmcp._serving.composition import runtime_of
from funcmcp_cli.failure import Failure
from funcmcp_cli.output import write_if_possible

if TYPE_CHECKING:
    from funcmcp import MCPServer
    from funcmcp._serving.request_log import Entry

_RED = "\x1b[31m"
_RESET = "\x1b[0m"


class LogOptions(NamedTuple):
    """The options for the log.

    Attributes:
        level: The least severe level. None leaves the level alone, and writes lines for requests only on a terminal or
            as JSON.
        is_verbose: Whether tracebacks on a terminal have the frames of libraries.
    """

    level: str | None = None
    is_verbose: bool = False

    @property
    def has_requests(self) -> bool:
        """Whether there is a line for each request."""
        if self.level is None:
            return sys.stderr.isatty() or is_json()
        return self.level in {"debug", "info"}


def set_format(log_format: str | None) -> None:
    """Set the format of the log, also for worker processes. None leaves it as the environment says."""
    if log_format is not None:
        os.environ[VARIABLE] = log_format
    try:
        is_json()
    except ValueError as error:
        raise Failure(str(error)) from None


def configure_process(options: LogOptions) -> None:
    """Set up the log of this process, unless the server's code has set up its own."""
    if is_json():
        if options.level is not None:
            logger.setLevel(options.level.upper())
        write_as_json()
    elif sys.stderr.isatty():
        target = logger if options.level is None else logging.getLogger()
        if not target.hasHandlers():
            handler = logging.StreamHandler()
            handler.setFormatter(TerminalFormatter(is_verbose=options.is_verbose))
            target.addHandler(handler)
    elif options.level is not None and not logging.getLogger().handlers:
        write_as_text(logging.getLogger())
    if options.level is not None:
        logging.getLogger().setLevel(options.level.upper())


def configure(server: MCPServer, options: LogOptions) -> MCPServer:
    """Set up the log of the process that serves a server, with lines for its requests, and return the server."""
    from funcmcp._serving.request_log import write_json_record, write_text_record  # noqa: PLC0415 - not each command needs it

    configure_process(options)
    if options.has_requests:
        write = write_text_record
        if is_json():
            write = write_json_record
        elif sys.stderr.isatty():
            write = _write_line
        runtime_of(server).log_requests(write)
    return server


def _write_line(entry: Entry) -> None:
    """Write the line of a request on the terminal, in red if it failed."""
    write_if_possible(entry.text, error=True, colour="red" if entry.is_failure else None)


class TerminalFormatter(TextFormatter):
    """Writes a failure as the author's file and line, the error and the author's frames; other records as a line.

    Args:
        is_verbose: Whether the traceback has the frames of libraries.
    """

    def __init__(self, *, is_verbose: bool) -> None:
        super().__init__()
        self._is_verbose = is_verbose

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines."""
        error_id = getattr(record, "error_id", None)
        if error_id is None or not record.exc_info or record.exc_info[1] is None or not isinstance(record.args, tuple):
            return super().format(record)
        line = str(record.args[0])
        if error_id:
            line += f" (error id {error_id})"
        if not os.environ.get("NO_COLOR"):
            line = f"{_RED}{line}{_RESET}"
        return f"{line}\n{traceback_of(record.exc_info[1], authors_only=not self._is_verbose)}"
