"""Severities of log messages."""

from __future__ import annotations

import pytest

from funcmcp._protocol.levels import LEVELS
from tests import schemas


def test_levels_rise_from_debug_to_emergency() -> None:
    order = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
    assert sorted(LEVELS, key=LEVELS.__getitem__) == order


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_every_level_is_one_of_the_revision(revision: str) -> None:
    for level in LEVELS:
        schemas.validate_as(level, revision, "LoggingLevel")
