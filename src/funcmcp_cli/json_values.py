"""JSON values that a server sends. A server may send a value of any type in place of the right one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def as_object(value: Any) -> Mapping[str, Any]:
    """Return an object. Return an empty one for a value of another type."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return an array. Return an empty one for a value of another type."""
    return value if isinstance(value, list) else []


def first_line(feature: Mapping[str, Any]) -> str:
    """Return the first line of a feature's description. Return "" if there is none."""
    lines = str(feature.get("description") or "").splitlines()
    return lines[0] if lines else ""
