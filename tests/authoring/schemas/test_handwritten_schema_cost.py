"""What the parts of a value cost that is checked against a hand-written schema."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._authoring.schemas.handwritten_schema import cost_exceeds, schema_checker
from tests.authoring.schemas.test_handwritten_schema_applications import doubling, in_lists

TOO_MUCH = "The value is too large or too deeply nested to be checked against the schema"


def array(**items: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"type": "array", **items}}}


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (array(uniqueItems=True), [10**30 + number for number in range(100_000)]),
        (array(uniqueItems=True), [-(2**63) + number for number in range(100_000)]),
        (array(uniqueItems=True), [10**4000 * number for number in range(1, 1_000)]),
        (array(uniqueItems=True), [{"a": 10**30 + number} for number in range(50_000)]),
        (array(items={"multipleOf": 0.01}), [1e308] * 200_000),
        (array(items={"multipleOf": 1e-300}), [7.5] * 200_000),
        (array(items={"multipleOf": 7}), [7 * 10**4000] * 1_000),
        (array(items={"minimum": 0.5}), [10**4000] * 1_000),
        (array(items={"enum": [number + 0.5 for number in range(10_000)]}), [9_999.5] * 10_000),
        (array(items={"enum": [{"a": number} for number in range(10_000)]}), [{"a": 9_999}] * 10_000),
        (array(items={"anyOf": [{"const": number} for number in range(1_000)]}), [999] * 100_000),
    ],
)
def test_values_that_take_long_to_check_are_refused_unchecked(schema: dict[str, Any], values: list[Any]) -> None:
    ((path, words),) = schema_checker(schema, "input_schema")({"x": values})
    assert (path, words.partition(".")[0]) == ("", TOO_MUCH)


def test_nested_values_for_references_that_double_are_refused_unchecked() -> None:
    errors = schema_checker(doubling(30, "anyOf", in_items=True), "input_schema")
    ((_, words),) = errors(in_lists(30))
    assert words.startswith(TOO_MUCH)
    assert errors([[[]]]) == []


def test_large_values_that_are_fast_to_check_are_checked() -> None:
    unique = schema_checker(array(uniqueItems=True), "input_schema")
    assert unique({"x": list(range(200_000))}) == []
    assert unique({"x": [2**60 + number * 10**6 for number in range(10_000)]}) == []
    assert unique({"x": [10**4000, 10**4000]}) == [("x", "must not have the same item twice")]
    multiple = schema_checker(array(items={"multipleOf": 0.01}), "input_schema")
    assert multiple({"x": [12.34] * 10_000}) == []
    choice = schema_checker(array(items={"enum": [str(number) for number in range(10_000)]}), "input_schema")
    assert choice({"x": ["9999"] * 100_000}) == []


def test_every_part_counts() -> None:
    value = {"a": [1, {"b": None}], "c": "text"}
    assert cost_exceeds(value, 5, has_multiples=False, has_unique=False)
    assert not cost_exceeds(value, 6, has_multiples=False, has_unique=False)


def test_numbers_cost_more_where_they_take_longer() -> None:
    assert not cost_exceeds(1e308, 1, has_multiples=False, has_unique=False)
    assert cost_exceeds(1e308, 1_000, has_multiples=True, has_unique=False)
    assert not cost_exceeds(2**63, 1, has_multiples=True, has_unique=False)
    assert cost_exceeds(2**64, 60, has_multiples=False, has_unique=False)
    assert cost_exceeds([2**60] * 3, 60, has_multiples=False, has_unique=True)
    assert cost_exceeds([-(10**400)] * 2, 2_000, has_multiples=False, has_unique=True)
