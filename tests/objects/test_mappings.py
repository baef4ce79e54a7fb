from __future__ import annotations

from collections import OrderedDict

from funcmcp._objects.mappings import lower_names, only, remember, without, without_none


def test_members_are_chosen_by_their_keys() -> None:
    members = {"a": 1, "b": 2, "c": 3}
    assert only(members, {"c", "a", "x"}) == {"a": 1, "c": 3}
    assert without(members, "b", "x") == {"a": 1, "c": 3}
    assert list(without(members, "b")) == ["a", "c"]


def test_members_without_a_value_are_left_out() -> None:
    assert without_none({"a": None, "b": 0, "c": ""}) == {"b": 0, "c": ""}


def test_names_are_lower_case() -> None:
    assert lower_names({"Content-Type": 1}) == {"content-type": 1}


def test_the_members_that_were_set_last_are_remembered() -> None:
    members: OrderedDict[str, int] = OrderedDict()
    for number, key in enumerate(("a", "b", "a", "c")):
        remember(members, key, number, 2)
    assert members == {"a": 2, "c": 3}
