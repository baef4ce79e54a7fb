"""The time that one request to an upstream may take."""

from __future__ import annotations

import asyncio

import pytest

from funcmcp._upstreams.time_limits import TimeLimit
from funcmcp.upstreams import UpstreamTimeouts

LONG = 1000.0


def remaining(limit: TimeLimit) -> float:
    end = limit._scope.when()
    return float("inf") if end is None else end - limit._began


async def test_the_shortest_option_ends_a_request() -> None:
    async with (limit := TimeLimit(UpstreamTimeouts(first_answer=10, request=20, total=30))):
        assert remaining(limit) == pytest.approx(10)
        limit.received(is_progress=False)
        assert remaining(limit) == pytest.approx(20)
    async with (limit := TimeLimit(UpstreamTimeouts(request=None, total=None))):
        assert remaining(limit) == float("inf")


@pytest.mark.parametrize("reset", [True, False])
async def test_progress_begins_the_seconds_of_a_request_again(reset: bool) -> None:
    async with (limit := TimeLimit(UpstreamTimeouts(request=LONG, total=None, reset_on_progress=reset))):
        limit._request_began -= 500
        limit._reschedule()
        assert remaining(limit) == pytest.approx(500)
        limit.received(is_progress=False)
        assert remaining(limit) == pytest.approx(500)
        limit.received(is_progress=True)
        assert remaining(limit) == pytest.approx(LONG if reset else 500, abs=100)


async def test_the_total_holds_whatever_arrives() -> None:
    async with (limit := TimeLimit(UpstreamTimeouts(request=LONG, total=600))):
        limit.received(is_progress=True)
        assert remaining(limit) == pytest.approx(600)


async def test_the_time_stops_while_a_client_answers() -> None:
    async with (limit := TimeLimit(UpstreamTimeouts(request=LONG, total=600))):
        with limit.answering():
            assert remaining(limit) == float("inf")
            with limit.answering():
                pass
            assert remaining(limit) == float("inf")
        assert remaining(limit) == pytest.approx(600)


async def test_a_request_that_has_ended_is_not_extended() -> None:
    async with (limit := TimeLimit(UpstreamTimeouts())):
        pass
    limit.received(is_progress=True)
    with limit.answering():
        pass


async def test_the_reason_names_the_option() -> None:
    limit = TimeLimit(UpstreamTimeouts(first_answer=0.001))
    with pytest.raises(TimeoutError):
        async with limit:
            await asyncio.Event().wait()
    assert limit.is_over
    assert limit.reason == "sent nothing within 0.001 seconds (UpstreamTimeouts.first_answer)"
