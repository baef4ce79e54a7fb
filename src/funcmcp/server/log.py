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
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    where = " > ".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    logger.error(
        "error_id=%s feature=%s exception=%s: %s at %s",
        error_id,
        quote(feature),
        type(error).__name__,
        quote(_said(error)),
        where,
    )


def log_left_out(tool: str, error: ValueError) -> None:
    """Write one line about a tool that no list can have."""
    logger.error("The tool %s is left out of tools/list. Correct it: %s", quote(tool), quote(error, 600))


def _said(error: BaseException) -> str:
    """Return an exception's text; its own __str__ may raise."""
    try:
        return str(error)
    except Exception as fault:  # noqa: BLE001 - an author's own __str__ may raise anything
        return f"(its text can't be read: {type(fault).__name__})"
