"""JSON values of options."""

from __future__ import annotations

import json

from funcmcp._server.catalog.registry import RegistrationError


def check_json(value: object, option: str) -> None:
    """Raise RegistrationError unless a value is JSON: strings, finite numbers, booleans, None, lists, dicts."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
        same = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise RegistrationError(f"{option} must be JSON: {error}.") from None
    if not same:
        raise RegistrationError(f"{option} must be JSON: keys must be strings, and sequences must be lists.")
