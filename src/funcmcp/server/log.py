"""Log records of the server. Text from clients is escaped, so that it can't forge lines.

How it works: the record of a failure has the exception itself (``exc_info``), from which error trackers read its type
and its frames, and the traceback as text (``exc_text``), which the formatters of the standard library prefer. In this
text, each message of an exception is escaped and takes one line; the rest is as Python prints it. The message of the
record is constant, and what differs is in its arguments and attributes.
"""

from __future__ import annotations

import functools
import logging
import os
import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

logger = logging.getLogger("funcmcp")

MAX_QUOTED = 200
_FRAMES = 5
_TRACEBACK_FRAMES = 100
_TRACEBACK_TEXT = 2000
_MAX_CHAIN = 10
"""Exceptions of a chain of causes that a traceback has, those nearest to the failure."""

_MAX_MEMBERS = 15
"""Members of a group that a traceback has, as in Python's own."""

_MAX_DEPTH = 10
"""Levels of nested groups that a traceback has, as in Python's own."""

_MAX_EXCEPTIONS = 50
"""Exceptions that a traceback has in all."""

_MAX_NOTES = 10
_SHOWN_MEMBERS = 3
"""Members of a group that the message of a record names."""

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"

FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"
"""The format of log lines if the program has not set up logging."""


def quote(text: object, max_length: int = MAX_QUOTED) -> str:
    """Return text from outside, escaped for a log line and cut to *max_length* characters."""
    escaped = str(text)[:max_length].encode("unicode_escape").decode("ascii")
    return escaped[:max_length]


def log_failure(error: BaseException, error_id: str, feature: str, method: str = "") -> None:
    """Write a record about an exception of a feature.

    The message names the author's frame first. The record has the attributes ``error_id``, ``feature`` and ``method``.

    Args:
        error: The exception.
        error_id: The id that the client gets; "" if there is no client.
        feature: What failed: the name or URI of a feature, or a part of the server.
        method: The method of the request, such as "tools/call"; "" outside of requests.
    """
    message = "error_id=%s feature=%s exception=%s"
    extra = {"error_id": error_id, "feature": quote(feature), "method": quote(method)}
    log_exception(logger, error, message, (error_id, quote(feature), _summary_of(error)), extra)


def log_exception(
    log: logging.Logger,
    error: BaseException,
    message: str,
    arguments: tuple[object, ...],
    extra: Mapping[str, object] | None = None,
) -> None:
    """Write a record of the level ERROR that has an exception, and its traceback as escaped text.

    Args:
        log: The logger.
        error: The exception.
        message: The constant message, with a ``%s`` for each argument.
        arguments: Escaped texts.
        extra: Attributes of the record.
    """
    if not log.isEnabledFor(logging.ERROR):
        return
    exc_info = (type(error), error, error.__traceback__)
    record = log.makeRecord(log.name, logging.ERROR, __file__, 0, message, arguments, exc_info, "log_failure", extra)
    record.exc_text = _traceback(error)
    log.handle(record)


def write_to_stderr() -> None:
    """Write the log to stderr with time, level and logger, unless the program has set up logging."""
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(FORMAT))
        logger.addHandler(handler)


def log_list_left_out(scheme: str, error: BaseException) -> None:
    """Write a record about a function that failed to list the resources of a scheme."""
    message = "The resources of '%s' are left out of resources/list. exception=%s"
    extra = {"error_id": "", "feature": quote(scheme), "method": "resources/list"}
    log_exception(logger, error, message, (quote(scheme), _summary_of(error)), extra)


def log_left_out(kind: str, key: str, method: str, error: ValueError) -> None:
    """Write one line about a feature that is left out of a list, because it has no valid definition.

    Args:
        kind: The kind of feature, such as "tool".
        key: Its name or URI.
        method: The method of the list.
        error: The reason.
    """
    logger.error("The %s %s is left out of %s. Correct it: %s", kind, quote(key), method, quote(error, 600))


