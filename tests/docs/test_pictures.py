"""The pictures of the command line and the diagrams in docs/images are those that `make pictures` draws."""

from __future__ import annotations

import sys

import pytest

from scripts import diagrams
from scripts.pictures import FOLDER, draw


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="one of the commands prints the version of Python")
def test_the_pictures_are_up_to_date() -> None:
    pictures = draw()
    assert pictures == {name: (FOLDER / name).read_text(encoding="utf-8") for name in pictures}, "Run: make pictures"
    assert "Lentil soup" in pictures["call.svg"].replace("&#160;", " ")
    assert "must&#160;be&#160;at&#160;most" in pictures["call.svg"]


@pytest.mark.parametrize("name", diagrams.DIAGRAMS)
def test_a_diagram_is_up_to_date_and_on_a_page(name: str) -> None:
    drawn = diagrams.draw(diagrams.DIAGRAMS[name])
    assert (FOLDER / name).read_text(encoding="utf-8") == drawn, "Run: make pictures"
    pages = [path.read_text(encoding="utf-8") for path in FOLDER.parent.rglob("*.md")]
    assert any(f"/{name})" in page for page in pages)
