from __future__ import annotations

from typing import Any

import pytest

from funcmcp_cli.client_rules.schema_parts import MAX_DEPTH, MAX_PARTS, parts_of


def test_parts_have_their_places_and_keywords() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"items": {"type": "string"}}, "b": True},
        "anyOf": [{"required": ["a"]}],
        "additionalProperties": False,
        "$defs": {"C": {"patternProperties": {"^x": {}}}},
        "default": {"properties": {"no": "schema"}},
    }
    assert [("/".join(part.path), "/".join(part.keywords)) for part in parts_of(schema)] == [
        ("", ""),
        ("properties/a", "properties"),
        ("properties/a/items", "properties/items"),
        ("properties/b", "properties"),
        ("anyOf/0", "anyOf"),
        ("additionalProperties", "additionalProperties"),
        ("$defs/C", "$defs"),
        ("$defs/C/patternProperties/^x", "$defs/patternProperties"),
    ]


def test_a_part_of_another_type_has_no_keywords() -> None:
    [_, part] = parts_of({"items": 5})
    assert (part.schema, part.get("type"), part.has("type")) == (5, None, False)


@pytest.mark.parametrize("schema", [None, True, 5, "text", b"bytes", [{}], {}, {"properties": [], "anyOf": {}}])
def test_what_is_no_schema_has_no_parts_inside(schema: Any) -> None:
    assert len(parts_of(schema)) == 1


def test_names_of_other_types_become_text() -> None:
    [_, part] = parts_of({"properties": {5: {}}})
    assert part.path == ("properties", "5")


def test_deep_schemas_and_circles_are_examined_up_to_a_depth() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"not": deep}
    circle: dict[str, Any] = {}
    circle["not"] = circle
    assert len(parts_of(deep)) == len(parts_of(circle)) == MAX_DEPTH + 1
    while deep:  # otherwise Python's own recursion frees it
        deep = deep["not"]


@pytest.mark.slow("A large schema is examined.")
def test_large_schemas_and_wide_circles_are_examined_up_to_a_number_of_parts() -> None:
    circle: dict[str, Any] = {}
    circle["anyOf"] = [circle, circle]
    wide: dict[str, Any] = {"properties": {str(number): {} for number in range(MAX_PARTS * 2)}}
    assert len(parts_of(circle)) == len(parts_of(wide)) == MAX_PARTS
