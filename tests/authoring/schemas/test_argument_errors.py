"""Errors about arguments: JSON instead of Python, the path of the wrong argument alone, and nothing of the input."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import (
    UUID4,
    AfterValidator,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    BeforeValidator,
    ByteSize,
    Field,
    FilePath,
    HttpUrl,
    ImportString,
    IPvAnyAddress,
    Json,
    NaiveDatetime,
    TypeAdapter,
)
from pydantic_core import PydanticKnownError
from pydantic_core._pydantic_core import list_all_errors

from funcmcp import MCPError, MCPServer
from funcmcp._authoring.schemas.argument_errors import validation_errors
from funcmcp._protocol.errors import ToolError
from funcmcp.testing import Client
from tests.authoring.tool_calls import call

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")

SECRET = "a-secret-of-the-caller"

_WITHOUT_PHRASE = {
    "callable_type": "JSON can't carry such a value",
    "custom_error": "an author's own",
    "ellipsis_error": "JSON can't carry such a value",
    "frozen_field": "only for assignments",
    "frozen_instance": "only for assignments",
    "get_attribute_error": "only with from_attributes",
    "is_instance_of": "JSON can't carry such a value",
    "is_subclass_of": "JSON can't carry such a value",
    "missing_sentinel_error": "JSON can't carry such a value",
    "multiple_argument_values": "only for calls",
    "needs_python_object": "a mistake of an author",
    "no_such_attribute": "only for assignments",
    "string_sub_type": "JSON can't carry such a value",  # pydantic before 2.14
    "assertion_error": "an author's own",
    "value_error": "an author's own",
    "default_factory_not_called": "follows from another error, and is left out",
    "union_tag_invalid": "replaced by an own error",
    "union_tag_not_found": "replaced by an own error",
}
"""pydantic's errors without an own phrase, with the reason."""


def lines_of(kind: str, context: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines about an error of pydantic's, as a validator raises it."""

    def fail(_value: Any) -> Any:
        raise PydanticKnownError(kind, context)  # type: ignore[arg-type] # each kind in turn

    try:
        TypeAdapter(Annotated[Any, BeforeValidator(fail)]).validate_python(SECRET)
    except ValueError as error:
        return validation_errors(error, SECRET)  # type: ignore[arg-type] # pydantic's
    raise AssertionError(kind)


@pytest.mark.parametrize("error", list_all_errors(), ids=lambda error: str(error["type"]))
def test_each_error_of_pydantic_has_a_phrase_that_repeats_nothing_of_the_input(error: Any) -> None:
    kind = error["type"]
    context = error.get("example_context") or {}
    filled = {name: SECRET if value == "" else value for name, value in context.items()}
    limits = {"encoding", "expected", "expected_schemes", "expected_version", "pattern", "min_length", "max_length"}
    if kind in {"value_error", "assertion_error"}:
        filled["error"] = ValueError(SECRET)
    for name in limits & filled.keys():
        filled[name] = "x" if filled[name] == SECRET else filled[name]
    lines = lines_of(kind, filled)
    if kind == "default_factory_not_called":
        assert lines == []
        return
    ((path, phrase),) = lines
    assert path == ""
    assert SECRET not in phrase
    assert "Input" not in phrase
    assert "{" not in phrase
    assert (phrase in {"is not valid", "fits none of its alternatives"}) is (kind in _WITHOUT_PHRASE)


def careful(value: str) -> str:
    if value == SECRET:
        raise ValueError("choose another word")
    return value


def parsed(value: str) -> str:
    return str(int(value))


def reraised(value: str) -> str:
    try:
        return parsed(value)
    except ValueError:
        raise ValueError("must contain digits") from None


def dated(value: str) -> str:
    return str(datetime.strptime(value, "%Y").astimezone())


def asserted(value: str) -> str:
    if value:
        raise AssertionError
    return value


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (Annotated[str, AfterValidator(careful)], SECRET, "it: choose another word"),
        (Annotated[str, AfterValidator(reraised)], SECRET, "it: must contain digits"),
        (Annotated[str, AfterValidator(parsed)], SECRET, "it: is not valid"),
        (Annotated[str, BeforeValidator(int)], SECRET, "it: is not valid"),
        (Annotated[str, AfterValidator(dated)], SECRET, "it: is not valid"),
        (Annotated[str, AfterValidator(UUID)], SECRET, "it: is not valid"),
        (Annotated[str, AfterValidator(asserted)], SECRET, "it: is not valid"),
        (ByteSize, f"12{SECRET}", "it: must be a size such as 10 MiB, or a number of bytes"),
        (HttpUrl, f"ftp://{SECRET}", 'it: must be a URI with the scheme "http" or "https"'),
        (HttpUrl, SECRET, "it: must be a URI"),
        (FilePath, SECRET, "it: Path does not point to a file"),
        (ImportString, SECRET, "it: must be the name of a Python object such as math.pi"),
        (Base64Bytes, SECRET, "it: must be base64"),
        (IPvAnyAddress, SECRET, "it: must be an IP address"),
        (Json[list[int]], SECRET, "it: must be a string with JSON in it"),
        (Json[list[int]], [1], "it: must be a string with JSON in it, not an array"),
        (Json[list[int]], "[1.5]", "it: must be an integer, not a number with a fraction"),
        (AwareDatetime, "2026-07-28T12:00:00", "it: must have an offset such as Z"),
        (NaiveDatetime, "2026-07-28T12:00:00Z", "it: must not have an offset such as Z"),
        (UUID4, "12345678-1234-1678-1234-567812345678", "it: must be a UUID of version 4"),
        (set[Any], [SECRET, [SECRET]], "it[1]: must not be an array or an object"),
        (dict[str, Literal["a", True]], {"b": SECRET}, 'it.b: must be one of "a" or true'),
        (Annotated[date, Field(ge=date(2026, 1, 1))], "2025-01-01", "it: must be at least 2026-01-01"),
        (
            Annotated[datetime, Field(lt=datetime(2026, 1, 1, tzinfo=UTC))],
            "2026-07-28T12:00:00Z",
            "it: must be less than 2026-01-01T00:00:00Z",
        ),
        (Annotated[Decimal, Field(ge=Decimal("1.50"))], 1, "it: must be at least 1.5"),
        (Annotated[timedelta, Field(gt=timedelta(hours=1))], "PT1M", "it: must be greater than 1 hour"),
    ],
)
async def test_an_error_repeats_nothing_of_the_input(annotation: Any, value: Any, error: str) -> None:
    def tool(it: Any) -> None: ...

    tool.__annotations__["it"] = annotation
    with pytest.raises(ToolError) as raised:
        await call(tool, {"it": value})
    assert str(raised.value) == error


