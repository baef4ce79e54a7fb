"""Write the table of rules for apps in docs/guides/functions-host.md from the rules of the functions host.

Run it with ``make reference``. `tests/docs/test_functions_host.py` compares the page with what this writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp_host.app_rules.table import RULES
from scripts.generated_part import with_part

if TYPE_CHECKING:
    from funcmcp_host.app_rules.rule import Rule

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "functions-host.md"


def table() -> str:
    """Return the table of rules."""
    head = "| rule, and its source | level | found | on Azure | write |\n|---|---|---|---|---|"
    return "\n".join([head, *map(_row, RULES)])


def _row(rule: Rule) -> str:
    return f"| [{rule.name}]({rule.source}) | {rule.level} | {rule.condition} | {rule.effect} | {rule.advice} |"


def with_table(page: str) -> str:
    """Return a page with the table between its markers."""
    return with_part(page, "rules", table())


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
