"""Log records of the server. Text from clients is escaped so that it can't forge lines.

How it works: the record of a failure has the exception itself (``exc_info``), from which error trackers take its type
and its frames, and its traceback as text (``exc_text``). The formatters of the standard library print the text if there
is one, so nothing in it may begin a line that a client chose: texts of exceptions follow their type, are escaped and
cut; notes and source lines are indented. The text has the form of Python's tracebacks, within limits for a chain of
causes, the members of a group and the text as a whole.
"""

from __future__ import annotations

import functools
import logging
import os
import sysconfig
import traceback
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp._server.exception_groups import members_of
from funcmcp._server.recent_failures import recent_failures
from funcmcp._text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextvars import Context

    from funcmcp._state.line_limit import LineOfEach

logger = logging.getLogger("funcmcp")

MAX_QUOTED = 200
_SHOWN_MEMBERS = 3
_CHAIN = 10
_GROUP_DEPTH = 10
_GROUP_WIDTH = 15
_EXCEPTIONS = 100
_NOTES = 20
_TRACEBACK_FRAMES = 100
_TRACEBACK_TEXT = 2000
_TRACEBACK_SIZE = 200_000

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"

_FAILURE = "%s (error_id=%s feature=%s)"
_FAILURE_WITHOUT_ID = "%s (feature=%s)"


@dataclass(slots=True)
class LoggedRequest:
    """The request that a task or a thread answers, for the records that are written meanwhile.

    Attributes:
        request_id: The id of the HTTP request, or a random one.
        caller: The subject of the principal, or the address of an anonymous caller; "" if it is not known.
        method: The JSON-RPC method, or the HTTP method; a short line, as the name is.
        name: The name or URI that the request uses, or the HTTP path.
        error_id: The id of the last failure that was logged; "" if there is none.
        outcome: How the request ended, in words; "" as long as it has not.
        variables: The context variables in which its record is written; None for those at the time of writing.
        upstream: The name of the other server that has the feature; "" if this one has it.
    """

    request_id: str
    caller: str
    method: str
    name: str
    error_id: str = ""
    outcome: str = ""
    variables: Context | None = None
    upstream: str = ""


current_request: ContextVar[LoggedRequest | None] = ContextVar("current_request", default=None)
"""The request that the task or the thread answers; None if requests are not logged."""


def quote(text: object, max_length: int = MAX_QUOTED) -> str:
    """Return text from outside, escaped for a log line and cut to *max_length* characters."""
    escaped = str(text)[:max_length].encode("unicode_escape").decode("ascii")
    return escaped[:max_length]


def log_failure(error: BaseException, error_id: str, feature: str, method: str = "") -> None:
    """Write a record about an exception of a feature.

    The message begins with the author's file and line. The record has the attributes ``error_id``, ``feature`` and
    ``method``. The current request gets the error id.

    Args:
        error: The exception.
        error_id: The id that the client gets; "" if there is no client.
        feature: What failed: the name or URI of a feature, or a part of the server.
        method: The method of the request, such as "tools/call"; "" outside of requests.
    """
    request = current_request.get()
    if request is not None and error_id:
        request.error_id = error_id
    if recent_failures.is_kept and error_id:
        recent_failures.add(error_id, traceback_of(error, authors_only=True))
    extra = {"error_id": error_id, "feature": quote(feature), "method": quote(method)}
    if error_id:
        log_exception(logger, error, _FAILURE, (_summary_of(error), error_id, quote(feature)), extra)
    else:
        log_exception(logger, error, _FAILURE_WITHOUT_ID, (_summary_of(error), quote(feature)), extra)


def log_failed_reload(error: BaseException) -> None:
    """Write one line about an exception that keeps new code from serving; at the level DEBUG, also its traceback.

    The old code keeps running, so the operator needs the reason only. Starting the new code shows the traceback.
    """
    if logger.isEnabledFor(logging.DEBUG):
        log_failure(error, "", "reload")
    else:
        logger.error("%s", _summary_of(error))


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
    record.exc_text = traceback_of(error)
    log.handle(record)


def traceback_of(error: BaseException, *, authors_only: bool = False) -> str:
    """Return the text that Python prints about an exception, escaped and limited; see the module's description.

    Args:
        error: The exception.
        authors_only: Leave out the frames of libraries. The innermost frame remains if there are no others.
    """
    lines = _TracebackLines(authors_only=authors_only)
    lines.add(error)
    text = "\n".join(lines.lines)
    return text if len(text) <= _TRACEBACK_SIZE else f"{text[:_TRACEBACK_SIZE]}\n... (cut)"


def log_list_left_out(scheme: str, error: BaseException) -> None:
    """Write a record about a function that failed to list the resources of a scheme."""
    message = "%s (the resources of '%s' are left out of resources/list)"
    extra = {"error_id": "", "feature": quote(scheme), "method": "resources/list"}
    log_exception(logger, error, message, (_summary_of(error), quote(scheme)), extra)