class Filter(BaseModel):
    kind: Literal["filter"]
    filter: list[int]
    number: int


class Sort(BaseModel):
    kind: Literal["sort"]
    by: str


class Names(BaseModel):
    int: str
    str: int  # type: ignore[valid-type] # the field above
    Names: bool = False


class Derived(BaseModel):
    first: int
    second: int = Field(default_factory=lambda data: data["first"])


Step = Annotated[Filter | Sort, Field(discriminator="kind")]


@pytest.mark.parametrize("lax", [False, True])
@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (Step, {"kind": "filter", "filter": [], "number": "x"}, "it.number"),
        (Step, {"kind": "filter", "filter": ["x"], "number": 1}, "it.filter[0]"),
        (list[Step | None], [None, {"kind": "filter", "filter": [], "number": "x"}], "it[1].number"),
        (int | Step, {"kind": "filter", "filter": [], "number": "x"}, "it.number"),
        (int | Names, {"int": 5, "str": 5}, "it.int"),
        (Names | list[int], {"int": "a", "str": "b", "Names": True}, "it.str"),
        (Names | Sort, {"int": "a", "str": 1, "Names": "x"}, "it.Names"),
        (dict[str, int], {"[key]": "x"}, 'it["[key]"]'),
        (dict[int, int], {"[key]": 1}, 'it["[key]"]'),
        (Derived, {"first": "x"}, "it.first"),
    ],
)
async def test_an_error_names_the_wrong_argument_alone(annotation: Any, value: Any, path: str, lax: bool) -> None:
    def tool(it: Any) -> None: ...

    tool.__annotations__["it"] = annotation
    with pytest.raises(ToolError) as raised:
        await call(tool, {"it": value}, lax=lax)
    (line,) = str(raised.value).splitlines()
    assert line.partition(": ")[0] == path


