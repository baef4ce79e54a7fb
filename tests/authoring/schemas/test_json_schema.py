# ruff: noqa: TC001 - tools are made of these hints at run time

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import annotated_types
import pytest
from pydantic import (
    UUID4,
    AnyUrl,
    BaseModel,
    ConfigDict,
    EmailStr,
    Field,
    IPvAnyAddress,
    NaiveDatetime,
    PrivateAttr,
    RootModel,
    SecretStr,
)
from typing_extensions import TypedDict

from funcmcp._authoring.calling.function_call import FeatureFunction
from funcmcp._authoring.calling.services import Services
from funcmcp._authoring.calling.tool_call import HandwrittenSchemas, left_out_of, tool_call
from funcmcp._authoring.schemas.json_schema import arranged
from funcmcp._authoring.signatures.signature import Arguments
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.features import LeftOut
from funcmcp._server.catalog.registry import RegistrationError
from tests.authoring.models import Address, Colour, CreateOrder, Level, Node, Point, Size
from tests.authoring.tool_calls import call, schema_of, tool_of

pytestmark = [
    pytest.mark.every_python("Types, enums, dataclasses and regular expressions are Python's."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]

# The first design of the library gives this schema for `CreateOrder`.
CREATE_ORDER = """{
  "type": "object",
  "properties": {
    "customerId": {"type": "string", "description": "The customer's unique identifier"},
    "items": {
      "type": "array",
      "description": "Order line items",
      "items": {
        "type": "object",
        "properties": {
          "itemId": {"type": "string", "description": "Menu item ID"},
          "quantity": {"type": "integer", "description": "Quantity to order", "minimum": 1, "maximum": 100},
          "modifications": {"type": "string", "description": "Special modifications"}
        },
        "required": ["itemId", "quantity"]
      }
    },
    "notes": {"type": "string", "description": "Special instructions or notes", "maxLength": 500},
    "priority": {
      "type": "string",
      "description": "Order priority level",
      "enum": ["low", "normal", "high", "urgent"],
      "default": "normal"
    },
    "deliveryDate": {"type": "string", "description": "Requested delivery date", "format": "date"},
    "notificationEmail": {
      "type": "string",
      "description": "Customer email for notifications",
      "format": "email"
    },
    "discountPercent": {"type": "number", "description": "Discount percentage", "minimum": 0, "maximum": 100}
  },
  "required": ["customerId", "items"]
}"""


def one(annotation: Any) -> dict[str, Any]:
    """Return the schema of one argument of a type."""

    def tool(it: Any) -> Any: ...

    tool.__annotations__ = {"it": annotation}
    schema: dict[str, Any] = schema_of(tool)["properties"]["it"]
    return schema


def test_the_order_of_seed_001_has_its_schema_key_for_key_in_order() -> None:
    def create_order(request: Arguments[CreateOrder]) -> None: ...

    assert json.dumps(schema_of(create_order)) == json.dumps(json.loads(CREATE_ORDER))


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (Decimal, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (date, {"type": "string", "format": "date"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (time, {"type": "string", "format": "time"}),
        (timedelta, {"type": "string", "format": "duration"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (EmailStr, {"type": "string", "format": "email"}),
        (AnyUrl, {"type": "string", "format": "uri", "minLength": 1}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (
            tuple[int, int],
            {
                "type": "array",
                "items": {"type": "integer"},
                "prefixItems": [{"type": "integer"}, {"type": "integer"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (tuple[()], {"type": "array", "items": {}, "minItems": 0, "maxItems": 0}),
        (dict, {"type": "object"}),
        (dict[int | float, str], {"type": "object", "additionalProperties": {"type": "string"}}),
        (
            dict[Literal["a", "b"], int],
            {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "propertyNames": {"enum": ["a", "b"]},
            },
        ),
        (list[int | None], {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}),
        (
            dict[str, int | None],
            {"type": "object", "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        ),
        (IPvAnyAddress, {"type": "string"}),
        (UUID4, {"type": "string", "format": "uuid"}),
        (Annotated[str, Field(pattern=r"^\d{3}\-\d{4}$")], {"type": "string", "pattern": r"^\d{3}-\d{4}$"}),
        (Annotated[str, Field(pattern="(?m)^a$")], {"type": "string"}),
        (Annotated[str, Field(description="")], {"type": "string"}),
        (
            list[int | str | None],
            {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}},
        ),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            Point,
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "label": {"type": "string"}},
                "required": ["x"],
            },
        ),
        (
            Size,
            {
                "type": "object",
                "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}},
                "required": ["width"],
            },
        ),
        (
            Address,
            {
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                "required": ["street"],
            },
        ),
        (int | None, {"type": "integer"}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Any, {}),
        (None, {"type": "null"}),
    ],
)
def test_a_type_has_its_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert json.dumps(one(annotation)) == json.dumps(schema)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
        (Annotated[int, Field(gt=1, lt=9)], {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 9}),
        (Annotated[float, Field(multiple_of=0.5)], {"type": "number", "multipleOf": 0.5}),
        (
            Annotated[Decimal, Field(gt=Decimal("0.5"), le=10)],
            {"type": "number", "exclusiveMinimum": 0.5, "maximum": 10},
        ),
        (Annotated[str, Field(min_length=1, max_length=5)], {"type": "string", "minLength": 1, "maxLength": 5}),
        (Annotated[str, Field(pattern="^[A-Z]+$")], {"type": "string", "pattern": "^[A-Z]+$"}),
        (Annotated[list[int], Field(min_length=1)], {"type": "array", "items": {"type": "integer"}, "minItems": 1}),
        (
            Annotated[str, Field(description="Words", title="T", examples=["a"])],
            {"type": "string", "title": "T", "description": "Words", "examples": ["a"]},
        ),
        (
            Annotated[int, annotated_types.Interval(ge=0, lt=3)],
            {"type": "integer", "minimum": 0, "exclusiveMaximum": 3},
        ),
        (Annotated[str, annotated_types.Len(2, 4)], {"type": "string", "minLength": 2, "maxLength": 4}),
    ],
)
def test_a_constraint_is_in_the_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert json.dumps(one(annotation)) == json.dumps(schema)


async def test_a_date_and_time_without_an_offset_has_a_pattern_instead_of_the_format_that_requires_one() -> None:
    def tool(start: NaiveDatetime) -> str:
        return start.isoformat()

    schema = schema_of(tool)["properties"]["start"]
    assert "format" not in schema
    for text in ("2026-07-28T12:00:00", "2026-07-28 12:00", "2026-07-28T12:00:00.125"):
        assert re.search(schema["pattern"], text)
        await call(tool, {"start": text})
    assert not re.search(schema["pattern"], "2026-07-28T12:00:00Z")
    with pytest.raises(ToolError, match="must not have an offset"):
        await call(tool, {"start": "2026-07-28T12:00:00Z"})


def test_defaults_are_shown_unless_they_are_null_or_not_json() -> None:
    nothing = object()

    def tool(  # noqa: PLR0917 - one for each kind of default
        a: int = 3,
        b: Annotated[int, Field(default=4)] = 4,
        c: Annotated[int, Field(default=5)] = Field(5, ge=0),
        d: str | None = None,
        e: Any = nothing,
        f: Colour = Colour.RED,
        g: Decimal = Decimal("1.5"),
        h: str | None = Field(None),
        i: list[int] = [],  # noqa: B006 - an author's default
    ) -> None: ...

    assert schema_of(tool) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "default": 3},
            "b": {"type": "integer", "default": 4},
            "c": {"type": "integer", "minimum": 0, "default": 5},
            "d": {"type": "string"},
            "e": {},
            "f": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "g": {"type": "number", "default": 1.5},
            "h": {"type": "string"},
            "i": {"type": "array", "items": {"type": "integer"}, "default": []},
        },
    }


def test_null_is_in_the_schema_of_an_argument_unless_it_is_the_default() -> None:
    class Model(BaseModel):
        a: int | None = 5
        b: int | None = None
        c: int | str | None = Field(None, description="C")

    def tool(model: Model, x: int | None = 5, y: int | str | None = None) -> None: ...

    properties = schema_of(tool)["properties"]
    number_or_null = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5}
    assert properties["model"]["properties"] == {
        "a": number_or_null,
        "b": {"type": "integer"},
        "c": {"description": "C", "anyOf": [{"type": "integer"}, {"type": "string"}]},
    }
    assert properties["x"] == number_or_null
    assert properties["y"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}


def test_what_a_schema_leaves_out_is_listed_with_its_reason() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "(?m)^a$"}, "b": {"$ref": "#/$defs/B"}},
        "patternProperties": {"(?x)a": {}, r"\-": {}},
        "$defs": {"B": {"type": "string", "format": "ipvanyaddress"}},
    }
    left_out: list[LeftOut] = []
    assert arranged(schema, left_out) == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "patternProperties": {"-": {}},
    }
    assert sorted(left_out) == [
        (("patternProperties", "(?x)a"), "(?x)a", "ECMA-262 does not have the flags (?x)"),
        (("properties", "a", "pattern"), "(?m)^a$", "ECMA-262 does not have the flags (?m)"),
        (("properties", "b", "format"), "ipvanyaddress", "JSON Schema does not have this format"),
    ]


