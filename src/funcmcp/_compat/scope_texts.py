"""Scopes in the settings of a server."""

from __future__ import annotations

import json
from typing import Any

from funcmcp._objects.public_names import public


@public("funcmcp.compat.fastmcp.utilities.auth")
def parse_scopes(value: Any) -> Any:
    """Return scopes as a list.

    Args:
        value: A JSON array as a text, scopes that commas or spaces separate, or a list. None and other types are
            returned unchanged.
    """
    if isinstance(value, list):
        return _listed(value)
    if not isinstance(value, str):
        return value
    try:
        array = json.loads(value)
    except ValueError:
        array = None
    return _listed(array if isinstance(array, list) else value.replace(",", " ").split())


def _listed(scopes: list[Any]) -> list[str]:
    texts = [str(scope).strip() for scope in scopes]
    return [text for text in texts if text]
