"""The pictures of the command line in docs/images are those that `make pictures` draws."""

from __future__ import annotations

import sys

import pytest

from scripts.pictures import FOLDER, draw


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="one of the commands prints the version of Python")
def test_the_pictures_are_up_to_date() -> None:
    pictures = draw()
    assert pictures == {name: (FOLDER / name).read_text(encoding="utf-8") for name in pictures}, "Run: make pictures"
    assert "Lentil soup" in pictures["call.svg"].replace("&#160;", " ")
    assert "must&#160;be&#160;at&#160;most" in pictures["call.svg"]
