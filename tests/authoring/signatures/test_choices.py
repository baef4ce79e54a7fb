"""The JSON values and the texts of enums' members and literals' options."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum
from typing import Any, Literal
from uuid import UUID

import pytest

from funcmcp._authoring.signatures.choices import (
    choice_text,
    choices_of,
    distinct_json,
    expected_json,
    has_unnamed_bits,
    json_key,
    json_value,
    sum_of,
)

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    HELLO = "hello"


class Size(Enum):
    SMALL = (1, b"s")


class Access(Flag):
    READ = 1
    WRITE = 4


class OpenAccess(IntFlag):
    READ = 1


class Other(Enum):
    THING = object()


@pytest.mark.parametrize(
    ("choice", "value", "text"),
    [
        ("a", "a", "a"),
        (1, 1, "1"),
        (True, True, "true"),
        (None, None, "null"),
        (1.5, 1.5, "1.5"),
        (Decimal("1.50"), 1.5, "1.5"),
        (Decimal(3), 3, "3"),
        (b"x\xff", "eP8=", "eP8="),
        ((1, "ü"), [1, "ü"], '[1,"ü"]'),
        ({"a": (1,)}, {"a": [1]}, '{"a":[1]}'),
        (date(2026, 7, 28), "2026-07-28", "2026-07-28"),
        (timedelta(hours=1), "PT1H", "PT1H"),
        (UUID(int=1), str(UUID(int=1)), str(UUID(int=1))),
        (Level.LOW, 1, "1"),
        (Word.HELLO, "hello", "hello"),
        (Size.SMALL, [1, "cw=="], '[1,"cw=="]'),
        (Access.READ | Access.WRITE, 5, "5"),
    ],
)
def test_a_choice_has_one_json_value_and_one_text(choice: Any, value: Any, text: str) -> None:
    actual = json_value(choice)
    assert (actual, type(actual)) == (value, type(value))
    assert choice_text(choice) == text


@pytest.mark.parametrize(
    "choice", [object(), frozenset({1}), {1: 2}, float("nan"), Decimal("Infinity"), Other.THING, [len]]
)
def test_a_choice_that_json_can_not_carry_has_no_value(choice: Any) -> None:
    with pytest.raises(ValueError, match="has no JSON value"):
        json_value(choice)


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ([1], [True], False),
        ([1, [2]], [1, [2.0]], True),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ("1", 1, False),
        (None, False, False),
    ],
)
def test_true_is_not_1_in_json(first: Any, second: Any, is_same: bool) -> None:
    assert (json_key(first) == json_key(second)) is is_same


def test_choices_with_equal_json_are_listed_once() -> None:
    assert distinct_json([1, True, 1.0, "a", b"", ""]) == [1, True, "a", ""]


def test_many_choices_are_cut_short_in_errors() -> None:
    assert expected_json(["a"]) == '"a"'
    assert expected_json(["a", 1, None]) == 'one of "a", 1 or null'
    assert expected_json(list(range(60))).endswith(", 49 or 10 more")


@pytest.mark.parametrize(
    ("annotation", "texts"),
    [
        (bool, ["true", "false"]),
        (Level | None, ["1"]),
        (Literal["a", 1, None, b"x"], ["a", "1", "null", "eA=="]),
        (Size, ['[1,"cw=="]']),
        (Access, ["1", "4"]),
        (Other, []),
        (int, []),
    ],
)
def test_the_texts_of_a_types_choices(annotation: Any, texts: list[str]) -> None:
    assert choices_of(annotation) == texts


def test_an_int_flag_may_have_bits_without_names() -> None:
    assert (sum_of(Access), has_unnamed_bits(Access)) == (5, False)
    assert (sum_of(OpenAccess), has_unnamed_bits(OpenAccess)) == (1, True)
