"""Whole results as texts, and their pages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funcmcp._server.budgets.full_texts import FullText, JSONWriter
from tests.server.budgets.test_cut_values import VALUES


def pages_of(full_text: FullText, size: int) -> list[str]:
    pages, start = [], 0
    while page := full_text.page(start, size):
        pages.append(page)
        start += len(page)
    return pages


@given(VALUES, st.integers(8, 60))
def test_the_pages_of_a_value_are_its_json_and_none_is_too_long(value: Any, size: int) -> None:
    text = JSONWriter(size).text(value)
    assert json.loads(text) == value
    pages = pages_of(FullText(text, is_json=True), size)
    assert "".join(pages) == text
    assert all(len(page) <= size for page in pages)


@given(st.lists(st.integers(0, 10**6), min_size=1), st.integers(12, 60))
def test_a_page_ends_between_two_items(items: list[int], size: int) -> None:
    full_text = FullText(JSONWriter(size).text({"items": items}), is_json=True)
    for page in pages_of(full_text, size)[:-1]:
        assert page.endswith("\n")


def test_an_item_that_is_longer_than_a_page_is_divided_in_the_same_way() -> None:
    text = JSONWriter(40).text([{"id": 1, "tags": ["a" * 20, "b" * 20]}, {"id": 2, "tags": []}])
    assert text.splitlines() == [
        "[",
        "{",
        '"id":1,',
        '"tags":[',
        f'"{"a" * 20}",',
        f'"{"b" * 20}"',
        "]",
        "},",
        '{"id":2,"tags":[]}',
        "]",
    ]


def test_places_are_noted_and_what_contains_them_is_divided() -> None:
    writer = JSONWriter(1000, [("rows", 1), ("text",)])
    text = writer.text({"rows": [1, 2], "text": "abc"})
    assert text[writer.starts[("rows", 1)] :].startswith("2")
    assert text[writer.starts[("text",)] :].startswith('"abc"')


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ('"One sentence. Another one here"', '"One sentence. '),
        ('"one line here\\nanother line"', '"one line here\\n'),
        ('"' + "x" * 30 + '"', '"' + "x" * 19),
        ('"' + "x" * 18 + '\\t and more"', '"' + "x" * 18),
        ("\\" * 30, "\\" * 14),
    ],
)
def test_a_page_of_one_long_text_does_not_end_inside_an_escape(text: str, page: str) -> None:
    assert FullText(text, is_json=True).page(0, 20) == page


def test_a_page_of_a_text_ends_with_a_paragraph() -> None:
    full_text = FullText("One.\n\nTwo three four.\n\nFive six seven.", is_json=False)
    assert pages_of(full_text, 24) == ["One.\n\nTwo three four.\n\n", "Five six seven."]
    assert full_text.page(1000, 24) == ""
