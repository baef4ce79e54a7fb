"""A text with a lone surrogate can't be written as UTF-8."""

from __future__ import annotations

import os

import pytest

from funcmcp._text.unicode import is_unicode


@pytest.mark.parametrize("text", ["", "a", "ü", "\U0001f375", "\ufffd"])
def test_texts_that_utf_8_has(text: str) -> None:
    assert is_unicode(text)


@pytest.mark.parametrize("text", ["\ud83c", "a\udcff", os.fsdecode(b"\xff")])
def test_texts_with_lone_surrogates(text: str) -> None:
    assert not is_unicode(text)
