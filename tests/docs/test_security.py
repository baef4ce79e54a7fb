"""Each row of the table of threats in docs/guides/security.md is complete, and the tests that it names exist."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import rules

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "guides" / "security.md").read_text(encoding="utf-8")
COLUMNS = ["#", "threat", "rule", "what funcmcp does", "shown by"]
THREATS = 52
_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")


def rows() -> list[list[str]]:
    """Return the cells of all rows."""
    lines = re.findall(r"^\| \d+ \|.*\|$", DOCUMENT, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def numbers() -> list[int]:
    return [int(row[0]) for row in rows()]


@functools.cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests in a file."""
    return frozenset(_tests(ast.parse((ROOT / path).read_text(encoding="utf-8")).body, ""))


def _tests(body: list[ast.stmt], before: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests(node.body, f"{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield before + node.name


def test_each_threat_has_one_row() -> None:
    assert sorted(numbers()) == list(range(1, THREATS + 1))


def test_every_table_of_threats_has_the_same_columns() -> None:
    heads = re.findall(r"^\| # \|.*\|$", DOCUMENT, re.MULTILINE)
    assert heads
    assert all([cell.strip() for cell in head.strip("|").split("|")] == COLUMNS for head in heads)


@pytest.mark.parametrize("row", rows(), ids=[f"row {number}" for number in numbers()])
def test_a_row_names_tests_that_exist(row: list[str]) -> None:
    assert len(row) == len(COLUMNS)
    assert all(row)
    shown = row[4].split("<br>")
    for test in shown:
        match = _TEST.fullmatch(test)
        assert match is not None, test
        assert match[2] in names_in(match[1]), test
    assert len(set(shown)) == len(shown)


def test_rules_about_threats_have_rows() -> None:
    named = {int(name.removeprefix("THREAT_")) for name in vars(rules) if name.startswith("THREAT_")}
    assert named
    assert named <= set(numbers())


def test_the_page_has_its_sections() -> None:
    for heading in (
        "Reporting a vulnerability",
        "Guarantees",
        "Limits of the guarantees",
        "Duties of the operator",
        "Threats",
    ):
        assert f"\n## {heading}\n" in DOCUMENT


def test_the_table_of_attacks_is_the_measured_one() -> None:
    measured = (ROOT / "benchmarks" / "results" / "attacks.md").read_text(encoding="utf-8").strip()
    assert measured in DOCUMENT
