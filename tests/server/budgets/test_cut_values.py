"""Shortened JSON values and texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from funcmcp._server.budgets.cut_values import (
    Cut,
    IndivisibleError,
    Path,
    end_of_part,
    last_end,
    shortened,
    size_of,
)

WORDS = st.text('ab .\n"é', max_size=60)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9999, 9999) | WORDS,
    lambda part: st.lists(part, max_size=12) | st.dictionaries(st.text("abc", max_size=3), part, max_size=4),
    max_leaves=60,
)
PROSE = "One sentence. Another one.\n\n" * 40


def accepts_all(_value: Any) -> list[Path]:
    return []


def objecting(schema: dict[str, Any]) -> Any:
    validator = Draft202012Validator(schema)
    return lambda value: [tuple(error.instance_path) for error in validator.iter_errors(value)]


def is_beginning(short: Any, value: Any) -> bool:
    """Return whether a value is a shortened one: arrays have their first items, and texts their first characters."""
    if isinstance(value, str):
        return isinstance(short, str) and value.startswith(short)
    if isinstance(value, list):
        return isinstance(short, list) and len(short) <= len(value) and all(map(is_beginning, short, value))
    if isinstance(value, dict):
        return list(short) == list(value) and all(is_beginning(short[name], value[name]) for name in value)
    return bool(short == value)


def missing_at(value: Any, short: Any, path: Path = ()) -> list[tuple[Path, int, int]]:
    """Return the path of each array or text that is shorter, with its old and its new length, by comparison."""
    places = []
    if isinstance(value, list | str) and len(short) < len(value):
        places.append((path, len(short), len(value)))
    if isinstance(value, list):
        for index, item in enumerate(short):
            places += missing_at(value[index], item, (*path, index))
    if isinstance(value, dict):
        for name in value:
            places += missing_at(value[name], short[name], (*path, name))
    return places


@given(VALUES, st.integers(0, 400))
def test_a_shortened_value_is_a_beginning_that_fits_and_its_cuts_are_what_is_missing(value: Any, size: int) -> None:
    try:
        short, cuts = shortened(value, size, accepts_all)
    except IndivisibleError:
        return
    assert size_of(short) <= size
    assert is_beginning(short, value)
    assert sorted((cut.path, cut.shown, cut.total) for cut in cuts) == sorted(missing_at(value, short))
    assert all(cut.shown > 0 for cut in cuts)


@given(st.lists(VALUES, min_size=1, max_size=30), st.integers(2, 300))
def test_an_array_loses_whole_items_from_its_end_if_its_first_item_fits(items: list[Any], size: int) -> None:
    if size_of(items[:1]) > size:
        return
    short, _ = shortened(items, size, accepts_all)
    assert short == items[: len(short)]
    assert short == items or size_of(items[: len(short) + 1]) > size


def test_the_longest_list_of_an_object_is_shortened_and_the_others_stay() -> None:
    value = {"total": 1000, "columns": ["id", "name"], "rows": [[index, f"name {index}"] for index in range(1000)]}
    short, cuts = shortened(value, 500, accepts_all)
    assert short["columns"] == ["id", "name"]
    assert cuts == [Cut(("rows",), len(short["rows"]), 1000)]
    assert size_of(short) > 470


def test_two_long_lists_are_shortened_to_the_same_length() -> None:
    value = {"errors": list(range(1000, 2000)), "warnings": list(range(1000, 2000))}
    short, cuts = shortened(value, 1000, accepts_all)
    assert len(short["errors"]) == pytest.approx(len(short["warnings"]), abs=1)
    assert [cut.path for cut in cuts] == [("errors",), ("warnings",)]


def test_the_list_inside_of_an_item_is_shortened_only_if_the_item_is_too_long_by_itself() -> None:
    order = {"id": 1, "lines": list(range(1000))}
    short, cuts = shortened([order, order], 300, accepts_all)
    assert [cut.path for cut in cuts] == [(), (0, "lines")]
    assert short[0]["id"] == 1
    rows = [{"id": index, "tags": ["a", "b"]} for index in range(100)]
    short, cuts = shortened(rows, 300, accepts_all)
    assert cuts == [Cut((), len(short), 100)]
    assert short[-1] == rows[len(short) - 1]


def test_a_text_of_an_object_ends_with_a_paragraph_and_a_text_of_an_item_is_never_shortened() -> None:
    short, cuts = shortened({"url": "https://example.com", "text": PROSE}, 700, accepts_all)
    assert short["text"].endswith("one.\n\n")
    assert cuts == [Cut(("text",), len(short["text"]), len(PROSE), is_text=True)]
    with pytest.raises(IndivisibleError, match=r"a part of 1,.* characters that can't be divided"):
        shortened([{"text": PROSE}], 700, accepts_all)


@pytest.mark.parametrize("text", ["x" * 2000, "a" * 399 + ".\n"])
def test_a_text_without_an_end_before_its_own_stays_whole(text: str) -> None:
    with pytest.raises(IndivisibleError):
        shortened({"text": text}, 300, accepts_all)


def test_a_text_whose_only_line_ends_early_is_shortened_to_it() -> None:
    short, _ = shortened({"text": "Title\n" + "x" * 2000}, 300, accepts_all)
    assert short == {"text": "Title\n"}


def test_no_list_is_shortened_to_nothing() -> None:
    with pytest.raises(IndivisibleError):
        shortened({"items": ["x" * 600]}, 300, accepts_all)


def test_a_list_that_the_schema_needs_stays_whole_and_the_others_are_shortened_more() -> None:
    schema = {"properties": {"axis": {"minItems": 30}, "rows": {"items": {"properties": {"cells": {"minItems": 2}}}}}}
    value = {"axis": list(range(30)), "rows": [{"cells": [row, row]} for row in range(100)]}
    short, cuts = shortened(value, 250, objecting(schema))
    assert short["axis"] == value["axis"]
    assert [cut.path for cut in cuts] == [("rows",)]


def test_lists_inside_of_a_list_that_the_schema_needs_are_shortened() -> None:
    schema = {"type": "array", "minItems": 2, "prefixItems": [{"type": "array"}, {"type": "array"}]}
    short, cuts = shortened([list(range(200)), list(range(200))], 300, objecting(schema))
    assert [len(items) > 10 for items in short] == [True, True]
    assert [cut.path for cut in cuts] == [(0,), (1,)]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"rows": {"minItems": 100}}},
        {"anyOf": [{"properties": {"rows": {"minItems": 100}}}, {"maxProperties": 0}]},
        {"required": ["columns"]},
    ],
)
def test_a_value_that_fits_its_schema_only_as_a_whole_is_indivisible(schema: dict[str, Any]) -> None:
    with pytest.raises(IndivisibleError):
        shortened({"rows": list(range(100))}, 100, objecting(schema))


def test_an_objection_to_what_is_not_shortened_can_not_be_met() -> None:
    with pytest.raises(IndivisibleError, match="its output schema does not allow"):
        shortened({"rows": list(range(100))}, 100, lambda _: [("color",)])


def test_a_schema_that_always_objects_ends_the_attempts() -> None:
    value = {str(index): list(range(100)) for index in range(20)}
    rejected = iter(range(20))

    def objects(_short: Any) -> list[Path]:
        return [(str(next(rejected)),)]

    with pytest.raises(IndivisibleError, match="its output schema does not allow"):
        shortened(value, 5000, objects)


@given(st.text("ab. \n!é", max_size=300), st.integers(1, 80))
def test_the_parts_of_a_text_are_the_text_and_none_is_too_long(text: str, size: int) -> None:
    parts, start = [], 0
    while start < len(text):
        end = end_of_part(text, start, size)
        assert start < end <= start + size
        parts.append(text[start:end])
        start = end
    assert "".join(parts) == text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("One. Two. Three.\n\nFour. Five.", "One. Two. Three.\n\n"),
        ("One two three. Four five six seven", "One two three. "),
        ("one two three\nfour five six seven", "one two three\n"),
        ("one two three four five six seven", "one two three four "),
        ("x" * 40, "x" * 20),
        ("\u4e00\u4e8c\u3002" * 10, "\u4e00\u4e8c\u3002" * 6),
        ("short", "short"),
    ],
)
def test_a_part_ends_with_a_paragraph_a_sentence_a_line_or_a_word(text: str, part: str) -> None:
    assert text[: end_of_part(text, 0, 20)] == part


def test_a_paragraph_that_ends_early_is_not_the_end_of_a_part_with_later_sentences() -> None:
    assert last_end("A.\n\nB is long. C is longer.", 0, 20) == len("A.\n\nB is long. ")


def test_sizes_are_characters_of_compact_json() -> None:
    value = {"a": "é\n", "b": [1, None]}
    assert size_of(value) == len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
