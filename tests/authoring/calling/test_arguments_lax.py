"""Arguments that are converted: `lax=True` for a tool or a server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel, Discriminator, Field, JsonValue, RootModel, Tag
from typing_extensions import TypedDict

from funcmcp import MCPServer, ToolError, tool
from funcmcp.testing import Client
from tests.authoring.tool_calls import call, schema_of

pytestmark = [
    pytest.mark.every_python("Python's modules read signatures, annotations and docstrings."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]


class Line(BaseModel):
    item: str
    count: int = 1


class Plus(BaseModel):
    left: Plus | Minus | None = None


class Minus(BaseModel):
    left: Plus | Minus | None = None


class Order(BaseModel):
    lines: list[Line]
    note: str = ""


@dataclass
class Guest:
    name: str
    nights: int


class Address(TypedDict):
    street: str


class Point(NamedTuple):
    x: int


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]

CONVERTED: list[tuple[Any, Any, Any]] = [
    (int, "5", 5),
    (float, "1.5", 1.5),
    (Decimal, "1.1", Decimal("1.1")),
    (bool, "true", True),
    (bool, "false", False),
    (list[int], "[1, 2]", [1, 2]),
    (list[int], '["1", "2"]', [1, 2]),
    (list[int] | None, " [1]", [1]),
    (set[int], "[1]", {1}),
    (tuple[int, str], '[1, "[2]"]', (1, "[2]")),
    (dict[str, Any], '{"a": 1}', {"a": 1}),
    (dict[str, list[int]], {"a": "[1]"}, {"a": [1]}),
    (dict[int, str], '{"1": "a"}', {1: "a"}),
    (Order, '{"lines": [{"item": "tea"}]}', Order(lines=[Line(item="tea")])),
    (Order, {"lines": '[{"item": "[1]", "count": "2"}]'}, Order(lines=[Line(item="[1]", count=2)])),
    (Order, {"lines": ['{"item": "tea"}'], "note": "{}"}, Order(lines=[Line(item="tea")], note="{}")),
    (Guest, '{"name": "Ann", "nights": "2"}', Guest("Ann", 2)),
    (Address, '{"street": "1"}', {"street": "1"}),
    (Point, '{"x": 1}', Point(1)),
    (Pet, '{"kind": "dog"}', Dog(kind="dog")),
    (int | list[int], "[1]", [1]),
    (list[int] | int, "5", 5),
    (list[date], '["2026-07-28"]', [date(2026, 7, 28)]),
]


async def read(annotation: Any, value: Any, **options: Any) -> Any:
    """Return what a tool with one argument of a type gets."""
    seen: list[Any] = []

    async def function(it: Any) -> None:
        seen.append(it)

    function.__annotations__ = {"it": annotation, "return": None}
    await call(function, {"it": value}, **options)
    return seen[0]


@pytest.mark.parametrize(("annotation", "value", "expected"), CONVERTED)
async def test_a_lax_tool_converts_strings(annotation: Any, value: Any, expected: Any) -> None:
    assert await read(annotation, value, lax=True) == expected
    with pytest.raises(ToolError):
        await read(annotation, value)


@pytest.mark.parametrize(
    "annotation", [str, str | list[int], list[int] | str, dict[str, int] | str | None, int | bool | str, Any]
)
@pytest.mark.parametrize("text", ["[1]", '{"a": 1}', "5", "true", "null"])
async def test_a_lax_tool_keeps_the_text_of_what_may_be_a_string(annotation: Any, text: str) -> None:
    assert await read(annotation, text, lax=True) == text


@pytest.mark.parametrize("text", ["[1", "5", "", "x", '{"a": 1}', "[" * 100_000, '["x"]'])
async def test_a_string_without_such_json_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match=r"^it"):
        await read(list[int], text, lax=True)


async def test_other_values_of_a_union_with_strings_are_read_as_ever() -> None:
    annotation = Line | list[int] | str | None
    assert await read(annotation, {"item": "tea"}, lax=True) == Line(item="tea")
    assert await read(annotation, ["1"], lax=True) == [1]
    assert await read(annotation, None, lax=True) is None
    with pytest.raises(ToolError) as lax:
        await read(annotation, {"item": 1}, lax=True)
    with pytest.raises(ToolError) as strict:
        await read(annotation, {"item": 1})
    assert str(lax.value) == str(strict.value) == "it.item: must be a string, not a number"


@pytest.mark.parametrize(
    "annotation", [list[int], Order, Guest, Address, Point, Pet, dict[str, int], list[int] | str, Line | str | None]
)
def test_the_schema_of_a_lax_tool_is_that_of_a_strict_one(annotation: Any) -> None:
    def function(it: Any) -> None: ...

    function.__annotations__ = {"it": annotation, "return": None}
    assert schema_of(function, lax=True) == schema_of(function)


async def test_a_server_may_be_lax_and_a_tool_of_it_strict() -> None:
    mcp = MCPServer("Lax", lax=True)

    @mcp.tool
    def lenient(numbers: list[int]) -> int:
        return sum(numbers)

    @mcp.tool(lax=False)
    def strict(numbers: list[int]) -> int:
        return sum(numbers)

    class Tools:
        @tool
        def method(self, numbers: list[int]) -> int:
            return sum(numbers)

    mcp.add(Tools)
    async with Client(mcp) as client:
        assert (await client.call_tool("lenient", {"numbers": "[1, 2]"}))["structuredContent"] == {"result": 3}
        assert (await client.call_tool("method", {"numbers": ["1", "2"]}))["structuredContent"] == {"result": 3}
        refused = await client.call_tool("strict", {"numbers": "[1, 2]"})
    assert refused["isError"]
    assert refused["content"][0]["text"] == "numbers: must be an array, not a string"


async def test_text_inside_text_can_not_be_read_in_too_many_ways() -> None:
    def evaluate(term: Plus | Minus) -> str:
        return type(term).__name__

    wrong = "3"
    for _ in range(14):
        wrong = json.dumps({"left": wrong})
    with pytest.raises(ToolError, match="there are too many ways to read it"):
        await call(evaluate, {"term": wrong}, lax=True)
    right = json.dumps({"left": json.dumps({"left": json.dumps({"left": None})})})
    assert (await call(evaluate, {"term": right}, lax=True))["content"][0]["text"] == "Plus"


async def test_text_has_as_many_values_as_a_message() -> None:
    def count(items: list[list[int]]) -> int:
        return len(items)

    with pytest.raises(ToolError, match="items: must be an array, not a string"):
        await call(count, {"items": f"[{'[],' * 300_000}[]]"}, lax=True)
    assert (await call(count, {"items": f"[{'[],' * 10_000}[]]"}, lax=True))["structuredContent"] == {"result": 10_001}
    texts = await call(len_of, {"texts": json.dumps([",[" * 200_000])}, lax=True)
    assert texts["structuredContent"] == {"result": 1}


def len_of(texts: list[str]) -> int:
    return len(texts)


class Name(RootModel[str]):
    pass


class OptionalText(RootModel[str | None]):
    pass


class Several(RootModel[int | str | list[int]]):
    pass


def kind_of(value: Any) -> str:
    return "text" if isinstance(value, str) else "line"


def item_of(value: Any) -> str:
    return "line" if "item" in value.keys() else "guest"  # noqa: SIM118 - raises for a text


ByKind = Annotated[Annotated[str, Tag("text")] | Annotated[Line, Tag("line")], Discriminator(kind_of)]
ByItem = Annotated[Annotated[Line, Tag("line")] | Annotated[Guest, Tag("guest")], Discriminator(item_of)]

TEXTS: list[tuple[Any, Any, Any]] = [
    (Several, "[1]", Several("[1]")),
    (OptionalText, "[1]", OptionalText("[1]")),
    (ByKind, '{"item": "tea"}', '{"item": "tea"}'),
    (Name | list[int], "[1]", Name("[1]")),
    (list[int] | Name, "[1]", Name("[1]")),
    (list[int] | Several, "[1]", Several("[1]")),
    (date | Name, "2026-07-28", Name("2026-07-28")),
    (JsonValue, "[1]", "[1]"),
    (list[int] | Any, "[1]", "[1]"),
]


@pytest.mark.parametrize("lax", [False, True])
@pytest.mark.parametrize(("kind", "value", "expected"), TEXTS)
async def test_a_string_that_may_be_a_string_stays_one(kind: Any, value: Any, expected: Any, lax: bool) -> None:
    assert await received(kind, value, lax=lax) == expected


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int | list[int], "[1]", [1]),
        (list[int] | Line, '{"item": "tea"}', Line(item="tea")),
        (ByItem, '{"item": "tea"}', Line(item="tea")),
        (list[int] | Several, [1], [1]),
        (dict[str, list[int] | int], {"a": "[1]"}, {"a": [1]}),
        (RootModel[list[int]] | int, "[1]", RootModel[list[int]]([1])),
    ],
)
async def test_a_text_that_no_member_takes_is_read_as_json(kind: Any, value: Any, expected: Any) -> None:
    assert await received(kind, value, lax=True) == expected


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Line, '{"item": "tea"', "it: must be JSON: EOF while parsing an object at line 1 column 14"),
        (Line, '{"item":\n"tea" "count": 1}', "it: must be JSON: expected `,` or `}` at line 2 column 7"),
        (int | list[int], "[1", "it: must be JSON: EOF while parsing a list at line 1 column 2"),
        (list[int], "abc", "it: must be an array, not a string"),
    ],
)
async def test_the_place_of_an_error_in_json_is_told(kind: Any, value: Any, words: str) -> None:
    with pytest.raises(ToolError) as refused:
        await received(kind, value, lax=True)
    assert str(refused.value) == words


@pytest.mark.parametrize("lax", [False, True])
async def test_a_discriminator_for_objects_may_get_something_else(lax: bool) -> None:
    with pytest.raises(ToolError) as refused:
        await received(ByItem, 5, lax=lax)
    assert str(refused.value) == "it: fits none of its alternatives"


async def test_a_large_float_is_no_integer() -> None:
    with pytest.raises(ToolError, match="is too long"):
        await received(int, 1e20, lax=True)
    assert await received(int, 10**20, lax=True) == await received(int, 1e20, lax=False) == 10**20


async def received(annotation: Any, value: Any, *, lax: bool) -> Any:
    """Call a tool with one argument of a type and return what the function got."""
    got: list[Any] = []

    async def function(it: Any) -> None:
        got.append(it)

    function.__annotations__ = {"it": annotation}
    await call(function, {"it": value}, lax=lax)
    return got[0]
