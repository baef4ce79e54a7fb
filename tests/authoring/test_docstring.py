from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import pytest

from funcmcp.authoring.docstring import parameter_descriptions, summary


def google(a: int, b: int) -> None:
    """Add two numbers
    and say so.

    More words.

    Args:
        a: the first
            of them.
        b: the second.
    """


def numpy(a: int, b: int) -> None:
    """Add two numbers and say so.

    Parameters
    ----------
    a : int
        the first of them.
    b
        the second.
    """


def rest(a: int, b: int) -> None:
    """Add two numbers and say so.

    :param a: the first of them.
    :param b: the second.
    """


def crowded(a: int) -> None:
    """Add two numbers and say so.
    Args:
        a: the first of them.
    """


@pytest.mark.parametrize("function", [google, numpy, rest])
def test_three_styles_say_the_same(function: Any) -> None:
    assert summary(function) == "Add two numbers and say so."
    assert parameter_descriptions(function) == {"a": "the first of them.", "b": "the second."}


def test_a_section_without_a_blank_line_before_is_no_summary() -> None:
    assert summary(crowded) == "Add two numbers and say so."
    assert parameter_descriptions(crowded) == {"a": "the first of them."}


def test_partials_and_callable_objects_have_docstrings_of_their_own() -> None:
    class Adder:
        def __call__(self, a: int) -> int:
            """Add."""
            return a

    assert summary(functools.partial(rest, 1)) == "Add two numbers and say so."
    assert summary(Adder()) == "Add."
    assert summary(lambda: None) == ""
    assert parameter_descriptions(lambda: None) == {}


def test_a_one_line_docstring_loads_no_parser() -> None:
    code = (
        "import sys\nfrom funcmcp.authoring.docstring import parameter_descriptions, summary\n"
        "def f(): 'One line.'\n"
        "assert summary(f) == 'One line.' and parameter_descriptions(f) == {}\n"
        "assert 'docstring_parser' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
