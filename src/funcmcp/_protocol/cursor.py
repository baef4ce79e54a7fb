"""Cursors of paged lists: opaque strings with the name of the list, and the place and the name of the page's last item.

Source: "server/utilities/pagination": an invalid cursor is -32602.
"""

from __future__ import annotations

import base64
import binascii

from funcmcp._protocol.codec import well_formed
from funcmcp._protocol.errors import InvalidParams

_MAX_DIGITS = 9


def encode_cursor(kind: str, end: int, last: str) -> str:
    """Return the cursor of the next page.

    Args:
        kind: Name of the list, such as ``tools``.
        end: Number of items up to the end of this page.
        last: Name of the last item of this page.
    """
    return base64.urlsafe_b64encode(well_formed(f"{kind} {end} {last}").encode()).decode("ascii")


def decode_cursor(kind: str, cursor: object) -> tuple[int, str]:
    """Return the number of items and the name of the last item in a cursor of *kind*; raise InvalidParams."""
    if isinstance(cursor, str):
        try:
            _, end, last = base64.b64decode(cursor, altchars=b"-_", validate=True).decode().split(" ", 2)
            if len(end) <= _MAX_DIGITS and int(end) > 0 and encode_cursor(kind, int(end), last) == cursor:
                return int(end), last
        except (binascii.Error, ValueError):
            pass
    raise InvalidParams("The cursor does not belong to this list. Start again without a cursor.")
