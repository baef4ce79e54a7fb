"""JSON as the Functions host reads its files."""

from __future__ import annotations

import pytest

from funcmcp.adapters.azure.lenient_json import at, parse


def test_comments_and_trailing_commas_are_ignored() -> None:
    text = '{ // host\n "a": [1, 2,], /* block\n comment */ "b": "x",\n}'
    assert parse(text) == {"a": [1, 2], "b": "x"}


def test_strings_keep_what_looks_like_a_comment_or_a_comma() -> None:
    assert parse(r'{"url": "https://a.example/*x*/", "quote": "\"// ,]", "end": ",}"}') == {
        "url": "https://a.example/*x*/",
        "quote": '"// ,]',
        "end": ",}",
    }


def test_an_error_has_the_place_in_the_original_text() -> None:
    with pytest.raises(ValueError, match="line 3 column 8"):
        parse('{\n  // a comment\n  "a": oops\n}')


def test_deep_nesting_is_an_error() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse("[" * 200_000)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("Extensions", "HTTP"), {"routePrefix": "x"}),
        (("extensions", "http", "ROUTEPREFIX"), "x"),
        (("extensions", "mcp"), None),
        (("extensions", "http", "routePrefix", "deeper"), None),
    ],
)
def test_a_path_is_found_in_any_case(keys: tuple[str, ...], value: object) -> None:
    assert at({"extensions": {"Http": {"routePrefix": "x"}}}, *keys) == value


def test_a_path_without_keys_is_the_document() -> None:
    assert at([1]) == [1]