def test_a_tool_lists_what_its_schemas_leave_out() -> None:
    Code = Annotated[str, Field(pattern="(?m)^a$")]  # noqa: N806 - a type

    def tool(codes: list[Code]) -> None: ...

    tool.__annotations__["codes"] = list[Code]
    tool.__annotations__["return"] = list[Code]
    call = tool_call(FeatureFunction("tool", tool, Services()), HandwrittenSchemas())
    reason = "ECMA-262 does not have the flags (?m)"
    assert left_out_of(call) == [
        (("inputSchema", "properties", "codes", "items", "pattern"), "(?m)^a$", reason),
        (("outputSchema", "properties", "result", "items", "pattern"), "(?m)^a$", reason),
    ]


def test_what_may_be_none_is_not_required_in_any_kind_of_type() -> None:
    class Model(BaseModel):
        note: str | None
        name: str

    def tool(model: Model, reason: str | None) -> None: ...

    assert schema_of(tool) == {
        "type": "object",
        "properties": {
            "model": {
                "type": "object",
                "properties": {"note": {"type": "string"}, "name": {"type": "string"}},
                "required": ["name"],
            },
            "reason": {"type": "string"},
        },
        "required": ["model"],
    }


def test_a_tool_without_arguments_allows_none() -> None:
    def ping() -> None: ...

    assert schema_of(ping) == {"type": "object", "properties": {}}


