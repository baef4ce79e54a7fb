"""The share that a caller has of the places of a process."""

from __future__ import annotations

import pytest

from funcmcp._server.tasks.places import Places


@pytest.mark.parametrize(("count", "share"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3), (10, 8), (100, 75)])
def test_a_quarter_of_the_places_is_kept_from_one_caller(count: int, share: int) -> None:
    assert Places(count).share == share


def test_places_are_open_as_long_as_any_caller_may_have_them() -> None:
    places = Places(10)
    assert (places.free, places.open) == (10, 8)
    for _ in range(8):
        places.take("a")
    assert (places.free, places.open) == (2, 0)
    assert (places.has_room("a"), places.has_room("b"), places.has_room(None)) == (False, True, True)
    places.take("b")
    places.take(None)
    assert (places.free, places.has_room("b"), places.has_room(None)) == (0, False, False)
    places.give_back("a")
    places.give_back(None)
    assert (places.free, places.open, places.has_room("a")) == (2, 1, True)
    places.give_back("b")
    assert (places.free, places.open) == (3, 1)
