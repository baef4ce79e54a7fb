"""Limits, and what is counted against them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from funcmcp.server.limits import LimitReachedError, Limits, Load, Streams


@pytest.mark.parametrize("name", [option.name for option in fields(Limits)])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_a_limit_is_a_number_above_0(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_nesting_can_be_less_than_64_levels_but_not_more() -> None:
    assert Limits(nesting=10).nesting == 10
    with pytest.raises(ValueError, match="64"):
        Limits(nesting=65)


@pytest.mark.parametrize(("seconds", "said"), [(0.0, 1), (0.2, 1), (1.0, 1), (1.01, 2), (59.5, 60)])
def test_what_is_said_of_the_time_to_wait_is_whole_seconds_and_enough(seconds: float, said: int) -> None:
    error = LimitReachedError("Wait.", seconds)
    assert error.payload() == {"code": -32603, "message": "Wait.", "data": {"retryAfter": said}}


def test_streams_are_counted_together_and_for_each_principal() -> None:
    streams = Streams(Limits(streams=3, streams_per_principal=2))
    with streams.one_more("a"), streams.one_more("a"):
        with pytest.raises(LimitReachedError) as own:
            streams.check("a")
        assert own.value.own
        streams.check("b")
        streams.check(None)
        with streams.one_more(None):
            for owner in ("b", None):
                with pytest.raises(LimitReachedError) as all_together:
                    streams.check(owner)
                assert not all_together.value.own
        streams.check("b")
    streams.check("a")


def test_nobody_in_particular_has_no_share_of_its_own() -> None:
    streams = Streams(Limits(streams=5, streams_per_principal=1))
    with streams.one_more(None), streams.one_more(None):
        streams.check(None)


def test_a_run_that_only_waits_is_not_counted_while_it_waits() -> None:
    load = Load(Limits(requests=1))
    load.running = 1
    with load.aside():
        assert load.running == 0
    assert load.running == 1
