"""Reads JSON that functions, workers and callers send, or that is in the bindings of an app."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import is_nested_deeper

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 256
"""How deep objects and arrays may be nested: what copies, converts or writes a value needs a call for each level."""


class NestingError(ValueError):
    """A JSON text is nested too deep."""

    def __init__(self) -> None:
        super().__init__(f"The JSON is nested more than {MAX_DEPTH} levels deep.")


def loads(text: str | bytes, *, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Return the value of a JSON text, as `json.loads` does.

    Args:
        text: The text.
        parse_constant: Converts ``NaN`` and the infinities.

    Raises:
        NestingError: The text is nested more than `MAX_DEPTH` levels deep.
        ValueError: The text is not JSON.
    """
    try:
        value = json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise NestingError from None
    opening: list[Any] = [b"[", b"{"] if isinstance(text, bytes) else ["[", "{"]
    if sum(map(text.count, opening)) > MAX_DEPTH and is_nested_deeper(value, MAX_DEPTH):
        raise NestingError
    return value
