"""Core schemas that are compiled as all supported versions of pydantic do it, on each of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pydantic.dataclasses
import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from funcmcp._authoring.schemas import pydantic_versions
from funcmcp._authoring.schemas.pydantic_schemas import adapted
from funcmcp._authoring.schemas.pydantic_versions import compiled_serializer, compiled_validator, with_named_tuples

if TYPE_CHECKING:
    from funcmcp._authoring.schemas.pydantic_schemas import Node

HAS_NAMED_TUPLES = hasattr(core_schema, "named_tuple_schema")
HAS_ARGUMENT = "_use_prebuilt" in (SchemaValidator.__text_signature__ or "")


class Item(BaseModel):
    name: str


class Order(BaseModel):
    items: list[Item]


@pydantic.dataclasses.dataclass
class Box:
    item: Item


@dataclass
class Parcel:
    box: Box


class Point(NamedTuple):
    x: int
    label: str | None = None


class Line(NamedTuple):
    start: Point
    end: Point


CALL: Node = {
    "type": "call",
    "function": Point,
    "ref": "point",
    "arguments_schema": {
        "type": "arguments",
        "arguments_schema": [
            {"name": "x", "schema": {"type": "int"}, "alias": "left"},
            {"name": "label", "schema": {"type": "default", "schema": {"type": "str"}, "default": None}},
        ],
        "metadata": {"pydantic_js_prefer_positional_arguments": True},
    },
}
"""A named tuple, as pydantic describes it before 2.14."""

NAMED_TUPLE: Node = {
    "type": "named-tuple",
    "cls": Point,
    "ref": "point",
    "fields": [
        {"type": "named-tuple-field", "name": "x", "schema": {"type": "int"}, "validation_alias": "left"},
        {
            "type": "named-tuple-field",
            "name": "label",
            "schema": {"type": "default", "schema": {"type": "str"}, "default": None},
        },
    ],
}


@pytest.fixture(params=["2.12", "2.13", "this version"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compile as for a version of pydantic, if the installed one can do what that version does."""
    if request.param == "2.12":
        monkeypatch.setattr(pydantic_versions, "_CAN_IGNORE_PREBUILT", False)
    elif request.param == "2.13" and not HAS_ARGUMENT:
        pytest.skip("pydantic 2.12 has no argument against prebuilt validators")
    if request.param != "this version":
        monkeypatch.setattr(pydantic_versions, "_HAS_NAMED_TUPLES", False)
    return str(request.param)


def shouting(node: Node) -> Node:
    """Return a node that writes texts, and reads them, in upper case."""
    if node.get("type") != "str":
        return node
    serialization = core_schema.plain_serializer_function_ser_schema(str.upper)
    return {**node, "to_upper": True, "serialization": serialization}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Order, {"items": [{"name": "PEN"}]}),
        (list[Order], [{"items": [{"name": "PEN"}]}]),
        (Parcel, {"box": {"item": {"name": "PEN"}}}),
    ],
)
@pytest.mark.usefixtures("version")
def test_classes_inside_of_a_changed_schema_are_changed_too(annotation: Any, value: Any) -> None:
    adapter = TypeAdapter(annotation)
    schema = adapted(dict(adapter.core_schema), shouting)
    lower = json.dumps(value).lower()
    assert compiled_validator(schema).validate_json(lower) == adapter.validate_python(value)
    serializer = compiled_serializer(schema, core_schema.CoreConfig())
    assert json.loads(serializer.to_json(adapter.validate_json(lower))) == value


@pytest.mark.usefixtures("version")
def test_named_tuples_inside_of_a_changed_schema_are_changed_too() -> None:
    schema = adapted(with_named_tuples(dict(TypeAdapter(Line).core_schema)), shouting)
    line = compiled_validator(schema).validate_python({"start": {"x": 1, "label": "a"}, "end": [2, "b"]})
    assert line == Line(Point(1, "A"), Point(2, "B"))


@pytest.mark.usefixtures("version")
def test_classes_stay_complete_and_keep_their_own_validation() -> None:
    compiled_validator(adapted(dict(TypeAdapter(list[Order]).core_schema), shouting))
    assert Order.__pydantic_complete__
    assert Item.__pydantic_complete__
    assert Order.model_validate({"items": [{"name": "pen"}]}).items[0].name == "pen"


@pytest.mark.usefixtures("version")
def test_classes_stay_complete_if_a_schema_is_wrong() -> None:
    model: Any = TypeAdapter(Order).core_schema
    with pytest.raises(SchemaError):
        compiled_validator({"type": "tuple", "items_schema": [model, {"type": "no such type"}]})
    assert Order.__pydantic_complete__


@pytest.mark.usefixtures("version")
def test_schemas_in_serializers_are_compiled_as_the_others() -> None:
    members = {"point": {"type": "typed-dict-field", "schema": NAMED_TUPLE, "required": True}}
    returned: Any = {"type": "typed-dict", "fields": members}
    serialization = core_schema.plain_serializer_function_ser_schema(
        lambda point: {"point": point}, return_schema=returned
    )
    schema: Any = {"type": "any", "serialization": serialization}
    assert compiled_serializer(schema, core_schema.CoreConfig()).to_json(Point(1)) == b'{"point":[1,null]}'


@pytest.mark.usefixtures("version")
def test_a_named_tuple_is_read_from_an_object_by_its_aliases_or_from_an_array() -> None:
    validator = compiled_validator(NAMED_TUPLE)
    assert validator.validate_python({"left": 1, "label": "a"}) == Point(1, "a")
    assert validator.validate_python([2]) == Point(2)
    with pytest.raises(ValidationError) as caught:
        validator.validate_python({"label": 5})
    assert {error["loc"] for error in caught.value.errors()} == {("left",), ("label",)}


def test_a_call_of_a_named_tuple_is_read_as_the_schema_of_pydantic_2_14(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pydantic_versions, "_HAS_NAMED_TUPLES", False)
    inner: Node = {"type": "list", "items_schema": CALL}
    assert with_named_tuples(inner) == {"type": "list", "items_schema": NAMED_TUPLE}


@pytest.mark.skipif(not HAS_NAMED_TUPLES, reason="pydantic before 2.14")
def test_pydantic_describes_named_tuples_as_this_file_does() -> None:
    schema: Any = TypeAdapter(Point).core_schema
    assert schema.keys() == NAMED_TUPLE.keys()
    assert [field["type"] for field in schema["fields"]] == ["named-tuple-field"] * 2
