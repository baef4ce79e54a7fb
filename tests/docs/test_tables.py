"""Cells of tables are short: longer texts are easier to read as paragraphs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAX_CELL = 300
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def cells(text: str) -> list[str]:
    """Return the cells of all tables, as a reader sees them."""
    rows = re.findall(r"^\|(.*)\|$", FENCE.sub("", text), re.MULTILINE)
    return [LINK.sub(r"\1", cell).replace("`", "").strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_cell_is_longer_than_a_paragraph(document: Path) -> None:
    long = [cell for cell in cells(document.read_text(encoding="utf-8")) if len(cell) > MAX_CELL]
    assert [f"{len(cell)} characters: {cell[:60]}" for cell in long] == []
