"""Reads JSON that functions, workers and callers send, or that is in the bindings of an app."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.codec import InvalidJSONError, check_depth

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 256
"""How deep objects and arrays may be nested: what copies, converts or writes a value needs a call for each level."""


def loads(text: str | bytes, *, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Return the value of a JSON text, as `json.loads` does.

    Args:
        text: The text.
        parse_constant: Converts ``NaN`` and the infinities.

    Raises:
        InvalidJSONError: The text is nested more than `MAX_DEPTH` levels deep.
        ValueError: The text is not JSON.
    """
    try:
        value = json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise InvalidJSONError(f"The JSON is nested more than {MAX_DEPTH} levels deep.") from None
    opening: list[Any] = [b"[", b"{"] if isinstance(text, bytes) else ["[", "{"]
    if sum(map(text.count, opening)) > MAX_DEPTH:
        check_depth(value, MAX_DEPTH)
    return value
