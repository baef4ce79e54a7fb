"""What the log says of something outside of the process that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._state.outage import Outage

if TYPE_CHECKING:
    import pytest


def test_each_outage_is_logged_once_with_its_end(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage()
    outage.end("%s is back", "disk")
    for reason in ("full", "gone"):
        outage.begin("%s fails (%s)", "disk", reason)
    outage.end("%s is back", "disk")
    outage.begin("%s fails (%s)", "disk", "full")
    assert caplog.messages == ["disk fails (full)", "disk is back", "disk fails (full)"]
