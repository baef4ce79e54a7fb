"""Dates, GUIDs and numbers by the format strings of .NET. The expected texts are those of its documentation."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from funcmcp_host.dotnet_formats import date_text, guid_text, number_text

MOMENT = datetime(2009, 6, 15, 13, 45, 30, 617500, UTC)
GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")


@pytest.mark.parametrize(
    ("text_format", "text"),
    [
        ("d", "06/15/2009"),
        ("D", "Monday, 15 June 2009"),
        ("f", "Monday, 15 June 2009 13:45"),
        ("F", "Monday, 15 June 2009 13:45:30"),
        ("g", "06/15/2009 13:45"),
        ("G", "06/15/2009 13:45:30"),
        ("M", "June 15"),
        ("m", "June 15"),
        ("O", "2009-06-15T13:45:30.6175000Z"),
        ("R", "Mon, 15 Jun 2009 13:45:30 GMT"),
        ("s", "2009-06-15T13:45:30"),
        ("t", "13:45"),
        ("T", "13:45:30"),
        ("u", "2009-06-15 13:45:30Z"),
        ("Y", "2009 June"),
        ("yyyy-MM-dd", "2009-06-15"),
        ("yyyyMMdd", "20090615"),
        ("MM/yyyy", "06/2009"),
        ("yyyy-mm-dd", "2009-45-15"),
        ("yy y yyyyy", "09 9 02009"),
        ("ddd dddd d", "Mon Monday 15"),
        ("MMM MMMM M", "Jun June 6"),
        ("h:mm tt t", "1:45 PM P"),
        ("HH' o''clock'", "13 oclock"),
        ("s.ff ss.fffffff FFF FFFFFFF", "30.61 30.6175000 617 6175"),
        (r"\d\a\y d", "day 15"),
        ('"at" %h', "at 1"),
        ("%d", "15"),
        ("K z zz zzz", "Z +0 +00 +00:00"),
    ],
)
def test_a_date(text_format: str, text: str) -> None:
    assert date_text(MOMENT, text_format) == text


@pytest.mark.parametrize(("hour", "text"), [(0, "12 AM"), (11, "11 AM"), (12, "12 PM"), (23, "11 PM")])
def test_hours_of_half_a_day(hour: int, text: str) -> None:
    assert date_text(MOMENT.replace(hour=hour), "h tt") == text


@pytest.mark.parametrize("text_format", ["x", "q", "ffffffff", "'open"])
def test_an_unknown_format_of_a_date_is_an_error(text_format: str) -> None:
    with pytest.raises(ValueError, match=r"is not a format of a date|digits|without its end"):
        date_text(MOMENT, text_format)


@pytest.mark.parametrize(
    ("text_format", "text"),
    [
        ("N", "00112233445566778899aabbccddeeff"),
        ("d", "00112233-4455-6677-8899-aabbccddeeff"),
        ("B", "{00112233-4455-6677-8899-aabbccddeeff}"),
        ("P", "(00112233-4455-6677-8899-aabbccddeeff)"),
        ("X", "{0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}"),
    ],
)
def test_a_guid(text_format: str, text: str) -> None:
    assert guid_text(GUID, text_format) == text


def test_an_unknown_format_of_a_guid_is_an_error() -> None:
    with pytest.raises(ValueError, match="N, D, B, P and X"):
        guid_text(GUID, "Z")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (2.0, "2"),
        (-0.5, "-0.5"),
        (1500.0, "1500"),
        (123456789012345.0, "123456789012345"),
        (1e15, "1E+15"),
        (1234567890123456.0, "1.234567890123456E+15"),
        (-1.5e300, "-1.5E+300"),
        (0.0001, "0.0001"),
        (0.00001, "1E-05"),
        (0.0, "0"),
        (-0.0, "-0"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_a_number_is_the_text_of_a_double(number: float, text: str) -> None:
    assert number_text(number) == text
