"""Durations in messages."""

from __future__ import annotations

import math

import pytest

from funcmcp._protocol.durations import seconds_text, seconds_until

pytestmark = pytest.mark.every_python("Python's own SQLite, dataclasses, JSON or character tables decide it.")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "1 second"), (1.0, "1 second"), (0.5, "0.5 seconds"), (0, "0 seconds"), (60.0, "60 seconds")],
)
def test_one_second_is_singular(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(("moment", "seconds"), [(10.0, 1), (9.0, 1), (10.5, 1), (11.0, 2), (70.2, 61), (math.inf, 1)])
def test_after_the_seconds_a_moment_is_over(moment: float, seconds: int) -> None:
    assert seconds_until(moment, 10.0) == seconds
