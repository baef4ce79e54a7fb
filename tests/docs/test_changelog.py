"""CHANGELOG.md has its sections once and in order. Merges of several branches repeat headings and entries easily."""

from __future__ import annotations

from pathlib import Path

from scripts.release import problems_of

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_unreleased_changes_are_in_order() -> None:
    assert problems_of(TEXT) == []
