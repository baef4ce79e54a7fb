"""Limits, and what is counted against them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from funcmcp._server.limits import LimitReachedError, Limits
from funcmcp._server.load import Load


@pytest.mark.parametrize("name", [option.name for option in fields(Limits)])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_a_limit_is_a_number_above_0(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_nesting_can_be_less_than_64_levels_but_not_more() -> None:
    assert Limits(message_depth=10).message_depth == 10
    with pytest.raises(ValueError, match="64"):
        Limits(message_depth=65)


@pytest.mark.parametrize(("seconds", "said"), [(0.0, 1), (0.2, 1), (1.0, 1), (1.01, 2), (59.5, 60)])
def test_what_is_said_of_the_time_to_wait_is_whole_seconds_and_enough(seconds: float, said: int) -> None:
    error = LimitReachedError("Wait.", seconds)
    assert error.payload() == {"code": -32603, "message": "Wait.", "data": {"retryAfter": said}}


@pytest.mark.parametrize("name", ["requests", "body_bytes", "streams", "subscription_bytes"])
def test_a_share_is_at_most_half_of_its_total_unless_it_is_set(name: str) -> None:
    assert Limits(**{name: 20}).share_of(name) == 10
    assert Limits(**{name: 1}).share_of(name) == 1
    assert Limits(**{name: 20, f"{name}_per_principal": 15}).share_of(name) == 15
    assert Limits().share_of(name) <= getattr(Limits(), name) // 2


def test_one_address_leaves_half_of_few_places_to_others() -> None:
    requests = Load(Limits(requests=20)).requests
    for _ in range(10):
        requests.take("address:192.0.2.1")
    with pytest.raises(LimitReachedError) as refused:
        requests.take("address:192.0.2.1")
    assert refused.value.is_caller_limit
    requests.take("address:192.0.2.2")


@pytest.mark.parametrize("value", ["10", None, True, 1.5])
def test_a_count_is_an_integer(value: object) -> None:
    with pytest.raises(TypeError, match=r"^Limits\.requests must be an integer above 0; got "):
        Limits(requests=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["10", None, True])
def test_a_time_is_a_number(value: object) -> None:
    assert Limits(message_seconds=0.5).message_seconds == 0.5
    with pytest.raises(TypeError, match=r"^Limits\.message_seconds must be a number above 0; got "):
        Limits(message_seconds=value)  # type: ignore[arg-type]


def test_a_budget_of_results_has_room_for_the_note_of_what_is_missing() -> None:
    assert Limits(result_characters=2000).result_characters == 2000
    with pytest.raises(ValueError, match="result_characters must be 2,000 or more, or None; got 1999"):
        Limits(result_characters=1999)
