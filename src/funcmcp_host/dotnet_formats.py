"""Dates, GUIDs and numbers as text, by the format strings of .NET in its invariant culture.

Source: "Standard date and time format strings", "Custom date and time format strings" and "Guid.ToString" of the
documentation of .NET.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_STANDARD = {
    "d": "MM/dd/yyyy",
    "D": "dddd, dd MMMM yyyy",
    "f": "dddd, dd MMMM yyyy HH:mm",
    "F": "dddd, dd MMMM yyyy HH:mm:ss",
    "g": "MM/dd/yyyy HH:mm",
    "G": "MM/dd/yyyy HH:mm:ss",
    "m": "MMMM dd",
    "M": "MMMM dd",
    "o": "yyyy-MM-ddTHH:mm:ss.fffffffK",
    "O": "yyyy-MM-ddTHH:mm:ss.fffffffK",
    "r": "ddd, dd MMM yyyy HH':'mm':'ss 'GMT'",
    "R": "ddd, dd MMM yyyy HH':'mm':'ss 'GMT'",
    "s": "yyyy-MM-ddTHH:mm:ss",
    "t": "HH:mm",
    "T": "HH:mm:ss",
    "u": "yyyy-MM-dd HH:mm:ss'Z'",
    "U": "dddd, dd MMMM yyyy HH:mm:ss",
    "y": "yyyy MMMM",
    "Y": "yyyy MMMM",
}
"""What a format of one letter stands for."""

_PART = re.compile(r"""y+|M+|d+|H+|h+|m+|s+|f+|F+|t+|z+|K|'[^']*'|"[^"]*"|\\.|%[a-zA-Z]|.""", re.DOTALL)
_FRACTION_DIGITS = 7
_NAMED_DAY = 3
_NAMED_MONTH = 3
_FULL_NAME = 4


def date_text(moment: datetime, text_format: str) -> str:
    """Return a moment in UTC as text.

    Args:
        moment: The moment.
        text_format: A standard format of one letter, or a custom one such as ``yyyy-MM-dd``.

    Raises:
        ValueError: .NET does not know the format.
    """
    if len(text_format) == 1:
        if text_format not in _STANDARD:
            raise ValueError(f"{text_format!r} is not a format of a date")
        text_format = _STANDARD[text_format]
    return "".join(_part_text(moment, part) for part in _PART.findall(text_format))


def _part_text(moment: datetime, part: str) -> str:
    """Return what a part of a custom format stands for."""
    if part.startswith("%") and len(part) > 1:
        part = part[1:]
    write = _WRITERS.get(part[0])
    if write is not None:
        return write(moment, len(part))
    if part[0] in "'\"":
        if len(part) == 1:
            raise ValueError(f"a {part} without its end")
        return part[1:-1]
    return part[1:] if part[0] == "\\" else part


def _number(value: int, width: int) -> str:
    return str(value).zfill(min(width, 2))


def _year(moment: datetime, width: int) -> str:
    return str(moment.year % 100).zfill(width) if width <= 2 else str(moment.year).zfill(width)  # noqa: PLR2004 - digits


def _month(moment: datetime, width: int) -> str:
    if width < _NAMED_MONTH:
        return _number(moment.month, width)
    name = _MONTHS[moment.month - 1]
    return name if width >= _FULL_NAME else name[:3]


def _day(moment: datetime, width: int) -> str:
    if width < _NAMED_DAY:
        return _number(moment.day, width)
    name = _DAYS[moment.weekday()]
    return name if width >= _FULL_NAME else name[:3]


def _fraction(moment: datetime, width: int) -> str:
    if width > _FRACTION_DIGITS:
        raise ValueError(f"a fraction of a second has at most {_FRACTION_DIGITS} digits")
    return f"{moment.microsecond:06d}0"[:width]


def _half_of_day(moment: datetime, width: int) -> str:
    name = "AM" if moment.hour < 12 else "PM"  # noqa: PLR2004 - noon
    return name[:width]


_WRITERS: dict[str, Callable[[datetime, int], str]] = {
    "y": _year,
    "M": _month,
    "d": _day,
    "H": lambda moment, width: _number(moment.hour, width),
    "h": lambda moment, width: _number((moment.hour + 11) % 12 + 1, width),
    "m": lambda moment, width: _number(moment.minute, width),
    "s": lambda moment, width: _number(moment.second, width),
    "f": _fraction,
    "F": lambda moment, width: _fraction(moment, width).rstrip("0"),
    "t": _half_of_day,
    "z": lambda _, width: ("+0", "+00", "+00:00")[min(width, 3) - 1],
    "K": lambda _moment, _width: "Z",
}

_GUID: dict[str, Callable[[UUID], str]] = {
    "N": lambda guid: guid.hex,
    "D": str,
    "B": lambda guid: f"{{{guid}}}",
    "P": lambda guid: f"({guid})",
    "X": lambda guid: (
        f"{{0x{guid.time_low:08x},0x{guid.time_mid:04x},0x{guid.time_hi_version:04x},"
        f"{{{','.join(f'0x{byte:02x}' for byte in guid.bytes[8:])}}}}}"
    ),
}


_CONSTANTS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_MAX_DIGITS = 15
_MIN_EXPONENT = -5


def number_text(number: float) -> str:
    """Return a number as the text of a double: 2 for 2.0, and 1E+16 from fifteen digits before the point on."""
    if not isfinite(number):
        return _CONSTANTS[str(number)]
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    first = len(digits) + int(exponent) - 1
    if number and not _MIN_EXPONENT < first < _MAX_DIGITS:
        fraction = "".join(map(str, digits[1:]))
        return f"{'-' * sign}{digits[0]}{'.' * bool(fraction)}{fraction}E{first:+03d}"
    return format(Decimal(repr(number)).normalize(), "f")


def guid_text(guid: UUID, text_format: str) -> str:
    """Return a GUID as text.

    Args:
        guid: The GUID.
        text_format: One of the letters N, D, B, P and X, in either case.

    Raises:
        ValueError: .NET does not know the format.
    """
    write = _GUID.get(text_format.upper())
    if write is None:
        raise ValueError(f"{text_format!r} is not a format of a GUID; these are N, D, B, P and X")
    return write(guid)
