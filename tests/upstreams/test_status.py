"""The state of an upstream: when it is tried again, what the log says, and the lines of its stderr."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from funcmcp._upstreams import status as module
from funcmcp._upstreams.status import MAX_FAILURES, Health, StderrLog
from funcmcp.upstreams import UpstreamError, UpstreamLimits, UpstreamTimeouts

if TYPE_CHECKING:
    from tests.clock import Clock


@pytest.fixture
def health(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Health:
    monkeypatch.setattr(module, "random", SimpleNamespace(uniform=lambda _low, high: high))
    return Health("docs", optional=False, clock=clock)


async def test_the_first_attempt_is_made_at_once_and_later_ones_less_and_less_often(
    health: Health, clock: Clock
) -> None:
    health.failed("gone", clock.now)
    await health.admit()
    waits = []
    for _ in range(MAX_FAILURES - 1):
        clock.now += 1000
        health.failed("gone", clock.now)
        waits.append(health._next_at - clock.now)
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    assert health.status.state == "failed"
    with pytest.raises(UpstreamError, match=r"'docs' is away, so nothing was sent to it. Try again in 31 s"):
        await health.admit()
    clock.now += 30
    await health.admit()


async def test_failures_of_one_outage_count_once(health: Health, clock: Clock) -> None:
    began = clock.now
    clock.now += 1
    for _ in range(100):
        health.failed("gone", began)
    assert health.status.state == "reconnecting"
    assert health.status.failures == 100
    await health.admit()


def test_an_answer_ends_an_outage_and_a_connection_alone_does_not_forget_it(health: Health, clock: Clock) -> None:
    states = [health.status.state]
    health.reached()
    states.append(health.status.state)
    assert states == ["unused", "connected"]
    for _ in range(3):
        clock.now += 1
        health.failed("gone", clock.now)
    assert health.status.away_since is not None
    health.reached()
    status = health.status
    assert status.state == "connected"
    assert status.away_since is None
    assert status.reconnects == 1
    clock.now += 1
    health.failed("gone", clock.now)
    assert health._next_at - clock.now == 2.0  # the fourth failure in a row
    health.answered()
    clock.now += 1
    health.failed("gone", clock.now)
    assert health._next_at == clock.now


def test_the_log_has_one_line_for_each_change(health: Health, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    health.reached()
    for _ in range(3):
        clock.now += 1
        health.failed("gone\x1b[31m", clock.now)
    health.answered()
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["The server 'docs' is away: gone\\x1b[31m", "The server 'docs' is back."]
    caplog.clear()
    for _ in range(MAX_FAILURES):
        clock.now += 1000
        health.failed("gone", clock.now)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    assert "tried again every 30 seconds only" in caplog.records[1].getMessage()


def test_a_pin_mismatch_and_an_old_list_are_shown(health: Health) -> None:
    health.reached()
    health.pin_mismatch(["tool search"])
    assert (health.status.state, health.status.changed) == ("pin mismatch", ("tool search",))
    health.pin_mismatch([])
    health.listed("timeout")
    assert (health.status.state, health.status.list_error) == ("connected", "timeout")
    health.listed(None)
    assert health.status.list_error is None


def test_lines_of_stderr_are_counted_by_the_minute(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "funcmcp")
    log = StderrLog("docs", clock)
    for number in range(300):
        log.write(f"line {number}")
    assert len(caplog.records) == 201
    clock.now += 60
    caplog.clear()
    log.write("again")
    assert [record.getMessage() for record in caplog.records] == ["docs: 100 more lines on stderr", "docs: again"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"connect": 0}, ValueError),
        ({"request": "1"}, TypeError),
        ({"total": True}, TypeError),
        ({"first_answer": float("inf")}, ValueError),
    ],
)
def test_wrong_timeouts_are_errors_that_name_them(options: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error, match=f"UpstreamTimeouts.{next(iter(options))}"):
        UpstreamTimeouts(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error"),
    [({"sessions": 0}, ValueError), ({"processes": 1.5}, TypeError), ({"idle_seconds": -1}, ValueError)],
)
def test_wrong_limits_are_errors_that_name_them(options: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error, match=f"UpstreamLimits.{next(iter(options))}"):
        UpstreamLimits(**options)  # type: ignore[arg-type]
