"""Descriptions from docstrings: the text that no schema has stays as written, and no words are lost."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import mcp
import pydantic
import pytest
import rich
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._authoring.signatures.docstring import (
    class_description,
    described_fields,
    description,
    descriptions_in,
    parameter_descriptions,
)

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")

GOOGLE = """Add two numbers
and say so.

More words.

Args:
    a: the first
        of them.
    b: the second.
"""
NUMPY = """Add two numbers
and say so.

More words.

Parameters
----------
a : int
    the first
    of them.
b
    the second.
"""
REST = """Add two numbers
and say so.

More words.

:param a: the first
    of them.
:type a: int
:param int b: the second.
"""
LIST = """Add two numbers
and say so.

More words.

Parameters:
- a: the first
  of them.
- `b` (int): the second.
"""
JAVADOC = """Add two numbers
and say so.

More words.

@param a the first
    of them.
@param {int} b - the second.
"""

# Docstrings as public servers have them, with the descriptions of `a` and `b` and the text that remains.
SHAPES: dict[str, tuple[str, dict[str, str], str]] = {
    "sub-bullets keep their lines": (
        "S.\n\nArgs:\n    a: One of:\n        - x: the first\n        - y: the second\n    b: B.",
        {"a": "One of:\n- x: the first\n- y: the second", "b": "B."},
        "S.",
    ),
    "paragraphs of an entry keep their gap": (
        "S.\n\nArgs:\n    a: First.\n\n        Second.\n\n    b: B.\n\nEnd.",
        {"a": "First.\n\nSecond.", "b": "B."},
        "S.\n\nEnd.",
    ),
    "code in an entry": (
        "S.\n\nArgs:\n    a: Such as\n        ```\n        x = 1\n          y = 2\n        ```\n",
        {"a": "Such as\n```\nx = 1\n  y = 2\n```"},
        "S.",
    ),
    "types that say no more than a schema": (
        "S.\n\nArgs:\n    a (str, optional): A.\n    b (Optional[List[int]]): B.",
        {"a": "A.", "b": "B."},
        "S.",
    ),
    "types that say more": (
        "S.\n\nArgs:\n    a (int, 1-50): A.\n    b (Literal['x', 'y']): B.",
        {"a": "(int, 1-50) A.", "b": "(Literal['x', 'y']) B."},
        "S.",
    ),
    "a section in the middle": (
        "S.\n\nArgs:\n    a: A.\n    b: B.\n\nReturns:\n    int: The sum.\n\nRaises:\n    ValueError: Never.",
        {"a": "A.", "b": "B."},
        "S.\n\nReturns:\n    int: The sum.\n\nRaises:\n    ValueError: Never.",
    ),
    "two sections": (
        "S.\n\nArgs:\n    a: A.\n\nMiddle.\n\nKeyword Args:\n    b: B.\n",
        {"a": "A.", "b": "B."},
        "S.\n\nMiddle.",
    ),
    "two entries of one name": (
        "S.\n\nArgs:\n    a: A.\n\nArgs:\n    a: Another.\n",
        {"a": "A."},
        "S.\n\nArgs:\n    a: Another.",
    ),
    "entries that are no parameters": (
        "S.\n\nArgs:\n    a: A.\n    timeout: Seconds.\n        Many.\n",
        {"a": "A.", "timeout": "Seconds. Many."},
        "S.\n\nArgs:\n    timeout: Seconds.\n        Many.",
    ),
    "words before the first entry": (
        "S.\n\nArgs:\n    All are numbers.\n    a: A.\n",
        {"a": "A."},
        "S.\n\nArgs:\n    All are numbers.",
    ),
    "lines that are not indented enough": (
        "S.\n\nArgs:\n    a: The first\n    of them all.\n    b: B.",
        {"a": "The first of them all.", "b": "B."},
        "S.",
    ),
    "an empty section": ("S.\n\nArgs:\n\nEnd.", {}, "S.\n\nArgs:\n\nEnd."),
    "an empty section before a full one": (
        "S.\n\nArgs:\nNone.\n\n:param a: A.",
        {"a": "A."},
        "S.\n\nArgs:\nNone.",
    ),
    "an entry without text": ("S.\n\nArgs:\n    a:\n    b: B.", {"b": "B."}, "S.\n\nArgs:\n    a:"),
    "text without a section": ("S.\n\na: not an entry.", {}, "S.\n\na: not an entry."),
    "no gap before the section": ("S.\nArgs:\n    a: A.\nReturns:\n    B.", {"a": "A."}, "S.\nReturns:\n    B."),
    "a Markdown heading": (
        "# S\n\n## Parameters\n\n- **a**: A.\n- **b** (int): B.\n\n## Returns\n\nIt.",
        {"a": "A.", "b": "B."},
        "# S\n\n## Returns\n\nIt.",
    ),
    "a bold heading": ("S.\n\n**Parameters:**\n- **a:** A.\n* b - B.", {"a": "A.", "b": "B."}, "S."),
    "a numbered list": ("S.\n\nParameters:\n1. a: A.\n2. b: B.", {"a": "A.", "b": "B."}, "S."),
    "a list with dashes": ("S.\n\nArgs:\n    a - A.\n    b \u2013 B.", {"a": "A.", "b": "B."}, "S."),
    "a list of other things": ("S.\n\nParameters:\n- all of them\n", {}, "S.\n\nParameters:\n- all of them"),
    "a list that ends": (
        "S.\n\nParameters:\n- a: A.\n- b: B.\nReturns a number.",
        {"a": "A.", "b": "B."},
        "S.\n\nReturns a number.",
    ),
    "entries that are not indented": (
        "S.\n\nArgs:\na: A.\nb: B.\n\nNote: c.",
        {"a": "A.", "b": "B."},
        "S.\n\nNote: c.",
    ),
    "a heading as a word of a sentence": (
        "It takes\narguments\nand adds them.",
        {},
        "It takes\narguments\nand adds them.",
    ),
    "a section in a code fence": (
        "S.\n\n```\nArgs:\n    a: No.\n:param b: No.\n```\n\nArgs:\n    a: A.",
        {"a": "A."},
        "S.\n\n```\nArgs:\n    a: No.\n:param b: No.\n```",
    ),
    "a code fence without an end": ("S.\n\n```\nArgs:\n    a: No.", {}, "S.\n\n```\nArgs:\n    a: No."),
    "a section in an example": (
        "S.\n\nExample:\n    Args:\n        a: No.",
        {},
        "S.\n\nExample:\n    Args:\n        a: No.",
    ),
    "tabs": ("S.\n\nArgs:\n\ta: A\n\t\tmore.\n\tb: B.", {"a": "A more.", "b": "B."}, "S."),
    "NumPy names together": (
        "S.\n\nParameters\n----------\na, b : int\n    Both.\n\nReturns\n-------\nint\n    It.",
        {"a": "Both.", "b": "Both."},
        "S.\n\nReturns\n-------\nint\n    It.",
    ),
    "NumPy choices": ("S.\n\nParameters\n==========\na : {'x', 'y'}\n    A.", {"a": "({'x', 'y'}) A."}, "S."),
    "NumPy without text": (
        "S.\n\nParameters\n----------\na : int\nb : 1 to 9\n",
        {"b": "1 to 9"},
        "S.\n\nParameters\n----------\na : int",
    ),
    "NumPy, then prose": (
        "S.\n\nParameters\n----------\na : int\n    A.\n\nEnd of it.",
        {"a": "A."},
        "S.\n\nEnd of it.",
    ),
    "an underline and a list": ("S.\n\nArgs\n----\n- a: A.\n- b: B.", {"a": "A.", "b": "B."}, "S."),
    "reST between other fields": (
        "S.\n\n:param a: A.\n:param str b: B.\n:returns: It.\n:raises ValueError: never.",
        {"a": "A.", "b": "B."},
        "S.\n\n:returns: It.\n:raises ValueError: never.",
    ),
    "reST types": (
        "S.\n\n:param a: A.\n:type a: int\n:type b: int\n:param b:\n",
        {"a": "A."},
        "S.\n\n:type b: int\n:param b:",
    ),
    "reST types that say more": ("S.\n\n:param a: A.\n:type a: Path", {"a": "A."}, "S.\n\n:type a: Path"),
    "reST and a section": ("S.\n\nArgs:\n    a: A.\n\n:param b: B.", {"a": "A.", "b": "B."}, "S."),
    "another language": (
        "Suche.\n\nArgs:\n    a: Gr\u00f6\u00dfe in \u20ac.\n    b\uff1a\u691c\u7d22\u3002\n\nArgumente:\n    a: x",
        {"a": "Gr\u00f6\u00dfe in \u20ac.", "b": "\u691c\u7d22\u3002"},
        "Suche.\n\nArgumente:\n    a: x",
    ),
    "URLs and times": (
        "S.\n\nArgs:\n    a: See\n    https://x.example\n    12:30 b",
        {"a": "See https://x.example 12:30 b"},
        "S.",
    ),
    "wide gaps of the author": ("S.\n\n\n\nEnd.\n\nArgs:\n    a: A.", {"a": "A."}, "S.\n\n\n\nEnd."),
    "an empty docstring": ("", {}, ""),
}


def documented(docstring: str) -> Any:
    def function(a: int, b: int) -> None:
        """Replaced below."""

    function.__doc__ = docstring
    return function


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, REST, LIST, JAVADOC], ids=str.split)
def test_five_styles_say_the_same(docstring: str) -> None:
    function = documented(docstring)
    descriptions = parameter_descriptions(function)
    assert descriptions == {"a": "the first of them.", "b": "the second."}
    assert description(function, descriptions.values()) == "Add two numbers\nand say so.\n\nMore words."
    assert description(function) == docstring.strip()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_docstring_is_read_without_loss(shape: str) -> None:
    docstring, expected, remaining = SHAPES[shape]
    function = documented(docstring)
    descriptions = parameter_descriptions(function)
    assert descriptions == expected
    assert description(function, {descriptions[name] for name in ("a", "b") if name in descriptions}) == remaining
    assert description(function) == docstring.expandtabs().strip()


WORDS = st.sampled_from(
    [
        "Args:",
        "Parameters",
        "----------",
        "a: A",
        "b : int",
        "- a: text",
        ":param a: x",
        "@param b y",
        "```",
        "",
        "Text.",
    ]
)


@pytest.mark.slow("Many values or schemas take half a second or longer.")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), WORDS), max_size=20))
def test_any_lines_survive_in_the_description_or_in_those_of_parameters(lines: list[tuple[int, str]]) -> None:
    docstring = "Start.\n" + "\n".join("  " * depth + text for depth, text in lines)
    function = documented(docstring)
    descriptions = parameter_descriptions(function)
    sent = " ".join([description(function, descriptions.values()), *descriptions.values(), *descriptions])
    structure = {"Args", "Parameters", "param", "int"}
    lost = set(re.findall(r"\w+", docstring)) - set(re.findall(r"\w+", sent))
    assert lost <= structure


STRUCTURE = frozenset(["Args", "Arguments", "Keyword", "Parameters", "param", "type", "optional", "str", "int", "bool"])


@pytest.mark.slow("Many values or schemas take half a second or longer.")
def test_the_words_of_real_docstrings_survive() -> None:
    """At least 99 % of those in all functions of three packages, headings and plain types aside."""
    counted: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for package in (mcp, pydantic, rich):
        for path in Path(package.__path__[0]).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                docstring = (
                    ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None
                )
                if docstring:
                    function = documented(docstring)
                    descriptions = parameter_descriptions(function)
                    remaining = description(function, descriptions.values())
                    docstring_words = Counter(re.findall(r"\w+", docstring))
                    counted += docstring_words
                    lost += docstring_words - Counter(
                        re.findall(r"\w+", " ".join([remaining, *descriptions, *descriptions.values()]))
                    )
    assert counted.total() > 20_000
    assert sum(count for word, count in lost.items() if word not in STRUCTURE) < counted.total() / 100


def test_an_entry_whose_text_is_not_in_the_schema_stays() -> None:
    function = documented(GOOGLE)
    assert description(function, {"the second."}) == (
        "Add two numbers\nand say so.\n\nMore words.\n\nArgs:\n    a: the first\n        of them."
    )


def test_partials_and_callable_objects_have_docstrings_of_their_own() -> None:
    class Adder:
        def __call__(self, a: int) -> int:
            """Add."""
            return a

    assert description(functools.partial(documented("Add."), 1)) == "Add."
    assert description(Adder()) == "Add."
    assert description(lambda: None) == ""
    assert parameter_descriptions(lambda: None) == {}


def test_a_function_without_a_signature_keeps_its_docstring() -> None:
    assert description(dict.fromkeys).startswith("Create a new dictionary")
    assert description(type("Odd", (), {"__doc__": "Text.", "__signature__": 1})()) == "Text."


def test_the_docstring_of_a_class_describes_its_fields() -> None:
    class Order:
        """An order.

        Attributes:
            number: Its number.
            state: Its state.

        Notes:
            Made once.
        """

    names = {"number", "state"}
    assert described_fields(Order, names) == {"number": "Its number.", "state": "Its state."}
    assert class_description(Order, names, {"Its number.", "Its state."}) == "An order.\n\nNotes:\n    Made once."
    assert described_fields(type("Sub", (Order,), {}), names) == {}


def test_descriptions_of_a_schema_are_those_of_its_properties() -> None:
    schema = {"properties": {"a": {"description": "A."}, "b": {}, "c": True, "d": {"description": 1}}}
    assert descriptions_in(schema) == {"A."}
    assert descriptions_in(True) == set()
