"""Limits for the lines of the log that clients and other servers can cause."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from funcmcp._state import line_limit
from funcmcp._state.line_limit import LineLimit, LineOfEach
from tests.clock import Clock

if TYPE_CHECKING:
    import pytest


def test_one_line_is_written_in_a_minute_and_the_next_one_counts_those_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    lines = LineLimit(clock=clock)
    for number in range(4):
        lines.write("Number %d is refused.", number)
    clock.now += 60
    lines.write("Number %d is refused.", 4)
    clock.now += 60
    lines.write("Number %d is refused.", 5)
    assert caplog.messages == [
        "Number 0 is refused.",
        "Number 4 is refused. There were 3 more since the last such line.",
        "Number 5 is refused.",
    ]


def test_a_line_has_its_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    LineLimit(logging.INFO).write("A client is slow.")
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_lines_that_are_left_out_are_written_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    lines = LineLimit(logging.ERROR)
    for number in range(3):
        lines.write("Number %d is refused.", number)
    assert [record.levelname for record in caplog.records] == ["ERROR", "DEBUG", "DEBUG"]
    assert caplog.messages[-1] == "Number 2 is refused."


def test_a_traceback_follows_a_line_and_its_repetition_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "funcmcp")
    limit = LineLimit()
    for _ in range(2):
        limit.write("it failed", error=OSError("away"))
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.DEBUG]
    assert all(record.exc_info is not None for record in caplog.records)
    assert caplog.text.count("OSError: away") == 2


def test_each_subject_has_one_line_and_the_last_ones_have_one_in_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_limit, "MAX_SUBJECTS", 3)
    clock = Clock()
    lines = LineOfEach(logging.ERROR, clock)
    lines.count_as_written("elsewhere")
    for name in ("a", "b", "a", "elsewhere", "c", "d", "e", "b"):
        lines.write(name, "%s is left out.", name)
    clock.now += 60
    lines.write("f", "%s is left out.", "f")
    assert caplog.messages == [
        "a is left out.",
        "b is left out.",
        "c is left out.",
        "f is left out. There were 2 more since the last such line.",
    ]
    assert {record.levelname for record in caplog.records} == {"ERROR"}
