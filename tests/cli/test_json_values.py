"""Values that a server sends in place of objects and arrays."""

from __future__ import annotations

import pytest

from funcmcp_cli.json_values import as_list, as_object, first_line


@pytest.mark.parametrize("value", [None, 1, "text", True, [{}]])
def test_another_value_than_an_object_is_an_empty_object(value: object) -> None:
    assert as_object(value) == {}
    assert as_object({"a": 1}) == {"a": 1}


@pytest.mark.parametrize("value", [None, 1, "text", True, {"a": []}])
def test_another_value_than_an_array_is_an_empty_array(value: object) -> None:
    assert as_list(value) == []
    assert as_list([1]) == [1]


@pytest.mark.parametrize(
    ("feature", "line"),
    [({"description": "One.\nTwo."}, "One."), ({}, ""), ({"description": ""}, ""), ({"description": 1}, "1")],
)
def test_a_description_has_a_first_line(feature: dict[str, object], line: str) -> None:
    assert first_line(feature) == line
