"""Cursors of paged lists: opaque strings that name the list, the last item of the page before, and its place.

Source: "server/utilities/pagination": an invalid cursor is -32602.
"""

from __future__ import annotations

import base64
import binascii

from funcmcp.protocol.errors import InvalidParams

_MOST_DIGITS = 9


def encode_cursor(kind: str, end: int, last: str) -> str:
    """Return the cursor of the page after an item.

    Args:
        kind: of the list, a word such as `tools`.
        end: how many items there were up to this one.
        last: its name.
    """
    return base64.urlsafe_b64encode(f"{kind} {end} {last}".encode()).decode("ascii")


def decode_cursor(kind: str, cursor: object) -> tuple[int, str]:
    """Return the place and the name in a cursor of a list, as they were encoded; raise InvalidParams."""
    if isinstance(cursor, str):
        try:
            _, end, last = base64.b64decode(cursor, altchars=b"-_", validate=True).decode().split(" ", 2)
            if len(end) <= _MOST_DIGITS and int(end) > 0 and encode_cursor(kind, int(end), last) == cursor:
                return int(end), last
        except (binascii.Error, ValueError):
            pass
    raise InvalidParams("The cursor is not one of this list; start again without a cursor.")
