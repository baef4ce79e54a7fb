"""The table of where core schemas contain schemas, against pydantic's own description of them."""

from __future__ import annotations

from typing import Any, get_args, get_origin

import pytest
from pydantic_core import core_schema
from typing_extensions import get_type_hints, is_typeddict

from funcmcp._authoring.schemas.pydantic_schema_tree import (
    PARAMETER,
    SUBSCHEMAS,
    Layout,
    children,
    nodes_of,
    with_children,
)
from funcmcp._objects.mappings import only

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")

SCHEMAS: Any = get_args(core_schema.CoreSchema)
VALUES = {"config", "function", "serialization"}
"""Keys with typed dicts that are no schemas of arguments: settings, a Python function and how results are written."""


def typed_dicts(annotation: Any) -> set[Any]:
    """Return the typed dicts in an annotation."""
    if is_typeddict(annotation):
        return {annotation}
    return {typed_dict for part in get_args(annotation) for typed_dict in typed_dicts(part)}


def holds(annotation: Any) -> Layout:
    """Return what a key with an annotation holds, one that contains typed dicts."""
    origin = get_origin(annotation)
    return {list: Layout.LIST, dict: Layout.DICT}.get(origin, Layout.SINGLE)


def described(schema: Any) -> dict[str, Layout]:
    """Return the keys of a typed dict that hold schemas, by its annotations."""
    hints = get_type_hints(schema)
    return {key: holds(hint) for key, hint in hints.items() if typed_dicts(hint) and key not in VALUES}


def kinds(schema: Any) -> tuple[str, ...]:
    """Return the values that ``type`` may have in a typed dict."""
    return get_args(get_type_hints(schema).get("type"))


def all_described() -> dict[Any, dict[str, Layout]]:
    """Return every typed dict of a schema, a field or a parameter, with its keys that hold schemas."""
    children: dict[Any, dict[str, Layout]] = {}
    waiting = list(SCHEMAS)
    while waiting:
        schema = waiting.pop()
        if schema in children:
            continue
        children[schema] = described(schema)
        hints = get_type_hints(schema)
        waiting += [inner for key in children[schema] for inner in typed_dicts(hints[key])]
    return children


def test_the_table_has_every_key_of_every_schema_that_pydantic_describes() -> None:
    expected: dict[str, dict[str, Layout]] = {}
    for schema, keys in all_described().items():
        for kind in kinds(schema):
            if keys:
                expected[kind] = keys
    table = SUBSCHEMAS
    if not hasattr(core_schema, "named_tuple_schema"):  # pydantic before 2.14 has fewer kinds
        table = only(SUBSCHEMAS, expected)
    assert expected == table


def test_the_only_parts_without_a_type_are_parameters() -> None:
    untyped = {schema.__name__: keys for schema, keys in all_described().items() if not kinds(schema)}
    assert untyped == {"ArgumentsParameter": PARAMETER, "ArgumentsV3Parameter": PARAMETER}


TEXT: dict[str, Any] = {"type": "str"}


@pytest.mark.parametrize(
    ("node", "below"),
    [
        ({"type": "str", "schema": {"type": "int"}}, []),
        ({"type": "a kind of the future", "schema": {"type": "int"}}, []),
        ({"type": "model-fields", "fields": {"type": {"type": "model-field", "schema": TEXT}}}, ["model-field"]),
        ({"type": "union", "choices": [({"type": "int"}, "label"), TEXT]}, ["int", "str"]),
        ({"type": "list"}, []),
        ({"type": "default", "schema": TEXT, "default": {"type": "int"}}, ["str"]),
        ({"type": "dict", "keys_schema": TEXT, "serialization": {"type": "format"}}, ["str"]),
    ],
)
def test_children_go_by_the_table_and_not_by_the_look_of_a_dict(node: dict[str, Any], below: list[str]) -> None:
    assert [child["type"] for child in children(node)] == below


def test_parameters_have_no_type_and_are_walked_all_the_same() -> None:
    schema = core_schema.arguments_schema([core_schema.arguments_parameter("type", core_schema.int_schema())])
    assert [node["type"] for node in nodes_of(dict(schema))] == ["arguments", "int"]


def test_a_copy_has_changed_children_in_the_places_of_the_old_ones() -> None:
    schema: dict[str, Any] = {"type": "union", "choices": [(TEXT, "label"), TEXT], "default": TEXT}
    copied = with_children(schema, lambda child: {**child, "strict": True})
    strict = {"type": "str", "strict": True}
    assert copied == {"type": "union", "choices": [(strict, "label"), strict], "default": TEXT}
    assert schema["choices"] == [(TEXT, "label"), TEXT]