async def test_a_large_value_has_the_same_path() -> None:
    def tool(it: list[Step]) -> None: ...

    steps = [{"kind": "sort", "by": "a"}] * 2000
    with pytest.raises(ToolError) as raised:
        await call(tool, {"it": [*steps, {"kind": "filter", "filter": [], "number": "x"}]})
    assert str(raised.value) == "it[2000].number: must be an integer, not a string"


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (Annotated[set[int], Field(min_length=2)], [1, 1, 1], "it: must have at least 2 different items"),
        (Annotated[frozenset[int], Field(min_length=2)], [1, 1], "it: must have at least 2 different items"),
        (Annotated[set[int], Field(max_length=1)], [1, 1, 2], "it: must have at most 1 different item"),
        (Annotated[list[int], Field(max_length=1)], [1, 1], "it: must have at most 1 item"),
    ],
)
async def test_the_length_of_a_set_is_counted_without_duplicates(annotation: Any, value: Any, error: str) -> None:
    def tool(it: Any) -> None: ...

    tool.__annotations__["it"] = annotation
    with pytest.raises(ToolError) as raised:
        await call(tool, {"it": value})
    assert str(raised.value) == error


class Customer(BaseModel):
    """A customer.

    Attributes:
        name: The customer's
            full name.
    """

    name: str
    since: date
    level: Literal["basic", "plus"] = Field(description="   ")
    marks: list[int | None]
    extra: dict[str, int]
    both: int | str
    anything: Any


async def test_a_missing_argument_is_described_in_one_line() -> None:
    def tool(customer: Customer, customers: list[Customer], count: int, note: Annotated[str, "N" * 300]) -> None:
        """Register customers.

        Args:
            count: How many
                there are.
        """

    with pytest.raises(ToolError) as raised:
        await call(tool, {"customer": {}, "customers": [{"name": "", "since": "2026-07-28", "level": "plus"}]})
    assert str(raised.value).splitlines() == [
        "count: is required (an integer): How many there are.",
        f"note: is required (a string): {'N' * 200}...",
        "customer.name: is required (a string): The customer's full name.",
        "customer.since: is required (a date such as 2026-07-28)",
        'customer.level: is required (one of "basic" or "plus")',
        "customer.marks: is required (an array)",
        "customer.extra: is required (an object)",
        "customer.both: is required (an integer or a string)",
        "customer.anything: is required",
        "customers[0].marks: is required (an array)",
        "customers[0].extra: is required (an object)",
        "customers[0].both: is required (an integer or a string)",
        "customers[0].anything: is required",
    ]


async def test_members_of_unions_and_recursive_types_are_described_where_they_are_certain() -> None:
    class Node(BaseModel):
        label: str = Field(description="The label")
        children: list[Node] = []

    Node.model_rebuild(_types_namespace={"Node": Node})

    def tool(it: Node | int, pair: tuple[int, str]) -> None: ...

    with pytest.raises(ToolError) as raised:
        await call(tool, {"it": {"label": "a", "children": [{}]}, "pair": [1]})
    assert str(raised.value).splitlines() == [
        "it.children[0].label: is required (a string): The label",
        "pair[1]: is required (a string)",
    ]


async def test_a_missing_argument_of_a_hand_written_schema_is_described() -> None:
    schema = {
        "type": "object",
        "properties": {"order": {"$ref": "#/$defs/order"}},
        "required": ["order", "unknown"],
        "$defs": {
            "order": {
                "type": "object",
                "properties": {"id": {"type": "string", "description": "Its id"}},
                "required": ["id"],
            }
        },
    }

    def tool(arguments: dict[str, Any]) -> None: ...

    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"order": {}}, "order.id: is required (a string): Its id"),
        ({}, "order: is required"),
        ({}, "unknown: is required"),
    )
    for arguments, line in cases:
        with pytest.raises(ToolError) as raised:
            await call(tool, arguments, input_schema=schema)
        assert line in str(raised.value).splitlines()


async def test_a_missing_argument_of_a_prompt_is_described() -> None:
    mcp = MCPServer("Prompts")

    @mcp.prompt
    def praise(dish: Annotated[str, Field(description="What to praise")], times: int) -> str:
        return dish

    async with Client(mcp) as client:
        with pytest.raises(MCPError) as raised:
            await client.get_prompt("praise", {})
    assert str(raised.value).splitlines() == [
        "dish: is required (a string): What to praise",
        "times: is required (an integer)",
    ]