def log_left_out(lines: LineOfEach, kind: str, key: str, method: str, error: ValueError) -> None:
    """Write one line about a feature that is left out of a list, because it has no valid definition.

    Args:
        lines: Those of the list. It has one for each feature.
        kind: The kind of feature, such as "tool".
        key: Its name or URI.
        method: The method of the list.
        error: The reason.
    """
    lines.write(key, "The %s %s is left out of %s. Correct it: %s", kind, quote(key), method, quote(error, 600))


def log_too_large(feature: str, method: str, size: int, limit: int) -> None:
    """Write one line about a result that is not sent because of its size.

    Args:
        feature: The name or URI of the feature.
        method: The method of the request.
        size: The bytes of the response.
        limit: The most bytes that a response may have.
    """
    message = (
        "The result of %s has %s bytes, more than %s. "
        "Return less, such as a page of rows, or raise Limits(result_bytes=)."
    )
    extra = {"feature": quote(feature), "method": quote(method)}
    logger.error(message, quote(feature), f"{size:,}", f"{limit:,}", extra=extra)


def types_and_texts(error: BaseException) -> str:
    """Return the type and the text of an exception; for a group, those of its members."""
    members = members_of(error)
    shown = [f"{type(member).__name__}: {text_of(member)}" for member in members[:_SHOWN_MEMBERS]]
    if len(members) > _SHOWN_MEMBERS:
        shown.append(f"{len(members) - _SHOWN_MEMBERS} more")
    return "; ".join(shown)


def _summary_of(error: BaseException) -> str:
    """Return the author's file and line, type and text of an exception; for a group, those of its members."""
    if not isinstance(error, BaseExceptionGroup):
        return _summary_of_one(error)
    members = members_of(error)
    shown = [_summary_of_one(member) for member in members[:_SHOWN_MEMBERS]]
    if len(members) > _SHOWN_MEMBERS:
        shown.append(f"{len(members) - _SHOWN_MEMBERS} more")
    return f"{quote(type(error).__name__)}: {quote(error.message)} ({'; '.join(shown)})"


def _summary_of_one(error: BaseException) -> str:
    """Return the author's innermost file and line, then an exception's type and text."""
    text = f"{quote(type(error).__name__)}: {quote(text_of(error))}"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    frame = _authors_frame(error) or frames[-1]
    return f"{_escaped(shown_path(frame.filename))}, line {frame.lineno}: {text}"


def _authors_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Return the innermost frame of the author's code in an exception, or else in its causes."""
    for _ in range(_CHAIN):  # causes may be a circle
        frames = reversed(traceback.extract_tb(error.__traceback__))
        frame = next(filter(_is_authors, frames), None)
        if frame is not None or error.__cause__ is None:
            return frame
        error = error.__cause__
    return None


def shown_path(filename: str) -> str:
    """Return the path of a file below the working directory, relative to it; other paths as they are."""
    try:
        folder = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118 - as text, because a file name may be any text
    except OSError:  # the directory is gone
        return filename
    return filename.removeprefix(folder)


