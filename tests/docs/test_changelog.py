"""CHANGELOG.md has its sections once and in order. Merges of several branches repeat headings and entries easily."""

from __future__ import annotations

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
SECTIONS = ["Upgrade", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def unreleased() -> str:
    """Return the section of unreleased changes."""
    return TEXT.partition("## [Unreleased]\n")[2].partition("\n## ")[0]


def entries() -> list[str]:
    """Return the entries of all sections, each on one line."""
    return [" ".join(entry.split()) for entry in re.split(r"^- |^### \w+$", unreleased(), flags=re.MULTILINE)[1:]]


def test_each_section_occurs_once_and_in_order() -> None:
    headings = re.findall(r"^### (.+)$", unreleased(), re.MULTILINE)
    assert headings == [section for section in SECTIONS if section in headings]


def test_each_entry_occurs_once_and_ends_with_a_full_stop() -> None:
    texts = [entry for entry in entries() if entry]
    assert len(texts) > 1
    assert sorted(set(texts)) == sorted(texts)
    assert [text for text in texts if not text.endswith(".")] == []


def test_two_entries_do_not_share_a_long_line() -> None:
    lines = [line for line in unreleased().splitlines() if len(line) > 60]
    assert sorted(set(lines)) == sorted(lines)
