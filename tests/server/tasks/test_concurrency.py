"""The share that a caller has of the places of a process."""

from __future__ import annotations

import pytest

from funcmcp._server.tasks.concurrency import Places

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


@pytest.mark.parametrize(("count", "share"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3), (10, 8), (100, 75)])
def test_a_quarter_of_the_places_is_kept_from_one_caller(count: int, share: int) -> None:
    assert Places(count).share == share


def test_places_are_open_as_long_as_any_caller_may_have_them() -> None:
    places = Places(10)
    assert (places.free, places.open) == (10, 8)
    for _ in range(8):
        places.take("a", "add")
    assert (places.free, places.open) == (2, 0)
    assert (places.has_room("a", "add"), places.has_room("b", "add"), places.has_room(None, "add")) == (
        False,
        True,
        True,
    )
    places.take("b", "add")
    places.take(None, "add")
    assert (places.free, places.has_room("b", "add"), places.has_room(None, "add")) == (0, False, False)
    places.give_back("a", "add")
    places.give_back(None, "add")
    assert (places.free, places.open, places.has_room("a", "add")) == (2, 1, True)
    places.give_back("b", "add")
    assert (places.free, places.open) == (3, 1)


def test_a_tool_with_a_limit_has_no_more_places_and_others_have_the_rest() -> None:
    places = Places(10, lambda: {"render": 2, "add": 20})
    assert places.of_tools() == {"render": 2, "add": 20}
    for _ in range(2):
        places.take(None, "render")
    assert places.of_tools() == {"render": 0, "add": 20}
    assert (places.is_full("render"), places.is_full("add"), places.is_full("other")) == (True, False, False)
    assert (places.has_room("a", "render"), places.has_room("a", "add")) == (False, True)
    places.take(None, "render")  # claimed, although it has no place
    assert places.of_tools() == {"render": 0, "add": 20}
    for _ in range(2):
        places.give_back(None, "render")
    assert (places.free, places.of_tools()) == (9, {"render": 1, "add": 20})