def _is_authors(frame: traceback.FrameSummary) -> bool:
    """Return whether a frame belongs to the author's code, and not to a library."""
    return not frame.filename.startswith(_library_folders())


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Return where the interpreter's, the installed and modules of funcmcp are; other code is the author's."""
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {os.path.realpath(folder) for folder in folders} | {str(Path(__file__).parent.parent)}
    return (*(f"{folder}{os.sep}" for folder in sorted(folders)), "<frozen ")


class _TracebackLines:
    """The lines of a traceback in the form of `traceback.TracebackException.format`.

    Args:
        authors_only: Leave out the frames of libraries.

    Attributes:
        lines: The lines.
    """

    def __init__(self, *, authors_only: bool) -> None:
        self.lines: list[str] = []
        self._authors_only = authors_only
        self._seen: set[int] = set()
        self._count = 0
        self._depth = 0
        self._needs_end = False

    def add(self, error: BaseException) -> None:
        """Add an exception after the exceptions that led to it."""
        links: list[tuple[BaseException, str]] = []
        link: BaseException | None = error
        connection = ""
        while link is not None and len(links) < _CHAIN:
            links.append((link, connection))
            self._seen.add(id(link))
            connection = _CONTEXT if link.__cause__ is None else _CAUSE
            link = _origin_of(link)
            if link is not None and id(link) in self._seen:
                link = None
        if link is not None:
            self._emit("... (earlier exceptions are left out)")
        for exception, following in reversed(links):
            self._add_one(exception)
            if following:
                for line in ("", following, ""):
                    self._emit(line)

    def _add_one(self, error: BaseException) -> None:
        self._count += 1
        if self._count > _EXCEPTIONS or self._depth > _GROUP_DEPTH:
            self._emit("... (more exceptions are left out)")
            return
        if not isinstance(error, BaseExceptionGroup):
            if error.__traceback__ is not None:
                self._emit("Traceback (most recent call last):")
            self._add_own_lines(error)
            return
        outermost = self._depth == 0
        if outermost:
            self._depth = 1
        if error.__traceback__ is not None:
            self._emit("Exception Group Traceback (most recent call last):", "+" if outermost else "|")
        self._add_own_lines(error)
        self._add_members(error)
        if outermost:
            self._depth = 0

    def _add_members(self, group: BaseExceptionGroup[BaseException]) -> None:
        members = group.exceptions[:_GROUP_WIDTH]
        remaining = len(group.exceptions) - len(members)
        indent = "  " * self._depth
        for number, member in enumerate(members, 1):
            self.lines.append(f"{indent}{'+-' if number == 1 else '  '}+---------------- {number} ----------------")
            self._needs_end = number == len(members) and not remaining
            self._depth += 1
            self.add(member)
            self._depth -= 1
        if remaining:
            self.lines.append(f"{indent}  +---------------- ... ----------------")
            self.lines.append(f"{indent}  | and {remaining} more exception{'s' if remaining > 1 else ''}")
            self._needs_end = True
        if self._needs_end:
            self.lines.append(f"{indent}  +------------------------------------")
            self._needs_end = False

    def _add_own_lines(self, error: BaseException) -> None:
        """Add the frames, the text and the notes of an exception."""
        for line in (*_frame_lines(error, authors_only=self._authors_only), *_text_lines(error), *_note_lines(error)):
            self._emit(line)

    def _emit(self, line: str, margin: str = "|") -> None:
        self.lines.append(f"{'  ' * self._depth}{margin} {line}" if self._depth else line)


def _origin_of(error: BaseException) -> BaseException | None:
    """Return the exception that led to another one; None if there is none, or the author has hidden it."""
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _frame_lines(error: BaseException, *, authors_only: bool) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__, limit=-_TRACEBACK_FRAMES)
    if authors_only:
        frames = traceback.StackSummary.from_list([frame for frame in frames if _is_authors(frame)] or frames[-1:])
    entries = frames.format()
    lines = [line for entry in entries for line in entry.rstrip("\n").split("\n")]
    # A file name of code that is compiled at run time may have a line break, so not all lines are indented.
    return [_escaped(line if line.startswith("  ") else f"    {line}") for line in lines]


def _text_lines(error: BaseException) -> list[str]:
    """Return the type and the text of an exception, after the place of a SyntaxError."""
    kind = type(error)
    is_short = kind.__module__ in {"builtins", "__main__"}
    name = quote(kind.__qualname__ if is_short else f"{kind.__module__}.{kind.__qualname__}", _TRACEBACK_TEXT)
    if isinstance(error, SyntaxError) and error.lineno is not None:
        text = quote(error.msg, _TRACEBACK_TEXT)
        lines = _syntax_error_lines(error)
    else:
        text = quote(text_of(error), _TRACEBACK_TEXT)
        lines = []
    return [*lines, _escaped(f"{name}: {text}" if text else name)]


def _syntax_error_lines(error: SyntaxError) -> list[str]:
    """Return the file and line of a SyntaxError, and the source line with a mark below its column."""
    lines = [f'  File "{_escaped(str(error.filename or "<string>"))}", line {error.lineno}']
    if error.text:
        source = error.text.rstrip()
        stripped = source.lstrip()
        lines.append(f"    {quote(stripped, _TRACEBACK_TEXT)}")
        if isinstance(error.offset, int):
            column = min(max(error.offset - 1 - (len(source) - len(stripped)), 0), len(stripped))
            lines.append(f"    {' ' * len(quote(stripped[:column], _TRACEBACK_TEXT))}^")
    return lines


def _note_lines(error: BaseException) -> list[str]:
    """Return the notes of an exception, indented so that none begins a line."""
    notes = getattr(error, "__notes__", [])
    if not isinstance(notes, list):
        notes = [notes]
    lines = [f"  Note: {quote(text_of(note), _TRACEBACK_TEXT)}" for note in notes[:_NOTES]]
    if len(notes) > _NOTES:
        lines.append(f"  ... ({len(notes) - _NOTES} more notes)")
    return lines


def _escaped(line: str) -> str:
    """Return a line of a traceback without characters that end a line or control a terminal, cut to a limit."""
    return visible_line(line[: 2 * _TRACEBACK_TEXT])


def text_of(value: object) -> str:
    """Return the text of an exception or a note; its own __str__ may raise."""
    try:
        return str(value)
    except Exception as fault:  # noqa: BLE001 - an author's own __str__ may raise anything
        return f"(its text can't be read: {type(fault).__name__})"
