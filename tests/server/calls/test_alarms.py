"""Alarms of a request: many functions, and one timer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from funcmcp._server.calls.alarms import FIRST_SECONDS, Alarms

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer:
    def __init__(self, when: float, function: Callable[[], object]) -> None:
        self.when = when
        self.function = function
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Clock:
    """The clock and the timers of an event loop. Time passes when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Timer] = []
        self.calls: list[str] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, function: Callable[[], object]) -> Timer:
        self.timers.append(Timer(when, function))
        return self.timers[-1]

    @property
    def running(self) -> list[Timer]:
        return [timer for timer in self.timers if not timer.is_cancelled]

    def expire(self, *, early: float = 0.0) -> list[str]:
        """Let the time of the only timer pass; return what was called."""
        [timer] = self.running
        self.timers.remove(timer)
        self.now = timer.when - early
        self.calls = []
        timer.function()
        return self.calls

    def call(self, name: str) -> Callable[[], object]:
        return lambda: self.calls.append(name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: clock)
    return clock


def test_each_function_is_called_at_its_time_and_there_is_one_timer(clock: Clock) -> None:
    request = Alarms()
    for name, seconds in (("limit", 600), ("comment", 15), ("watch", FIRST_SECONDS)):
        request.set(clock.call(name), seconds)
    assert len(clock.timers) == 1
    assert [clock.expire(), clock.expire(), clock.expire()] == [["watch"], ["comment"], ["limit"]]
    assert (clock.now, clock.running) == (700, [])


def test_a_request_that_ends_soon_leaves_no_timer(clock: Clock) -> None:
    request, limit, comment = Alarms(), clock.call("limit"), clock.call("comment")
    request.set(limit, 600)
    request.set(comment, 15)
    request.cancel(limit)
    assert len(clock.running) == 1
    request.cancel(comment)
    request.cancel(comment)
    assert clock.running == []
    request.set(limit, 600)  # as middleware does that runs the handler again
    assert [clock.expire(), clock.expire()] == [[], ["limit"]]


def test_a_time_can_be_moved_and_be_earlier_than_the_timer(clock: Clock) -> None:
    request, limit = Alarms(), clock.call("limit")
    request.set(limit, 600)
    request.set_at(limit, clock.now + 0.01)
    request.set(clock.call("other"), 0.005)
    assert clock.expire() == ["other"]
    request.set_at(limit, clock.now + 7)
    assert [clock.expire(), clock.expire()] == [[], ["limit"]]
    assert clock.now == pytest.approx(107.005)


def test_a_timer_that_is_a_little_early_does_not_start_again_for_the_rest(clock: Clock) -> None:
    request = Alarms()
    request.set(clock.call("limit"), 0.05)
    assert clock.expire(early=0.0005) == ["limit"]
    assert clock.running == []


def test_a_function_may_set_itself_again_and_cancel_another_one_that_is_due(clock: Clock) -> None:
    request, second = Alarms(), clock.call("second")

    def first() -> None:
        clock.calls.append("first")
        request.cancel(second)
        request.set(first, 15)

    request.set(first, 0.05)
    request.set(second, 0.05)
    assert [clock.expire(), clock.expire()] == [["first"], ["first"]]
    assert len(clock.running) == 1


async def test_the_timer_is_one_of_the_event_loop() -> None:
    called = asyncio.Event()
    Alarms().set(called.set, 0.001)
    await called.wait()
