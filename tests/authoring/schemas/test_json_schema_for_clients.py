"""Generated schemas keep to what clients accept, for all kinds of types, in arguments and results."""

# ruff: noqa: TC003 - tools are made of these hints at run time

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator
from pydantic import UUID4, AnyUrl, BaseModel, ConfigDict, Field, IPvAnyAddress, SecretStr
from typing_extensions import TypedDict

from tests.authoring.models import Address, Colour, CreateOrder, Level, Node, Point, Size
from tests.authoring.schemas.test_ecma_patterns import on_node
from tests.authoring.tool_calls import call, tool_of

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 5
    b: int | None = 7
    c: str | None = None
    d: list[int | None] = [None]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 1


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Options(TypedDict, total=False):
    size: int


class Pair(NamedTuple):
    left: int
    right: int = 9


@dataclass
class Page:
    number: int = 3


LEAVES: list[Any] = [
    *(str, int, float, Decimal, bool, date, datetime, time, timedelta, UUID, UUID4, bytes, AnyUrl, SecretStr, Path),
    *(Colour, Level, Literal["a", "b"], Literal[1, "a"], IPvAnyAddress, IPv4Network, Any, None, dict, list, tuple, set),
    *(Address, CreateOrder, Node, Point, Size, Closed, Open, Options, Pair, Page, tuple[int, str], tuple[()]),
    *(tuple[int, int], dict[int, str], dict[UUID, int], dict[int | float, str], dict[Literal["a"], int]),
    Annotated[Cat | Dog, Field(discriminator="kind")],
    Annotated[str, Field(pattern=r"^\d{3}\-\d{4}$", description="")],
    Annotated[str, Field(pattern="(?i)^(?P<a>x+)$")],
    Annotated[str, Field(pattern="(?m)^a$")],
    dict[Annotated[str, Field(pattern=r"^a\-b$")], int],
]


def around(leaf: Any) -> list[Any]:
    """Return a type, and types that contain it."""
    return [leaf, list[Optional[leaf]], dict[str, leaf], tuple[leaf, Optional[int]], Union[leaf, int]]  # noqa: UP007, UP045 - None has no |


TYPES = [annotation for leaf in LEAVES for annotation in around(leaf)]


def schemas() -> list[dict[str, Any]]:
    """Return the input and output schemas of tools that take and return each type."""
    result = []
    for annotation in TYPES:

        def function(it: Any, optional: Any = None) -> Any: ...

        function.__annotations__ = {"it": annotation, "optional": annotation, "return": annotation}
        described = tool_of(function).describe()
        assert "properties" in described["inputSchema"]
        result += [described[name] for name in ("inputSchema", "outputSchema") if name in described]
    return result


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schemas in a schema, itself included."""
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword in ("items", "additionalProperties", "propertyNames"):
        yield from nodes(schema.get(keyword))
    for keyword in ("properties", "patternProperties", "$defs"):
        for member in schema.get(keyword, {}).values():
            yield from nodes(member)
    for keyword in ("anyOf", "allOf", "prefixItems"):
        for member in schema.get(keyword, []):
            yield from nodes(member)


@pytest.mark.slow("Many values or schemas take half a second or longer.")
def test_no_schema_has_a_keyword_that_a_client_rejects() -> None:
    for schema in schemas():
        for node in nodes(schema):
            assert not isinstance(node.get("additionalProperties"), bool)
            assert "oneOf" not in node
            assert node.get("description") != ""
            assert node.get("type") != "array" or "items" in node
            assert not re.fullmatch(r"uuid\d|ip.*(?:any|network).*|path|password", node.get("format", ""))


@pytest.mark.slow("Many values or schemas take half a second or longer.")
def test_all_schemas_are_valid_with_jsonschema_and_so_are_their_defaults() -> None:
    for schema in schemas():
        Draft202012Validator.check_schema(schema)
        for node in nodes(schema):
            if "default" in node:
                Draft202012Validator(node).validate(node["default"])


@pytest.mark.slow("Node compiles some hundred schemas.")
def test_all_schemas_compile_with_ajv_in_strict_mode() -> None:
    generated = schemas()
    for schema, error in zip(generated, on_node("ajv-schemas.mjs", generated), strict=True):
        assert error is None, schema


async def test_null_means_absent_where_an_argument_has_a_default_and_its_type_excludes_null() -> None:
    def tool(  # noqa: PLR0917 - one for each kind of default
        closed: Closed,
        page: Page,
        pair: Pair,
        options: Options,
        limit: int = 10,
        other: int | None = 4,
        numbers: list[int] = Field([1]),  # noqa: B008 - an author's default
    ) -> str:
        return repr((closed.a, closed.b, page.number, pair.right, options, limit, other, numbers))

    arguments = {
        "closed": {"a": None, "b": None},
        "page": {"number": None},
        "pair": {"left": 1.0, "right": None},
        "options": {"size": None},
        "limit": None,
        "other": None,
        "numbers": None,
    }
    result = await call(tool, arguments)
    assert result["content"][0]["text"] == "(5, None, 3, 9, {}, 10, None, [1])"
    assert (await call(tool, arguments, lax=True)) == result


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"required": None}, "required: must be an integer, not null"),
        ({"required": "x", "optional": None}, "required: must be an integer, not a string"),
        ({"required": 1, "optional": [None]}, "optional[0]: must be an integer, not null"),
        ({"required": 1, "optional": "x", "other": None}, "optional: must be an array, not a string"),
        ({"required": 1, "optional": ["x"], "other": None}, "optional[0]: must be an integer, not a string"),
    ],
)
async def test_other_nulls_and_values_are_rejected(arguments: dict[str, Any], message: str) -> None:
    def tool(required: int, optional: list[int] = [], other: int = 3) -> None: ...  # noqa: B006 - an author's default

    with pytest.raises(Exception, match=f"^{re.escape(message)}$"):
        await call(tool, arguments)


class Stay(TypedDict, total=False):
    dates: set[date]
    room: int


async def test_null_for_one_argument_leaves_the_others_as_they_are() -> None:
    def tool(
        owner: UUID | None,
        labels: frozenset[str] = frozenset(),
        pair: tuple[date, bytes] | None = None,
        stay: Stay = {},  # noqa: B006 - an author's default
        limit: int = 10,
    ) -> str:
        return repr((owner, labels, pair, stay, limit))

    arguments = {
        "labels": ["a", "a"],
        "pair": ["2026-07-28", "YWJj"],
        "stay": {"dates": ["2026-07-28"], "room": None},
        "limit": None,
    }
    result = await call(tool, arguments)
    day = "datetime.date(2026, 7, 28)"
    assert result["content"][0]["text"] == f"(None, frozenset({{'a'}}), ({day}, b'abc'), {{'dates': {{{day}}}}}, 10)"