def test_models_are_inlined_wherever_they_stand() -> None:
    def tool(first: Size, second: list[Size], third: dict[str, Size | None]) -> None: ...

    schema = schema_of(tool)
    assert "$ref" not in json.dumps(schema)
    assert "title" not in json.dumps(schema)
    assert schema["properties"]["first"] == schema["properties"]["second"]["items"]


def test_only_recursive_models_keep_references() -> None:
    def tool(tree: Node, size: Size) -> None: ...

    schema = schema_of(tool)
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Node"}
    assert schema["properties"]["size"]["type"] == "object"
    assert list(schema["$defs"]) == ["Node"]
    assert schema["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_an_all_of_with_one_recursive_model_keeps_its_definition() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {"properties": {"a": {"allOf": [{"$ref": "#/$defs/Node"}], "description": "A."}}, "$defs": {"Node": node}}
    assert arranged(schema) == {
        "properties": {"a": {"$ref": "#/$defs/Node", "description": "A."}},
        "$defs": {"Node": node},
    }


def test_a_spread_recursive_model_has_its_fields_at_the_root() -> None:
    def tool(tree: Arguments[Node]) -> None: ...

    schema = schema_of(tool)
    assert schema["type"] == "object"
    assert schema["required"] == ["name"]
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert "Node" in schema["$defs"]


def test_types_that_multiply_keep_their_references() -> None:
    definitions: dict[str, Any] = {"L0": {"type": "string"}}
    for level in range(1, 20):
        below = {"$ref": f"#/$defs/L{level - 1}"}
        definitions[f"L{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    schema = arranged({"$ref": "#/$defs/L19", "$defs": definitions})
    assert schema["properties"]["a"] == {"$ref": "#/$defs/L18"}
    assert len(json.dumps(schema)) < 10_000


def test_members_that_are_named_like_keywords_stay() -> None:
    schema = {
        "properties": {"title": {"type": "string"}, "default": {"$ref": "#/$defs/A"}, "enum": {"const": {"$ref": "x"}}},
        "type": "object",
        "$defs": {"A": {"type": "integer"}},
    }
    assert arranged(schema) == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "default": {"type": "integer"}, "enum": {"const": {"$ref": "x"}}},
    }


