"""Cursors of paged lists: opaque strings that name the last item of the page before.

Source: "server/utilities/pagination": an invalid cursor is -32602.
"""

from __future__ import annotations

import base64
import binascii

from funcmcp.protocol.errors import InvalidParams


def encode_cursor(last: str) -> str:
    """Return the cursor of the page after the item of this name."""
    return base64.urlsafe_b64encode(last.encode()).decode("ascii")


def decode_cursor(cursor: object) -> str:
    """Return the name in a cursor; raise InvalidParams."""
    if isinstance(cursor, str):
        try:
            last = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
            if encode_cursor(last) == cursor:
                return last
        except (binascii.Error, ValueError):
            pass
    raise InvalidParams("The cursor is not one of this list; start again without a cursor.")
