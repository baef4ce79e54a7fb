"""Defaults in schemas: each fits its own schema, and the others are left out."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import Enum, Flag
from typing import Annotated, Any, Literal, NewType

import jsonschema_rs
import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType, TypedDict

from funcmcp._authoring.schemas.schema_defaults import fits
from tests.authoring.tool_calls import call, schema_of

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")


class Colour(Enum):
    RED = "red"


class Raw(Enum):
    BYTES = b"\x9f"


class Access(Flag):
    READ = 1
    WRITE = 2


class Options(BaseModel):
    size: Annotated[int, Field(ge=1)] = 0
    names: Annotated[list[str], Field(min_length=1)] = []
    raw: Raw = Raw.BYTES
    note: str | None = "none"
    nothing: str | None = None
    access: Access = Access.READ | Access.WRITE


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
    size: int = Field(alias="length")


class Partial(TypedDict, total=False):
    size: int


@pytest.mark.parametrize(
    ("annotation", "default", "is_shown"),
    [
        (int, 5, True),
        (float, 5, True),
        (float, 0.5, True),
        (bool, False, True),
        (Annotated[int, Field(ge=1)], 0, False),
        (Annotated[int, Field(ge=1)], 1, True),
        (Annotated[int, Field(gt=1)], 1, False),
        (Annotated[float, Field(le=1)], 1.5, False),
        (Annotated[float, Field(lt=1)], 0.5, True),
        (Annotated[str, Field(min_length=1)], "", False),
        (Annotated[str, Field(max_length=1)], "a", True),
        (Annotated[str, Field(pattern="^[A-Z]+$")], "", False),
        (Annotated[str, Field(pattern="^[A-Z]+$")], "A", True),
        (list[int], (), True),
        (list[int], ["a"], False),
        (Annotated[list[int], Field(max_length=1)], [1, 2], False),
        (dict[str, int], {"a": 1}, True),
        (dict[str, int], {"a": "b"}, False),
        (Colour, "red", True),
        (Colour, "green", False),
        (Colour, Colour.RED, True),
        (Raw, Raw.BYTES, True),
        (list[Raw], [Raw.BYTES], False),
        (Access, Access.READ | Access.WRITE, True),
        (Literal["a"], "b", False),
        (Literal["a", 1], True, False),
        (date, date(2026, 7, 28), True),
        (Decimal, Decimal("1.5"), True),
        (bytes, b"\x9f", True),
        (int | None, 5, True),
        (Options, {}, True),
        (Options, {"size": "a"}, False),
        (ByName, ByName.model_validate({"size": 1}), False),
        (Partial, {}, True),
        (Partial, {"size": None}, False),
        (tuple[int, str], (1, "a"), True),
    ],
)
async def test_a_default_that_does_not_fit_its_schema_is_left_out_and_still_used(
    annotation: Any, default: Any, is_shown: bool
) -> None:
    got: list[Any] = []

    def tool(it: Any = default) -> None:
        got.append(it)

    tool.__annotations__["it"] = annotation
    schema = schema_of(tool)
    _check_defaults(schema, schema)
    assert ("default" in schema["properties"]["it"]) is is_shown
    if is_shown:
        await call(tool, {"it": schema["properties"]["it"]["default"]})
    await call(tool, {})
    assert got[-1] is default


def _check_defaults(node: Any, root: dict[str, Any]) -> None:
    """Check each default in a schema with jsonschema."""
    if isinstance(node, dict):
        if "default" in node and not {"type", "anyOf", "enum", "const", "$ref"}.isdisjoint(node):
            assert jsonschema_rs.is_valid({**node, "$defs": root.get("$defs", {})}, node["default"]), node
        for member in node.values():
            _check_defaults(member, root)
    elif isinstance(node, list):
        for member in node:
            _check_defaults(member, root)


def test_defaults_of_fields_fit_their_schemas() -> None:
    def tool(it: Options) -> None: ...

    properties = schema_of(tool)["properties"]["it"]["properties"]
    assert {name: member.get("default", "none of its own") for name, member in properties.items()} == {
        "size": "none of its own",
        "names": "none of its own",
        "raw": "nw==",
        "note": "none",
        "nothing": "none of its own",
        "access": 3,
    }


@pytest.mark.parametrize(
    ("value", "schema", "is_fit"),
    [
        (1.0, {"type": "integer"}, True),
        (True, {"type": "integer"}, False),
        (True, {"type": "boolean"}, True),
        (None, {"type": "null"}, True),
        (None, {"type": "string"}, False),
        ({}, {"type": "object", "required": ["a"]}, False),
        ({"a": 1}, {"type": "object", "maxProperties": 0}, False),
        ([1], {"type": "array", "items": {"$ref": "#/$defs/text"}}, False),
        (["a"], {"type": "array", "items": {"$ref": "#/$defs/text"}}, True),
        ("b", {"pattern": "^(?=a)"}, True),
        (5, {"type": ["string", "null"]}, True),
        (5, {}, True),
    ],
)
def test_the_keywords_of_generated_schemas_are_checked(value: Any, schema: dict[str, Any], is_fit: bool) -> None:
    assert fits(value, schema, {"text": {"type": "string"}}) is is_fit


Alias = TypeAliasType("Alias", "int | None")
AliasOfAlias = TypeAliasType("AliasOfAlias", Annotated[Alias, Field(description="A number")])
New = NewType("New", int | None)  # type: ignore[valid-newtype] # as authors write it
Recursive = TypeAliasType("Recursive", "list[Recursive] | None")


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Alias, {"type": "integer"}),
        (AliasOfAlias, {"type": "integer", "description": "A number"}),
        (New, {"type": "integer"}),
        (
            Annotated[Annotated[int, Field(ge=1)] | None, "A number"],
            {"type": "integer", "description": "A number", "minimum": 1},
        ),
        (Literal["a", "b", None], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", None], {"type": "string", "enum": ["a"]}),
        (int | Literal[None, "a"], {"anyOf": [{"type": "integer"}, {"type": "string", "enum": ["a"]}]}),
        (Recursive, {"type": "array", "items": {"$ref": "#/$defs/Recursive"}}),
    ],
)
async def test_none_in_an_alias_or_a_literal_means_absent(annotation: Any, schema: dict[str, Any]) -> None:
    got: list[Any] = []

    def tool(first: Any, second: Any, third: Any = None, fourth: Any = 7) -> None:
        got.append((first, second, third, fourth))

    tool.__annotations__.update(dict.fromkeys(("first", "second", "third", "fourth"), annotation))
    made = schema_of(tool)
    assert "required" not in made
    assert made["properties"]["first"] == made["properties"]["second"] == made["properties"]["third"] == schema
    assert jsonschema_rs.is_valid({**made["properties"]["fourth"], "$defs": made.get("$defs", {})}, None)
    await call(tool, {})
    await call(tool, dict.fromkeys(("first", "second", "third", "fourth")))
    assert got == [(None, None, None, 7), (None, None, None, None)]
