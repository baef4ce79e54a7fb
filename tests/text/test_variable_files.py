"""Files with environment variables, as docker and python-dotenv read them."""

from __future__ import annotations

import pytest

from funcmcp._text.variable_files import variables_in


def test_values_are_read_with_and_without_quotes() -> None:
    text = "# comment\n\nA=1\nexport B='two words'\nC=\"line\\nbreak\"\nD=plain # comment\nE=\nF=a=b\n"
    assert variables_in(text) == {
        "A": "1",
        "B": "two words",
        "C": "line\nbreak",
        "D": "plain",
        "E": "",
        "F": "a=b",
    }


@pytest.mark.parametrize("line", ["no assignment", "1A=x", "A='x", 'A="x'])
def test_another_line_is_an_error_that_does_not_show_it(line: str) -> None:
    with pytest.raises(ValueError, match=r"^line 2: write NAME=VALUE") as caught:
        variables_in(f"OK=1\n{line}\n")
    assert line not in str(caught.value)
