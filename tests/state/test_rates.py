"""Rates of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._state.rates import MemoryRates

if TYPE_CHECKING:
    from tests.clock import Clock


async def passed(rates: MemoryRates, caller: str, attempts: int) -> int:
    """Return how many of some attempts pass."""
    return [await rates.take(caller) for _ in range(attempts)].count(0.0)


async def test_a_rested_caller_may_send_a_burst_and_then_so_many_a_second(clock: Clock) -> None:
    rates = MemoryRates(2, 5, clock=clock)
    assert await passed(rates, "a", 10) == 5
    clock.now += 1.0
    assert await passed(rates, "a", 10) == 2
    clock.now += 1000.0
    assert await passed(rates, "a", 10) == 5


async def test_a_refusal_says_when_the_request_would_pass_and_takes_nothing(clock: Clock) -> None:
    rates = MemoryRates(0.5, 1, clock=clock)
    assert await rates.take("a") == 0.0
    for _ in range(3):
        assert await rates.take("a") == pytest.approx(2.0)
    clock.now += 1.5
    assert await rates.take("a") == pytest.approx(0.5)
    clock.now += 0.5
    assert await rates.take("a") == 0.0


async def test_the_wait_of_a_caller_is_known_without_counting(clock: Clock) -> None:
    rates = MemoryRates(0.5, 2, clock=clock)
    for expected in (0.0, 0.0, 2.0):
        assert [rates.wait_of("a") for _ in range(3)] == [pytest.approx(expected)] * 3
        assert await rates.take("a") == pytest.approx(expected)
    clock.now += 2.0
    assert rates.wait_of("a") == 0.0
    assert len(rates) == 1


@pytest.mark.parametrize("per_second", [0.001, 0.3, 7])
async def test_a_rested_caller_may_send_at_any_time_of_the_clock(clock: Clock, per_second: float) -> None:
    """Sums of times are rounded, above all near powers of two."""
    rates = MemoryRates(per_second, 3, clock=clock)
    for step in range(1000):
        clock.now = 2**15 - 1000 + step * 1.1
        assert await passed(rates, f"caller {step}", 3) == 3


async def test_callers_do_not_share_a_bucket(clock: Clock) -> None:
    rates = MemoryRates(1, 2, clock=clock)
    assert await passed(rates, "a", 5) == 2
    assert await passed(rates, "b", 5) == 2


async def test_several_at_once_pass_together_or_not_at_all(clock: Clock) -> None:
    rates = MemoryRates(1, 5, clock=clock)
    assert await rates.take("a", 3) == 0.0
    assert await rates.take("a", 3) == pytest.approx(1.0)
    assert await rates.take("a", 2) == 0.0


async def test_more_than_the_bucket_holds_are_as_many_as_it_holds(clock: Clock) -> None:
    rates = MemoryRates(1, 5, clock=clock)
    assert await rates.take("a", 100) == 0.0
    assert await rates.take("a", 100) == pytest.approx(5.0)
    clock.now += 5.0
    assert await rates.take("a", 100) == 0.0


async def test_so_many_callers_are_remembered_and_those_that_sent_last_stay(clock: Clock) -> None:
    rates = MemoryRates(1, 2, callers=3, clock=clock)
    for caller in ("a", "b", "c"):
        await rates.take(caller, 2)
    await passed(rates, "a", 1)  # refused: that makes it no younger
    clock.now += 1.0
    await rates.take("a")
    for number in range(10_000):
        await rates.take(f"new-{number}")
        await rates.take("a")
    assert len(rates) == 3
    assert await rates.take("a") > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"per_second": 0},
        {"per_second": -1},
        {"per_second": float("inf")},
        {"per_second": float("nan")},
        {"burst": 0},
        {"callers": 0},
    ],
)
def test_a_number_that_is_not_positive_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        MemoryRates(**{"per_second": 1, "burst": 1, **wrong})
