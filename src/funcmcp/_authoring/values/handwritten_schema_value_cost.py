"""The cost of a value's parts in a check against a hand-written schema.

Most parts have the same cost, one unit. Large numbers take the library far longer: for ``multipleOf`` it divides exact
fractions, and for ``uniqueItems`` it compares integers with equal double-precision values one by one.
"""

from __future__ import annotations

from collections import Counter
from math import frexp
from typing import Any

_EXACT = 2**53
_MAX_BITS = 64
_COST_OF_DIVISION = 20


def cost_exceeds(value: Any, limit: int, *, has_multiples: bool, has_unique: bool) -> bool:
    """Return whether the parts of a JSON value cost more than *limit* to check.

    Args:
        value: The value.
        limit: The limit, in applications of a plain schema to a small part.
        has_multiples: Whether the schema has the keyword ``multipleOf``.
        has_unique: Whether the schema has the keyword ``uniqueItems``.
    """
    total = 0
    equal: Counter[float] = Counter()
    pending = [value]
    while pending:
        part = pending.pop()
        total += 1
        if isinstance(part, dict | list):
            if total + len(pending) + len(part) > limit:
                return True
            pending += part.values() if isinstance(part, dict) else part
        elif isinstance(part, int):
            bits = part.bit_length()
            if bits > _MAX_BITS:
                total += bits + bits * bits // 8192
            if has_unique and not -_EXACT <= part <= _EXACT:
                rounded = _rounded(part)
                total += equal[rounded] * (20 + bits * bits // 16384)
                equal[rounded] += 1
        elif has_multiples and isinstance(part, float):
            total += _COST_OF_DIVISION + abs(frexp(part)[1])
        if total > limit:
            return True
    return False


def _rounded(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
