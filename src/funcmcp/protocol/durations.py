"""Durations in messages."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """Return a duration in words, such as "1 second" or "2.5 seconds"."""
    number = f"{seconds:g}"
    return f"{number} second" if number == "1" else f"{number} seconds"
