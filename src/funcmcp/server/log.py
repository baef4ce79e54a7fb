"""What the server writes to its log: one line a record, nothing that a client could forge lines with."""

from __future__ import annotations

import logging
import traceback

logger = logging.getLogger("funcmcp")

MAX_QUOTED = 200
_FRAMES = 5


def quote(text: object, most: int = MAX_QUOTED) -> str:
    """Return text that came from outside, fit for a log line: escaped, at most 200 characters."""
    escaped = str(text)[:most].encode("unicode_escape").decode("ascii")
    return escaped[:most]


def log_failure(error: BaseException, error_id: str, feature: str) -> None:
    """Write one line about an exception that the client sees only by its id."""
    logger.error("error_id=%s feature=%s exception=%s", error_id, quote(feature), _told(error))


def log_list_left_out(scheme: str, error: BaseException) -> None:
    """Write one line about a function that failed to list the resources of a scheme."""
    logger.error("The resources of '%s' are left out of resources/list. exception=%s", quote(scheme), _told(error))


def log_left_out(kind: str, key: str, method: str, error: ValueError) -> None:
    """Write one line about a feature that no list can have.

    Args:
        kind: what it is, such as "tool".
        key: its name or URI.
        method: asks for the list.
        error: says why.
    """
    logger.error("The %s %s is left out of %s. Correct it: %s", kind, quote(key), method, quote(error, 600))


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    where = " > ".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    return f"{type(error).__name__}: {quote(_said(error))} at {where}"


def _said(error: BaseException) -> str:
    """Return an exception's text; its own __str__ may raise."""
    try:
        return str(error)
    except Exception as fault:  # noqa: BLE001 - an author's own __str__ may raise anything
        return f"(its text can't be read: {type(fault).__name__})"
