"""Cells of tables are short: longer texts are easier to read as paragraphs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAX_CELL = 300
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def cells(text: str) -> list[str]:
    """Return the cells of all tables, as a reader sees them."""
    rows = re.findall(r"^\|(.*)\|$", FENCE.sub("", text), re.MULTILINE)
    return [LINK.sub(r"\1", cell).replace("`", "").strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]


def test_no_cell_is_longer_than_a_paragraph() -> None:
    read = {document: cells(document.read_text(encoding="utf-8")) for document in DOCUMENTS}
    long = [(document, cell) for document in read for cell in read[document] if len(cell) > MAX_CELL]
    assert [f"{document}: {len(cell)} characters: {cell[:60]}" for document, cell in long] == []
