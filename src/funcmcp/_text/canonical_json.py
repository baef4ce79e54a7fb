"""JSON in one form for each value, so that equal values have equal hashes (RFC 8785, JSON Canonicalization Scheme).

Integers of more than 53 bits, which RFC 8785 does not allow, have all their digits, so that different ones differ.
"""

from __future__ import annotations

import json
from typing import Any

_EXACT = 2**53
"""Integers below are exact in double precision."""

_PLAIN_DIGITS = 21
"""Digits before the point up to which ECMAScript writes a number without an exponent."""

_PLAIN_ZEROS = -6
"""The exponent down to which ECMAScript writes a small number without one."""


def canonical(value: Any) -> bytes:
    """Return a JSON value as text in UTF-8; raise ValueError for a value that JSON does not have."""
    return _text(value).encode()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{_text(name)}:{_text(value[name])}" for name in names) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    raise ValueError(f"JSON has no {type(value).__name__}.")


def _number(value: float) -> str:
    """Return a number as ECMAScript writes it (Number::toString)."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN is not equal to itself
        raise ValueError("JSON has no infinite numbers and no NaN.")
    if value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction if fraction != "0" else ""
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))  # digits before the point
    digits = digits.rstrip("0")
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """Return digits with a decimal point behind so many of them, or with an exponent."""
    if len(digits) <= point <= _PLAIN_DIGITS:
        return digits + "0" * (point - len(digits))
    if 0 < point <= _PLAIN_DIGITS:
        return f"{digits[:point]}.{digits[point:]}"
    if _PLAIN_ZEROS < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"