def members_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions of a group that are no groups themselves, or an exception that is no group."""
    groups = [iter((error,))]
    while groups:
        member = next(groups[-1], None)
        if member is None:
            groups.pop()
        elif isinstance(member, BaseExceptionGroup):
            groups.append(iter(member.exceptions))
        else:
            yield member


def types_and_texts(error: BaseException) -> str:
    """Return the type and the text of an exception; for a group, those of its members."""
    members = list(members_of(error))
    shown = [f"{type(member).__name__}: {_text_of(member)}" for member in members[:_SHOWN_MEMBERS]]
    if len(members) > _SHOWN_MEMBERS:
        shown.append(f"{len(members) - _SHOWN_MEMBERS} more")
    return "; ".join(shown)


def _summary_of(error: BaseException) -> str:
    """Return type, text and frames of an exception; for a group, those of its members."""
    if not isinstance(error, BaseExceptionGroup):
        return _summary_of_one(error)
    members = list(members_of(error))
    shown = [_summary_of_one(member) for member in members[:_SHOWN_MEMBERS]]
    if len(members) > _SHOWN_MEMBERS:
        shown.append(f"{len(members) - _SHOWN_MEMBERS} more")
    return f"{type(error).__name__}: {quote(error.message)} ({'; '.join(shown)})"


def _summary_of_one(error: BaseException) -> str:
    """Return an exception's type, text and frames: the author's innermost frame first, then its callers."""
    text = f"{type(error).__name__}: {quote(_text_of(error))}"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    authors = [index for index, frame in enumerate(frames) if not frame.filename.startswith(_library_folders())]
    innermost = authors[-1] if authors else len(frames) - 1
    chosen = [*frames[innermost:], *reversed(frames[:innermost])][:_FRAMES]
    where = " < ".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in chosen)
    return f"{text} at {where}"


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Return where the interpreter's, the installed and modules of funcmcp are; other code is the author's."""
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {os.path.realpath(folder) for folder in folders} | {str(Path(__file__).parent.parent)}
    return (*(f"{folder}{os.sep}" for folder in sorted(folders)), "<frozen ")


def _traceback(error: BaseException) -> str:
    """Return the traceback of an exception as Python prints it, with escaped texts."""
    return "\n".join(_Traceback().lines_of(error, 0))


class _Traceback:
    """Writes a traceback of at most `_MAX_EXCEPTIONS` exceptions."""

    def __init__(self) -> None:
        self._remaining = _MAX_EXCEPTIONS

    def lines_of(self, error: BaseException, depth: int) -> Iterator[str]:
        """Yield the lines of an exception after those of its causes.

        Args:
            error: The exception.
            depth: The number of groups around it.
        """
        for cause, sentence in reversed(_causes_of(error)):
            yield from self._lines_of_one(cause, depth)
            yield from ("", sentence, "")
        yield from self._lines_of_one(error, depth)

    def _lines_of_one(self, error: BaseException, depth: int) -> Iterator[str]:
        self._remaining -= 1
        if error.__traceback__ is not None:
            yield "Traceback (most recent call last):"
            yield from "".join(traceback.format_tb(error.__traceback__, limit=-_TRACEBACK_FRAMES)).splitlines()
        yield from _description_of(error)
        if isinstance(error, BaseExceptionGroup):
            yield from self._lines_of_members(error, depth + 1)

    def _lines_of_members(self, group: BaseExceptionGroup[BaseException], depth: int) -> Iterator[str]:
        if depth > _MAX_DEPTH:
            yield f"... (groups are nested more than {_MAX_DEPTH} levels deep)"
            return
        for number, member in enumerate(group.exceptions[:_MAX_MEMBERS], 1):
            if self._remaining <= 0:
                yield "  | ... (more exceptions)"
                break
            yield f"  +---------------- {number} ----------------"
            for line in self.lines_of(member, depth):
                yield f"  | {line}"
        if len(group.exceptions) > _MAX_MEMBERS:
            yield f"  | and {len(group.exceptions) - _MAX_MEMBERS} more exceptions"
        yield "  +------------------------------------"


def _causes_of(error: BaseException) -> list[tuple[BaseException, str]]:
    """Return the causes of an exception, the nearest first, each with the sentence that Python prints below it."""
    causes: list[tuple[BaseException, str]] = []
    seen = {id(error)}
    while len(causes) < _MAX_CHAIN - 1:
        if error.__cause__ is not None:
            error, sentence = error.__cause__, _CAUSE
        elif error.__context__ is not None and not error.__suppress_context__:
            error, sentence = error.__context__, _CONTEXT
        else:
            break
        if id(error) in seen:
            break
        seen.add(id(error))
        causes.append((error, sentence))
    return causes


def _description_of(error: BaseException) -> Iterator[str]:
    """Yield an exception's type and text, and its notes, each as one escaped line."""
    if isinstance(error, SyntaxError):  # its line, and the place in it
        for line in traceback.format_exception_only(error):
            for part in line.splitlines():
                yield quote(part, _TRACEBACK_TEXT)
        return
    kind = type(error)
    module = kind.__module__
    name = kind.__qualname__ if module in {"builtins", "__main__"} else f"{module}.{kind.__qualname__}"
    text = quote(_text_of(error), _TRACEBACK_TEXT)
    yield f"{name}: {text}" if text else name
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        for note in notes[:_MAX_NOTES]:
            yield quote(note, _TRACEBACK_TEXT)


def _text_of(error: BaseException) -> str:
    """Return an exception's text; its own __str__ may raise."""
    try:
        return str(error)
    except Exception as fault:  # noqa: BLE001 - an author's own __str__ may raise anything
        return f"(its text can't be read: {type(fault).__name__})"
