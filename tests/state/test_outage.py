"""What the log says of something outside of the process that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._state import outage as module
from funcmcp._state.outage import Outage
from tests.clock import Clock

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


def test_a_store_that_fails_now_and_then_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(module, "monotonic", clock)
    outage = Outage()
    for _ in range(10):
        outage.begin("full")
        outage.end("back")
        clock.now += 1
    assert caplog.messages == ["full", "back"] * 3
    clock.now += 60
    outage.begin("full")
    outage.begin("full")
    assert caplog.messages == [*["full", "back"] * 3, "full"]


def test_only_a_write_ends_an_outage_of_writes(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage()
    for _ in range(3):
        outage.begin("full", is_write=True)
        outage.end("back")
    assert caplog.messages == ["full"]
    outage.end("back", is_write=True)
    outage.begin("gone")
    outage.end("back")
    assert caplog.messages == ["full", "back", "gone", "back"]
