from __future__ import annotations

import pytest

from funcmcp._authoring.signatures.naming import humanised, is_name, is_text, snake_case, title_of

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")


@pytest.mark.parametrize(
    ("name", "snake", "title"),
    [
        ("AddNumbers", "add_numbers", "Add Numbers"),
        ("AddNumbersTool", "add_numbers_tool", "Add Numbers Tool"),
        ("add_numbers", "add_numbers", "Add Numbers"),
        ("HTTPServer", "http_server", "HTTP Server"),
        ("getHTTPResponse2", "get_http_response2", "Get HTTP Response2"),
        ("_private", "_private", "Private"),
        ("add", "add", "Add"),
    ],
)
def test_names_become_snake_case_and_titles_words(name: str, snake: str, title: str) -> None:
    assert snake_case(name) == snake
    assert humanised(name) == title


@pytest.mark.parametrize("name", ["a", "A.b-c_9", "x" * 128])
def test_the_specification_allows_letters_digits_and_three_signs(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "x" * 129, "a b", "echo\n", "größe", "a/b"])
def test_any_other_name_is_refused(name: str) -> None:
    assert not is_name(name)


@pytest.mark.parametrize("name", ["Daily menu", "größe: 2", "a/b", "メニュー"])
def test_prompts_and_resources_may_be_called_by_any_line_of_text(name: str) -> None:
    assert is_text(name)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[31m", "a\ud800"])
def test_what_is_not_a_line_of_text_is_refused(name: str) -> None:
    assert not is_text(name)


@pytest.mark.parametrize(
    ("name", "function", "title"),
    [
        (None, "AddNumbers", "Add Numbers"),
        ("list_all", "call_tool", "List All"),
        ("Menu of the day", "call_tool", "Menu of the day"),
        ("_", "call_tool", None),
    ],
)
def test_a_title_comes_from_the_name_that_was_given(name: str | None, function: str, title: str | None) -> None:
    assert title_of(name, function) == title
