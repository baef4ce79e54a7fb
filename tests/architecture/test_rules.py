"""The codebook of rules: each rule has a text, a source and a test, and tests refer to rules by name only."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests import rules

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
TEST_FILES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "tests").rglob("*.py"))
    if "node_modules" not in path.parts
]
RULES = {name: value for name, value in vars(rules).items() if isinstance(value, rules.Rule)}
_ID = re.compile(r"\b(?:(?:[Rr]ow|[Tt]rap|[Tt]hreat)s? \d+|(?:[HDJVTRPCGKASMXU]|PR|LG|TR)\d{1,2})\b")

Marked = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def marked_in(tree: ast.Module) -> Iterator[Marked]:
    """Yield the test functions and the classes of tests in a module."""
    for node in ast.walk(tree):
        if isinstance(node, Marked) and node.name.lower().startswith("test"):
            yield node


def rules_of(test: Marked) -> Iterator[str]:
    """Yield the names in the `rules.verifies(...)` decorators of a test."""
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "rules.verifies":
            yield from (ast.unparse(argument).removeprefix("rules.") for argument in decorator.args)


def mentions(tree: ast.Module) -> list[str]:
    """Return the ids of rules in docstrings."""
    documented = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, documented)]
    return _ID.findall("\n".join(docstrings))


@functools.cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def tree_of(path: str) -> ast.Module:
    return ast.parse(text_of(path))


@functools.cache
def names_of_rules() -> set[tuple[str, str]]:
    """Return the paths of tests, each with the names of rules in its decorators."""
    paths = [path for path in TEST_FILES if "rules.verifies(" in text_of(path)]
    return {(path, name) for path in paths for test in marked_in(tree_of(path)) for name in rules_of(test)}


def test_every_rule_has_a_test() -> None:
    assert not RULES.keys() - {name for _, name in names_of_rules()}


def test_tests_name_rules_that_exist() -> None:
    assert not {f"{path}: {name}" for path, name in names_of_rules() if name not in RULES}


def test_no_docstring_has_the_id_of_a_rule() -> None:
    """An id without its text says nothing: mark the test with `@rules.verifies` instead."""
    paths = [path for path in TEST_FILES if path != "tests/rules.py" and _ID.search(text_of(path))]
    assert not {path: ids for path in paths if (ids := mentions(tree_of(path)))}


def test_a_mention_is_found() -> None:
    tree = ast.parse('def test_it() -> None:\n    """Trap 4, H16: see row 7 of 12 and V2."""')
    assert mentions(tree) == ["Trap 4", "H16", "row 7", "V2"]


def test_a_rule_has_a_sentence_and_sources() -> None:
    assert not [name for name, rule in RULES.items() if not rule.text.endswith(".")]
    assert not [name for name, rule in RULES.items() if not rule.sources]
    sources = {(name, source) for name, rule in RULES.items() for source in rule.sources}
    pages = {(name, source) for name, source in sources if not source.startswith("https://")}
    assert not {f"{name}: {source}" for name, source in pages if not (ROOT / source.partition("#")[0]).is_file()}


def test_no_rule_is_there_twice() -> None:
    assert len({rule.text for rule in RULES.values()}) == len(RULES)
