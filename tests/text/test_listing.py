"""Numbers and names in a sentence."""

from __future__ import annotations

import pytest

from funcmcp._text.listing import counted, some_of


@pytest.mark.parametrize(("count", "text"), [(0, "0 tools"), (1, "1 tool"), (2, "2 tools")])
def test_a_noun_has_the_form_for_its_number(count: int, text: str) -> None:
    assert counted(count, "tool") == text


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d", "e"], "a, b and 3 more")]
)
def test_more_names_than_the_limit_are_a_number(names: list[str], text: str) -> None:
    assert some_of(names, 2) == text