def test_a_discriminated_union_has_no_references_left_over() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    schema = one(Annotated[Cat | Dog, Field(discriminator="kind")])
    assert list(schema) == ["anyOf"]
    assert "$ref" not in json.dumps(schema)


def test_the_schema_of_a_closed_model_has_no_boolean() -> None:
    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid", title="Shut")
        a: int

    assert one(Closed) == {
        "type": "object",
        "title": "Shut",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
    }

    def tool(closed: Arguments[Closed]) -> None: ...

    assert "additionalProperties" not in schema_of(tool)


def test_docstrings_describe_arguments_where_the_annotation_does_not() -> None:
    def tool(a: int, b: Annotated[int, Field(description="From the annotation", alias="bee")], c: int) -> None:
        """Do it.

        Args:
            a: From the docstring
            b: Not shown
        """

    properties = schema_of(tool)["properties"]
    assert properties["a"] == {"type": "integer", "description": "From the docstring"}
    assert properties["bee"] == {"type": "integer", "description": "From the annotation"}
    assert properties["c"] == {"type": "integer"}


def test_an_untyped_parameter_may_be_anything() -> None:
    def tool(a, b=1): ...  # type: ignore[no-untyped-def] # the point of the test

    assert schema_of(tool) == {"type": "object", "properties": {"a": {}, "b": {"default": 1}}, "required": ["a"]}


class NotJSON: ...


@pytest.mark.parametrize("annotation", [NotJSON, Callable[[], int]])
def test_a_type_without_a_meaning_in_json_is_explained(annotation: Any) -> None:
    def tool(it: Any) -> Any: ...

    tool.__annotations__ = {"it": annotation}
    with pytest.raises(RegistrationError, match=r"'it' of tool.*JSON"):
        schema_of(tool)


def test_a_spread_type_needs_named_fields() -> None:
    def tool(it: Arguments[list[int]]) -> None: ...

    with pytest.raises(RegistrationError, match="named fields"):
        schema_of(tool)


def test_two_arguments_of_one_name_are_refused() -> None:
    def tool(size: Arguments[Size], width: int) -> None: ...
    def twice(a: Arguments[Size], b: Arguments[Size]) -> None: ...

    with pytest.raises(RegistrationError, match="two arguments named width"):
        schema_of(tool)
    with pytest.raises(RegistrationError, match="more than one"):
        schema_of(twice)


def test_spread_and_other_arguments_stand_side_by_side() -> None:
    def tool(size: Arguments[Size], colour: Colour) -> None: ...

    schema = schema_of(tool)
    assert sorted(schema["properties"]) == ["colour", "height", "width"]
    assert sorted(schema["required"]) == ["colour", "width"]


@pytest.mark.parametrize("keys", [tuple[int, int], list[int], CreateOrder, Size, None])
def test_a_dict_whose_keys_can_not_be_names_is_refused(keys: Any) -> None:
    def tool(it: Any) -> None: ...

    tool.__annotations__["it"] = dict[keys, int]
    with pytest.raises(RegistrationError, match="The parameter 'it' of tool has a dict whose keys JSON can't carry"):
        schema_of(tool)


def test_bytes_are_base64_in_the_schema() -> None:
    def tool(a: bytes, b: Annotated[bytes, Field(max_length=4, description="four")] = b"\xff") -> None: ...

    assert schema_of(tool)["properties"] == {
        "a": {"type": "string", "contentEncoding": "base64"},
        "b": {
            "type": "string",
            "description": "four",
            "maxLength": 8,
            "contentEncoding": "base64",
            "default": "/w==",
        },
    }


