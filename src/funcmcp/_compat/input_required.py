"""Questions to the client as results: ``InputRequiredResult`` of the specification, which the SDK and FastMCP use."""

from __future__ import annotations

from typing import Any

_NAME = "InputRequiredResult"


def is_input_required_type(hint: Any) -> bool:
    """Return whether a class is ``InputRequiredResult`` of the official SDK or of funcmcp, or a subclass."""
    return isinstance(hint, type) and any(base.__name__ == _NAME for base in hint.__mro__)
