from __future__ import annotations

import pytest

from funcmcp.authoring.naming import humanised, is_name, snake_case


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
