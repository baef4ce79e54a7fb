"""Log records of the server. Each is one line, and text from clients is escaped so that it can't forge lines."""

from __future__ import annotations

import functools
import logging
import os
import sysconfig
import traceback
from pathlib import Path

logger = logging.getLogger("funcmcp")

MAX_QUOTED = 200
_FRAMES = 5
_CHAIN = 10
_TRACEBACK_FRAMES = 100
_TRACEBACK_TEXT = 2000


FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"
"""The format of log lines if the program has not set up logging."""


def quote(text: object, max_length: int = MAX_QUOTED) -> str:
    """Return text from outside, escaped for a log line and cut to *max_length* characters."""
    escaped = str(text)[:max_length].encode("unicode_escape").decode("ascii")
    return escaped[:max_length]


def log_failure(error: BaseException, error_id: str, feature: str) -> None:
    """Write a record about an exception of a feature.

    The message is one line with the author's frame first. The record's ``exc_text``, which formatters write below the
    message, is the whole traceback, in which texts of exceptions are escaped.
    """
    if not logger.isEnabledFor(logging.ERROR):
        return
    line = f"error_id={error_id} feature={quote(feature)} exception={_summary_of(error)}"
    record = logger.makeRecord(logger.name, logging.ERROR, __file__, 0, "%s", (line,), None, "log_failure")
    record.error_id = error_id
    record.exc_text = _traceback(error)
    logger.handle(record)


def write_to_stderr() -> None:
    """Write the log to stderr with time, level and logger, unless the program has set up logging."""
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(FORMAT))
        logger.addHandler(handler)


def log_list_left_out(scheme: str, error: BaseException) -> None:
    """Write one line about a function that failed to list the resources of a scheme."""
    logger.error(
        "The resources of '%s' are left out of resources/list. exception=%s", quote(scheme), _summary_of(error)
    )


def log_left_out(kind: str, key: str, method: str, error: ValueError) -> None:
    """Write one line about a feature that is left out of a list, because it has no valid definition.

    Args:
        kind: The kind of feature, such as "tool".
        key: Its name or URI.
        method: The method of the list.
        error: The reason.
    """
    logger.error("The %s %s is left out of %s. Correct it: %s", kind, quote(key), method, quote(error, 600))


def _summary_of(error: BaseException) -> str:
    """Return an exception's type, text and frames: the author's innermost frame first, then its callers."""
    frames = traceback.extract_tb(error.__traceback__)
    authors = [index for index, frame in enumerate(frames) if not frame.filename.startswith(_library_folders())]
    innermost = authors[-1] if authors else len(frames) - 1
    chosen = [*frames[innermost:], *reversed(frames[:innermost])][:_FRAMES]
    where = " < ".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in chosen)
    return f"{type(error).__name__}: {quote(_text_of(error))} at {where}"


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Return where the interpreter's, the installed and modules of funcmcp are; other code is the author's."""
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {os.path.realpath(folder) for folder in folders} | {str(Path(__file__).parent.parent)}
    return (*(f"{folder}{os.sep}" for folder in sorted(folders)), "<frozen ")


def _traceback(error: BaseException | None) -> str:
    """Return the tracebacks of an exception and of its causes, the first cause at the top."""
    chain: list[str] = []
    while error is not None and len(chain) < _CHAIN:
        frames = "".join(traceback.format_tb(error.__traceback__, limit=-_TRACEBACK_FRAMES))
        text = quote(_text_of(error), _TRACEBACK_TEXT)
        chain.append(f"Traceback (most recent call last):\n{frames}{type(error).__name__}: {text}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n\nwhich led to\n\n".join(reversed(chain))


def _text_of(error: BaseException) -> str:
    """Return an exception's text; its own __str__ may raise."""
    try:
        return str(error)
    except Exception as fault:  # noqa: BLE001 - an author's own __str__ may raise anything
        return f"(its text can't be read: {type(fault).__name__})"
