"""Durations in messages."""

from __future__ import annotations

import math


def seconds_text(seconds: float) -> str:
    """Return a duration in words, such as "1 second" or "2.5 seconds"."""
    number = f"{seconds:g}"
    return f"{number} second" if number == "1" else f"{number} seconds"


def seconds_until(moment: float, now: float) -> int:
    """Return the whole seconds after which a moment is over, as a Retry-After has them: 1 if it is over or never."""
    return max(1, int(moment - now) + 1) if moment < math.inf else 1
