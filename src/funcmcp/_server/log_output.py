"""Where the log goes and in which format: lines of text for people, or JSON for programs.

How it works: a program that has set up logging keeps its handlers and its levels. Otherwise records go to stderr: those
of funcmcp by a handler, and those of the author and of libraries by Python's handler of last resort, which gets the
same format. The root logger gets no handler, so that `logging.basicConfig` has an effect later, too. With
``FUNCMCP_LOG_FORMAT=json`` all handlers that write to stdout or stderr get a formatter that writes JSON, those of the
ASGI server included, so that no line of another format is between them. Handlers of files and of error trackers remain
as they are.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from funcmcp._server.log import current_request, logger, traceback_of
from funcmcp._text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "FUNCMCP_LOG_FORMAT"
"""The environment variable with the format of the log: ``text`` or ``json``. ``--log-format`` sets it, so that worker
processes inherit it."""

FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"
"""The format of log lines if the program has not set up logging."""

REQUESTS = "funcmcp.requests"
"""The logger of the records about requests."""

_FORMATS = {"": False, "text": False, "json": True}
_AZURE_HANDLER = "AsyncLoggingHandler"
"""The class with which Azure's Python worker passes records on to the Functions host."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
"""The attributes that every record has, and that of uvicorn with escapes for terminals. Others are those of `extra`."""

_RENAMED = {"feature": "name"}


def is_json() -> bool:
    """Return whether the environment asks for JSON.

    Raises:
        ValueError: The variable has another value than the formats.
    """
    value = os.environ.get(VARIABLE, "").strip().lower()
    if value not in _FORMATS:
        raise ValueError(f"{VARIABLE} must be 'text' or 'json'; got {value!r}.")
    return _FORMATS[value]


class TextFormatter(logging.Formatter):
    """Writes a record as text in which only its first line begins at the margin.

    Messages and exceptions of the author's code may have texts of clients in them. Control characters are escaped, so
    that nothing in a text is a record of its own or moves the cursor of a terminal.
    """

    def __init__(self) -> None:
        super().__init__(FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of the standard library
        """Return the line of the record, and further lines of its message with an indent."""
        return visible(super().formatMessage(record)).replace("\n", "\n    ")

    def formatException(self, ei: Any) -> str:  # noqa: N802 - as above
        """Return the traceback, escaped as that of a failure."""
        return super().formatException(ei) if ei[1] is None else traceback_of(ei[1])


class JSONFormatter(logging.Formatter):
    """Writes a record as one line of JSON in ASCII, with the fields that docs/guides/telemetry.md lists."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        fields["exception"], fields["stack"] = record.exc_text, record.stack_info
        request = current_request.get()
        if request is not None:
            fields["request_id"], fields["caller"] = request.request_id, request.caller
        for name, value in vars(record).items():
            if name not in _STANDARD and value not in ("", None):
                fields.setdefault(_RENAMED.get(name, name), value)
        if request is not None:
            fields.setdefault("method", request.method)
            fields.setdefault("name", request.name)
        for name, value in _span_fields().items():
            fields.setdefault(name, value)
        return json.dumps({name: value for name, value in fields.items() if value not in ("", None)}, default=str)


def _span_fields() -> dict[str, str]:
    """Return the ids of the current span, if the program uses OpenTelemetry, which is not imported here."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    return {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"}


def write_to_stderr() -> None:
    """Write the log to stderr with time, level and logger, unless the program has set up logging; or as JSON."""
    if is_json():
        write_as_json()
        return
    if not logger.hasHandlers():
        write_as_text(logger)
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(TextFormatter())


def write_as_text(log: logging.Logger) -> None:
    """Write the records of a logger to stderr as text."""
    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter())
    log.addHandler(handler)


def write_as_json() -> None:
    """Write all that goes to stdout or stderr as JSON, and records about requests too unless their level is set."""
    root = logging.getLogger()
    if not any(_is_output(handler) for handler in root.handlers):
        root.addHandler(logging.StreamHandler())
    for handler in _handlers():
        if _is_output(handler):
            handler.setFormatter(JSONFormatter())
    if logger.level == logging.NOTSET and not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)


def write_about_server(text: object, level: int = logging.INFO) -> None:
    """Write a line about the server to stderr, or go on without it. If the log is JSON, it is a record.

    Args:
        text: The line.
        level: The level of the record.
    """
    if not log_if_json(text, level):
        with contextlib.suppress(OSError, ValueError):  # ValueError: stderr is closed
            sys.stderr.write(f"{visible(text)}\n")


def log_if_json(text: object, level: int) -> bool:
    """Log a line about the server if the log is JSON, and return whether it is. An invalid format is not JSON."""
    try:
        if not is_json():
            return False
    except ValueError:  # the line may say so
        return False
    write_as_json()
    logger.log(level, "%s", text)
    return True


def _handlers() -> Iterator[logging.Handler]:
    root = logging.getLogger()
    for log in (root, *root.manager.loggerDict.values()):
        yield from getattr(log, "handlers", ())  # a place holder for a part of a name has none


def _is_output(handler: logging.Handler) -> bool:
    """Return whether a handler writes to stdout or stderr, or to the log of the Azure Functions host."""
    if type(handler).__name__ == _AZURE_HANDLER:
        return True
    stream = getattr(handler, "stream", None)
    return stream is not None and stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