def test_names_that_are_read_as_numbers_are_not_described_as_numbers() -> None:
    def tool(a: dict[int, int], b: dict[Level, int]) -> None: ...

    numbers = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert schema_of(tool)["properties"] == {"a": numbers, "b": numbers}


@dataclass
class Account:
    name: str
    api_key: str = field(default="sk-1", init=False)
    token: str = field(default_factory=lambda: "sk-1", init=False)


@dataclass
class Owner:
    account: Account


class Holder(BaseModel):
    account: Account = Account("a")


class Vault(BaseModel):
    name: str
    api_key: ClassVar[str] = "sk-1"
    _key: str = PrivateAttr("sk-1")
    token: str = Field(default_factory=lambda: "sk-1")
    password: SecretStr = SecretStr("sk-1")
    connection: Any = Field(default_factory=lambda: Account("sk-1"))


def test_no_default_that_a_client_can_not_set_is_published() -> None:
    def take(
        account: Account,
        holder: Holder,
        owner: Owner = Owner(Account("a")),  # noqa: B008 - the point of the test
        vault: Vault = Vault(name="v", token="t", connection=1),  # noqa: B008 - as above
        password: SecretStr = SecretStr("sk-1"),  # noqa: B008 - as above
        connection: Any = lambda: "sk-1",
    ) -> None: ...

    schema = schema_of(take)
    assert "sk-1" not in json.dumps(schema)
    properties = schema["properties"]
    assert properties["account"]["properties"].keys() == {"name"}
    assert properties["owner"]["default"] == {"account": {"name": "a"}}
    assert properties["holder"]["properties"]["account"]["default"] == {"name": "a"}
    assert "default" not in properties["connection"]


def test_fields_that_are_not_arguments_are_not_spread() -> None:
    def take(account: Arguments[Account]) -> None: ...

    assert schema_of(take) == {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }


async def test_a_pattern_that_clients_cannot_read_is_checked_and_not_shown() -> None:
    def tool(it: Any) -> Any:
        return {"name": "5"} if it["name"] == "five" else it

    class Named(TypedDict):
        name: Annotated[str, Field(pattern=r"^\p{L}+$")]

    tool.__annotations__ = {"it": Named, "return": Named}
    definition = tool_of(tool).describe()
    assert definition["inputSchema"]["properties"]["it"]["properties"] == {"name": {"type": "string"}}
    assert definition["outputSchema"]["properties"] == {"name": {"type": "string"}}
    assert (await call(tool, {"it": {"name": "grün"}}))["structuredContent"] == {"name": "grün"}
    with pytest.raises(ToolError, match="must match the pattern"):
        await call(tool, {"it": {"name": "5"}})
    with pytest.raises(ValueError, match="does not allow"):
        await call(tool, {"it": {"name": "five"}})


@pytest.mark.parametrize(
    ("default", "shown"),
    [
        (time(12), None),
        (datetime(2026, 1, 1), None),  # noqa: DTZ001 - without an offset
        (time(12, tzinfo=UTC), "12:00:00Z"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
    ],
)
def test_a_default_without_the_offset_that_its_format_requires_is_left_out(default: Any, shown: str | None) -> None:
    def tool(it: Any = default) -> None: ...

    tool.__annotations__ = {"it": type(default)}
    assert schema_of(tool)["properties"]["it"].get("default") == shown


def test_a_fraction_is_no_multiple_for_clients() -> None:
    def tool(it: Annotated[Decimal, Field(multiple_of=Decimal("0.05"))]) -> None: ...

    assert schema_of(tool)["properties"]["it"] == {"type": "number"}


def test_a_root_model_has_the_schema_of_its_root() -> None:
    @dataclass
    class Inside:
        a: int

    def tool(it: Any) -> None: ...

    tool.__annotations__ = {"it": RootModel[Inside]}
    inside = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert schema_of(tool)["properties"]["it"] == inside
