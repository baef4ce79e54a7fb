"""Each threat in docs/guides/security.md has its rule, and the tests that it names exist."""

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
THREATS = 70
_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
_THREAT = re.compile(r"^#### (\d+)\. (.+)\n((?:(?!#).*\n)*)", re.MULTILINE)


def threats() -> dict[int, str]:
    """Return the text of each threat by its number."""
    return {int(number): text for number, _, text in _THREAT.findall(DOCUMENT)}


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


def test_each_threat_occurs_once() -> None:
    numbers = [int(number) for number, _, _ in _THREAT.findall(DOCUMENT)]
    assert sorted(numbers) == list(range(1, THREATS + 1))


@pytest.mark.parametrize("number", threats(), ids="threat {}".format)
def test_a_threat_has_a_rule_and_names_tests_that_exist(number: int) -> None:
    rule, _, tests = threats()[number].partition("\nShown by:\n")
    assert re.fullmatch(r"\n\*\*Rule\.\*\* .+\n\n\S.+", rule, re.DOTALL)
    shown = re.findall(r"^- (.+)$", tests, re.MULTILINE)
    assert shown
    for test in shown:
        match = _TEST.fullmatch(test)
        assert match is not None, test
        assert match[2] in names_in(match[1]), test
    assert len(set(shown)) == len(shown)


def test_rules_about_threats_are_on_the_page() -> None:
    named = {int(name.removeprefix("THREAT_")) for name in vars(rules) if name.startswith("THREAT_")}
    assert named
    assert named <= set(threats())


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
