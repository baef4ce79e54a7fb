"""Cursors of lists: only what was given out is taken, for its own list, and says what was put in."""

from __future__ import annotations

import base64

from funcmcp._protocol.errors import INVALID_PARAMS, InvalidParams
from funcmcp._server.handlers.lists import decode_cursor, encode_cursor

_KINDS = ("tools", "prompts", "resources")
_LARGEST = 999_999_999


def check(data: bytes) -> None:
    """Take a text as a cursor, as what stands in one, and as the name of an item."""
    text = data.decode("utf-8", "surrogateescape")
    _check_cursor(text)
    _check_cursor(base64.urlsafe_b64encode(data).decode("ascii"))
    if text.isascii() or max(text) < "\udc80":
        for kind in _KINDS:
            end = 1 + int.from_bytes(data[:4], "big") % _LARGEST
            cursor = encode_cursor(kind, end, text)
            assert decode_cursor(kind, cursor) == (end, text)
    for other in (None, 1, data, [text], {"cursor": text}):
        _check_cursor(other)


def _check_cursor(cursor: object) -> None:
    for kind in _KINDS:
        try:
            end, last = decode_cursor(kind, cursor)
        except InvalidParams as error:
            assert error.code == INVALID_PARAMS
            continue
        assert end > 0
        assert encode_cursor(kind, end, last) == cursor
