"""The passes of scripts/test.sh: each mark that selects tests has a reason, and each test is in a pass."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from itertools import combinations
from pathlib import Path

import pytest

from tests.conftest import COVERED

ROOT = Path(__file__).parents[2]
PASS = re.compile(r'scripts/pass\.sh (?P<folder>\S+) -m (?:"(?P<quoted>[^"]+)"|(?P<mark>\w+))')
SCRIPT = (ROOT / "scripts/test.sh").read_text(encoding="utf-8")
_SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
MARKS = [mark.partition("(")[0] for mark in _SETTINGS["pytest"]["ini_options"]["markers"]]
MIN_WORDS = 4


@functools.cache
def texts() -> dict[str, str]:
    """Return the texts of the modules of tests by their paths in the repository."""
    paths = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "node_modules" not in path.parts]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax trees of those modules that name a mark of a pass."""
    naming = re.compile(rf"pytest\.mark\.({'|'.join(MARKS)})\b")
    return {path: ast.parse(text) for path, text in texts().items() if naming.search(text)}


def marks_of(tree: ast.AST) -> list[tuple[str, str | None]]:
    """Return the name of each mark of a pass, and its reason."""
    nodes = list(ast.walk(tree))
    marking = [node for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in MARKS]
    calls = {ast.unparse(node.func): node for node in marking}
    marks: list[tuple[str, str | None]] = []
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in MARKS and ast.unparse(node.value) == "pytest.mark":
            call = calls.get(ast.unparse(node))
            reasons = [] if call is None else [getattr(argument, "value", None) for argument in call.args]
            marks.append((node.attr, reasons[0] if reasons else None))
    return marks


def passes(script: str, *, in_ci: bool) -> list[tuple[str, str]]:
    """Return the virtual environment of each pass and the expression that selects its tests."""
    everyday, _, complete = script.partition("\nfi\n")
    matches = PASS.finditer(complete if in_ci else everyday)
    return [(match["folder"], match["quoted"] or match["mark"]) for match in matches]


def selects(expression: str, marks: set[str]) -> bool:
    """Return whether an expression of ``pytest -m`` selects a test with these marks and no others."""
    names = {name: name in marks for name in MARKS}
    return bool(eval(expression, {"__builtins__": {}}, names))


def sets_of_marks() -> list[set[str]]:
    """Return each set of marks that a test can have."""
    return [set(marks) for number in range(len(MARKS) + 1) for marks in combinations(MARKS, number)]


def test_each_mark_has_a_reason() -> None:
    marks = {(path, mark, reason) for path, tree in trees().items() for mark, reason in marks_of(tree)}
    assert {mark for _, mark, _ in marks} == set(MARKS)
    without = {f"{path}: {mark}" for path, mark, reason in marks if not is_sentence(reason)}
    assert not without


def is_sentence(reason: object) -> bool:
    """Return whether the argument of a mark is a sentence."""
    return isinstance(reason, str) and reason.endswith(".") and len(reason.split()) >= MIN_WORDS


def test_a_mark_without_a_reason_is_noticed() -> None:
    source = "@pytest.mark.slow\ndef test_it(): ...\n\npytestmark = [pytest.mark.lowest('pydantic reads the values.')]"
    assert sorted(marks_of(ast.parse(source))) == [("lowest", "pydantic reads the values."), ("slow", None)]


def test_with_ci_each_test_is_in_one_pass_on_the_first_python() -> None:
    expressions = [expression for folder, expression in passes(SCRIPT, in_ci=True) if folder == ".venv"]
    assert [marks for marks in sets_of_marks() if sum(selects(x, marks) for x in expressions) != 1] == []


def test_with_ci_each_mark_selects_its_tests_on_the_other_environments() -> None:
    others = [run for run in passes(SCRIPT, in_ci=True) if run[0] != ".venv"]
    assert others == [(".venv-lowest", "lowest"), (".venv-3.13", "every_python")]


def test_without_ci_all_tests_but_the_slow_ones_are_in_the_one_pass() -> None:
    [(folder, expression)] = passes(SCRIPT, in_ci=False)
    assert folder == ".venv"
    assert [marks for marks in sets_of_marks() if selects(expression, marks) is ("slow" in marks)] == []


def test_a_test_that_older_pythons_skip_runs_on_every_python() -> None:
    skips = re.compile(r"skipif\(sys\.version_info < |\bneeds_worker\b")
    skipping = {path for path, text in texts().items() if skips.search(text)}
    assert skipping
    marked = {path for path, tree in trees().items() if "every_python" in dict(marks_of(tree))}
    assert not skipping - marked


def test_the_tests_of_the_measured_packages_run_with_coverage() -> None:
    packages = {Path(source).name.removeprefix("_") for source in _SETTINGS["coverage"]["run"]["source"]}
    assert {folder.name for folder in COVERED} == packages


def test_no_folder_of_tests_is_left_out() -> None:
    left_out = set(_SETTINGS["pytest"]["ini_options"]["norecursedirs"])
    folders = {part for path in texts() for part in Path(path).parts[1:-1]}
    assert not folders & left_out
    assert "ignore" not in SCRIPT


@pytest.mark.parametrize("marks", [set(), {"slow"}, {"slow", "branches"}])
def test_an_expression_is_evaluated_as_pytest_does(marks: set[str]) -> None:
    assert selects("not slow", marks) is ("slow" not in marks)
    assert selects("branches", marks) is ("branches" in marks)
