"""The size of functions: how many lines they have, and how many branches and conditions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

from radon.visitors import ComplexityVisitor

from tests.architecture.test_layout import ROOT
from tests.architecture.trees import trees

if TYPE_CHECKING:
    from collections.abc import Iterator

    Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

MAX_LINES = 50
MAX_COMPLEXITY = 15
"""The linter's limit of 10 counts statements. This one also counts the conditions inside of expressions."""


def functions(tree: ast.Module) -> Iterator[Function]:
    """Yield all functions of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def code_lines(function: Function, lines: list[str]) -> int:
    """Return the count of a function's lines, without its docstring, empty lines and comments."""
    first = function.body[0]
    docstring: range = range(0)
    if ast.get_docstring(function) is not None:
        docstring = range(first.lineno, (first.end_lineno or first.lineno) + 1)
    count = 0
    for number in range(function.lineno, (function.end_lineno or function.lineno) + 1):
        text = lines[number - 1].strip()
        if number not in docstring and text and not text.startswith("#"):
            count += 1
    return count


def test_no_function_is_longer_than_a_page() -> None:
    too_long = []
    for path, tree in trees().items():
        lines = path.read_text(encoding="utf-8").splitlines()
        for function in functions(tree):
            count = code_lines(function, lines)
            if count > MAX_LINES:
                too_long.append(f"{path.relative_to(ROOT)}:{function.lineno} {function.name} has {count} lines")
    assert not too_long, f"More than {MAX_LINES} lines of code. Find the part that is a function of its own."


def test_no_function_has_too_many_branches_and_conditions() -> None:
    too_complex = []
    for path, tree in trees().items():
        visitor = ComplexityVisitor.from_ast(tree, no_assert=True)
        methods = [method for cls in visitor.classes for method in cls.methods]
        too_complex += [
            f"{path.relative_to(ROOT)}:{function.lineno} {function.name} has a complexity of {function.complexity}"
            for function in [*visitor.functions, *methods]
            if function.complexity > MAX_COMPLEXITY
        ]
    assert not too_complex, f"A complexity of more than {MAX_COMPLEXITY}. Find the part that is a function of its own."


def test_lines_of_code_are_neither_docstrings_nor_comments() -> None:
    source = 'def add(\n    a, b\n):\n    """Add.\n\n    Numbers.\n    """\n    # why\n\n    return a + b\n'
    (function,) = functions(ast.parse(source))
    assert code_lines(function, source.splitlines()) == 4
