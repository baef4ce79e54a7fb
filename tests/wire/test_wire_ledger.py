"""The ledger: which tests show which rule. A rule that no test names fails here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
_NAMED = re.compile(r"(?i)\b(?:(trap|row) (\d+)|((?:[HDJVTRPCGKASMXU]|PR|LG|TR)\d+|apps))\b")

RULES = [
    *[f"H{number}" for number in range(1, 19)],
    *[f"D{number}" for number in range(1, 12)],
    *[f"J{number}" for number in range(1, 8)],
    *[f"V{number}" for number in range(1, 12)],
    *[f"R{number}" for number in range(1, 5)],
    *[f"M{number}" for number in range(1, 5)],
    *[f"U{number}" for number in range(1, 8)],
    *["T2", "P1", "C1", "G1", "K1", "A1", "S1", "S2", "X1", "PR1", "LG1", "TR1", "APPS"],
    *[f"trap {number}" for number in (2, *range(4, 9), *range(14, 24))],
    *[
        f"row {number}"
        for number in (1, 2, 3, 6, 7, 8, 10, 17, 18, *range(20, 26), 28, 29, 32, 33, 34, 35, 36, 37, 38, 39, 40, 44, 45)
    ],
]
"""Rows of the requirements' sections 1.1 to 1.9, its traps, and rows of the table of threats that concern the wire."""


def ledger() -> dict[str, list[str]]:
    """Return the names of the tests whose docstrings name a rule, by rule."""
    found: dict[str, list[str]] = {rule: [] for rule in RULES}
    for path in sorted(FOLDER.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for kind, number, row in _NAMED.findall(ast.get_docstring(node) or ""):
                    found.setdefault(row.upper() or f"{kind.lower()} {number}", []).append(f"{path.stem}::{node.name}")
    return found


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_test_that_names_it(rule: str) -> None:
    """Ids stand in the docstrings: H, D, J, V rows; `trap` of the requirements; `row` of the threat table."""
    assert ledger()[rule], f"no test in {FOLDER.name} names {rule}"
