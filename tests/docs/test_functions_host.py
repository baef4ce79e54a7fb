"""docs/guides/functions-host.md has the tables of the functions host, and its expressions are those that it reads."""

from __future__ import annotations

import re

import pytest

from funcmcp_host.bindings import PromptTrigger, ResourceTrigger, ToolTrigger
from funcmcp_host.expressions import Template, names_of
from scripts import app_rules
from scripts.generated_part import with_part
from scripts.return_contracts import PAGE, with_table

TEXT = PAGE.read_text(encoding="utf-8")
TRIGGERS: dict[str, ToolTrigger | ResourceTrigger | PromptTrigger] = {
    "tool": ToolTrigger("context", "t", None, [{"propertyname": "city"}], {}, False, None, None),
    "resource": ResourceTrigger("context", "a:{id}", "r", None, None, None, None, {}),
    "prompt": PromptTrigger("context", "p", None, None, [{"name": "topic"}], [], {}),
}
ROWS = re.findall(
    r"^\| (`\{.*?) \| ([a-z, ]+) \| .*\|$",
    TEXT.partition("### Binding expressions")[2].partition("\n## ")[0],
    re.MULTILINE,
)


def test_the_table_of_return_values_is_that_of_the_host() -> None:
    assert with_table(TEXT) == TEXT


def test_the_table_of_rules_is_that_of_the_host() -> None:
    assert app_rules.with_table(TEXT) == TEXT


@pytest.mark.parametrize(("cell", "triggers"), ROWS)
def test_the_expressions_of_the_page_are_read(cell: str, triggers: str) -> None:
    for expression in re.findall("`([^`]+)`", cell):
        for name in TRIGGERS if triggers == "all" else triggers.split(", "):
            assert not Template(expression).check(names_of(TRIGGERS[name]))


def test_the_page_has_expressions_for_each_trigger() -> None:
    assert len(ROWS) > 8


def test_the_table_of_speed_is_that_of_the_results() -> None:
    results = (PAGE.parents[2] / "benchmarks" / "results" / "functions_host.md").read_text(encoding="utf-8")
    table = results[results.index("| called |") :]
    assert with_part(TEXT, "speed", table, writer="python benchmarks/functions_host.py") == TEXT
