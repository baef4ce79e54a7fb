"""Durations in messages."""

from __future__ import annotations

import pytest

from funcmcp.protocol.durations import seconds_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "1 second"), (1.0, "1 second"), (0.5, "0.5 seconds"), (0, "0 seconds"), (60.0, "60 seconds")],
)
def test_one_second_is_singular(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
