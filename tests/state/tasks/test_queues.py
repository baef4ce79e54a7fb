"""Names of queues."""

from __future__ import annotations

import pytest

from funcmcp._state.tasks.queues import check_queue


@pytest.mark.parametrize("name", ["slow", "a", "9", "High_Priority.v2-b", "x" * 40])
def test_a_name_of_letters_digits_and_some_signs_is_valid(name: str) -> None:
    check_queue(name)


@pytest.mark.parametrize("name", ["", "-a", ".", "a b", "a,b", "a:b", "a/b", "slöw", "x" * 41, "a\n", None, 1])
def test_any_other_name_is_rejected(name: object) -> None:
    with pytest.raises(ValueError, match="The name of a queue must have 1 to 40 letters, digits, "):
        check_queue(name)
