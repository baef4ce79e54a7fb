"""The guide's table of unions against calls."""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.authoring.tool_calls import call

GUIDE = Path(__file__).parents[2] / "docs/guides/tools.md"
NAMES = {"Any": Any, "Decimal": Decimal, "UUID": UUID, "date": date, "datetime": datetime}
ROWS = [
    [cell.strip(" `").replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
    for row in GUIDE.read_text().partition("### Unions")[2].partition("### ")[0].splitlines()
    if row.startswith("| `")
]


def test_the_table_has_rows() -> None:
    assert len(ROWS) == 8


@pytest.mark.parametrize(("annotation", "value", "result"), ROWS)
async def test_a_union_gets_the_value_in_the_table(annotation: str, value: str, result: str) -> None:
    received: list[Any] = []

    def tool(it: Any) -> None:
        received.append(it)

    tool.__annotations__ = {"it": eval(annotation, NAMES)}
    await call(tool, {"it": json.loads(value)})
    expected = eval(result, NAMES)
    assert (type(received[0]), received[0]) == (type(expected), expected)
