# ruff: noqa: TC001 - tools are made of these hints at run time

from __future__ import annotations

from collections import deque
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Flag, IntEnum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Network
from pathlib import Path
from re import Pattern
from typing import Annotated, Any, ClassVar, Final, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AnyUrl,
    Base64Bytes,
    Base64UrlBytes,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Discriminator,
    EmailStr,
    FailFast,
    Field,
    IPvAnyAddress,
    IPvAnyNetwork,
    JsonValue,
    OnErrorOmit,
    StrictInt,
    Tag,
    TypeAdapter,
    WrapValidator,
    field_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from funcmcp._authoring.signatures.signature import Arguments
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.registry import RegistrationError
from tests.authoring.models import Address, Colour, CreateOrder, Level, Node, Point, Size
from tests.authoring.tool_calls import call, schema_of

pytestmark = [
    pytest.mark.every_python("Python's modules read signatures, annotations and docstrings."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]


def tag_of(value: Any) -> Any:
    return value.get("by") if isinstance(value, dict) else None


By = Annotated[Annotated[Size, Tag("size")] | Annotated[Point, Tag("point")], Discriminator(tag_of)]


class Number(IntEnum):
    ONE = 1


class Colours(Flag):
    RED = 1
    BLUE = 2


ID = "12345678-1234-5678-1234-567812345678"


def sold_out(_value: str) -> str:
    raise PydanticCustomError("sold_out", "is sold out")


async def given(annotation: Any, value: Any, **options: Any) -> Any:
    """Call a tool with one argument of a type and return what the function got."""
    got: list[Any] = []

    async def tool(it: Any) -> Any:
        got.append(it)

    tool.__annotations__ = {"it": annotation}
    await call(tool, {"it": value}, **options)
    return got[0]


@pytest.mark.parametrize(
    ("annotation", "value", "got"),
    [
        (int, 1, 1),
        (int, 1.0, 1),
        (int, 1e20, 10**20),
        (int, 10**30, 10**30),
        (float, 1, 1.0),
        (str, "5", "5"),
        (bool, True, True),
        (Decimal, 1.1, Decimal("1.1")),
        (Decimal, 3, Decimal(3)),
        (date, "2026-07-28", date(2026, 7, 28)),
        (datetime, "2026-07-28T12:00:00", datetime(2026, 7, 28, 12)),  # noqa: DTZ001 - what an author writes
        (time, "12:00:00", time(12)),
        (timedelta, "PT90M", timedelta(minutes=90)),
        (UUID, ID, UUID(ID)),
        (Colour, "red", Colour.RED),
        (Level, 2, Level.HIGH),
        (Level, 2.0, Level.HIGH),
        (Literal[1, "a"], 1, 1),
        (Literal[1, "a"], "a", "a"),
        (list[int], [1, 2.0], [1, 2]),
        (set[str], ["a", "a"], {"a"}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (dict[str, int], {"a": 1.0}, {"a": 1}),
        (Size, {"width": 1}, Size(1, None)),
        (Point, {"x": 1}, Point(1, None)),
        (Address, {"street": "s"}, {"street": "s", "city": None}),
        (Node, {"name": "a", "children": [{"name": "b"}]}, Node(name="a", children=[Node(name="b")])),
        (int | None, None, None),
        (int | str, "a", "a"),
        (Any, {"a": [1.0]}, {"a": [1.0]}),
        (bytes, "/+8=", b"\xff\xef"),
        (list[bytes], ["aGk="], [b"hi"]),
        (bytes | None, "aGk=", b"hi"),
        (Base64Bytes, "aGk=", b"hi"),
        (Base64UrlBytes, "_-8=", b"\xff\xef"),
        (Annotated[bytes, AfterValidator(bytes.upper)], "aGk=", b"HI"),
        (Annotated[bytes, Field(max_length=2)], "aGk=", b"hi"),
        (dict[int, str], {"17": "a", "-1": "b"}, {17: "a", -1: "b"}),
        (dict[float, int], {"1.5": 1, "2": 2}, {1.5: 1, 2.0: 2}),
        (dict[bool, int], {"true": 1}, {True: 1}),
        (dict[Decimal, int], {"1.1": 1}, {Decimal("1.1"): 1}),
        (dict[int, date], {"1": "2026-07-28"}, {1: date(2026, 7, 28)}),
        (dict[date, int], {"2026-07-28": 1}, {date(2026, 7, 28): 1}),
        (dict[Level, int], {"1": 1}, {Level.LOW: 1}),
        (dict[Literal[1, "a"], int], {"1": 1, "a": 2}, {1: 1, "a": 2}),
        (dict[int | str, int], {"1": 1}, {"1": 1}),
        (Annotated[str, Field(pattern="^a+$")], "aaa", "aaa"),
    ],
)
async def test_a_right_value_arrives_as_its_type(annotation: Any, value: Any, got: Any) -> None:
    arrived = await given(annotation, value)
    assert arrived == got
    assert type(arrived) is type(got)


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (int, "5", "it: must be an integer, not a string"),
        (int, True, "it: must be an integer, not a boolean"),
        (int, 1.5, "it: must be an integer, not a number with a fraction"),
        (int, None, "it: must be an integer, not null"),
        (float, "1", "it: must be a number, not a string"),
        (str, 5, "it: must be a string, not a number"),
        (str, {"a": 1}, "it: must be a string, not an object"),
        (bool, 1, "it: must be a boolean, not a number"),
        (Decimal, "1.5", "it: must be a number, not a string"),
        (date, 5, "it: must be a date such as 2026-07-28, not a number"),
        (date, "soon", "it: must be a date such as 2026-07-28"),
        (date, "0", "it: must be a date such as 2026-07-28"),
        (date, "86400", "it: must be a date such as 2026-07-28"),
        (datetime, "1700000000", "it: must be a date and time such as 2026-07-28T12:00:00Z"),
        (datetime, "2026-07-28", "it: must be a date and time such as 2026-07-28T12:00:00Z"),
        (datetime, "a-b:c", "it: must be a date and time such as 2026-07-28T12:00:00Z"),
        (datetime, 5, "it: must be a date and time such as 2026-07-28T12:00:00Z, not a number"),
        (time, "noon", "it: must be a time such as 12:00:00"),
        (timedelta, 5, "it: must be a duration such as PT1H30M, not a number"),
        (UUID, "x", "it: must be a UUID"),
        (EmailStr, "x", "it: must be an email address"),
        (Colour, "green", 'it: must be one of "red" or "blue"'),
        (Level, True, "it: must be one of 1 or 2"),
        (Literal[1, "a"], True, 'it: must be one of 1 or "a"'),
        (Literal[True], 1, "it: must be true"),
        (Literal[True, None, 1, "a"], "x", 'it: must be one of true, null, 1 or "a"'),
        (Literal[Colour.RED], "x", 'it: must be "red"'),
        (ByteSize, "12secret", "it: must be a size such as 10 MiB, or a number of bytes"),
        (By, {}, "it: fits none of its alternatives"),
        (By, {"by": "cow"}, "it: fits none of its alternatives"),
        (list[int], "a", "it: must be an array, not a string"),
        (list[int] | set[str], "a", "it: must be an array, not a string"),
        (Size | int, {"height": 1}, "it.width: is required (an integer)"),
        (IPv4Address, "x", "it: must be an IP address"),
        (ZoneInfo, "x/y", "it: must be a time zone such as Europe/Berlin"),
        (Annotated[str, AfterValidator(sold_out)], "soup", "it: is sold out"),
        (Pattern[str], "(", "it: must be a regular expression"),
        (set[int], {}, "it: must be an array, not an object"),
        (tuple[int, str], [1], "it[1]: is required (a string)"),
        (dict[str, int], [], "it: must be an object, not an array"),
        (Size, [], "it: must be an object, not an array"),
        (Address, 5, "it: must be an object, not a number"),
        (Node, "a", "it: must be an object, not a string"),
        (int | str, [], "it: must be an integer or a string, not an array"),
        (Annotated[int, Field(ge=1)], 0, "it: must be at least 1"),
        (Annotated[int, Field(gt=1)], 1, "it: must be greater than 1"),
        (Annotated[int, Field(le=1)], 2, "it: must be at most 1"),
        (Annotated[int, Field(lt=1)], 1, "it: must be less than 1"),
        (Annotated[int, Field(multiple_of=2)], 3, "it: must be a multiple of 2"),
        (Annotated[str, Field(min_length=2)], "a", "it: must have at least 2 characters"),
        (Annotated[str, Field(max_length=2)], "abc", "it: must have at most 2 characters"),
        (Annotated[str, Field(pattern="^a+$")], "b", "it: must match the pattern ^a+$"),
        (Annotated[list[int], Field(min_length=1)], [], "it: must have at least 1 item"),
        (Annotated[list[int], Field(max_length=1)], [1, 2], "it: must have at most 1 item"),
    ],
)
async def test_a_wrong_value_is_told_in_plain_words(annotation: Any, value: Any, words: str) -> None:
    with pytest.raises(ToolError) as refused:
        await given(annotation, value)
    assert str(refused.value) == words


async def test_all_errors_are_reported_together_with_their_paths() -> None:
    def create_order(request: Arguments[CreateOrder]) -> None: ...

    with pytest.raises(ToolError) as refused:
        await call(
            create_order,
            {"items": [{"itemId": 5, "quantity": 0}, {"quantity": "1"}], "priority": "now", "discountPercent": 101},
        )
    assert str(refused.value).splitlines() == [
        "customerId: is required (a string): The customer's unique identifier",
        "items[0].itemId: must be a string, not a number",
        "items[0].quantity: must be at least 1",
        "items[1].itemId: is required (a string): Menu item ID",
        "items[1].quantity: must be an integer, not a string",
        'priority: must be one of "low", "normal", "high" or "urgent"',
        "discountPercent: must be at most 100",
    ]


async def test_a_refusal_repeats_nothing_of_the_input_and_names_no_library() -> None:
    with pytest.raises(ToolError) as refused:
        await given(list[Node], [{"name": ["secret-of-the-house"]}, "secret-of-the-house"])
    assert "secret" not in str(refused.value)
    assert "pydantic" not in str(refused.value).lower()
    assert "http" not in str(refused.value)


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (bytes, "aGk", "it: must be base64"),
        (list[bytes], ["aGk=", "ü"], "it[1]: must be base64"),
        (bytes, 5, "it: must be a string, not a number"),
        (Annotated[bytes, Field(max_length=2)], "aGlo", "it: must have at most 2 bytes"),
        (dict[int, int], {"a": 1}, "it.a: the name must be an integer"),
        (dict[int, int], {"1.5": 1}, 'it["1.5"]: the name must be an integer'),
        (dict[bool, int], {"2": 1}, 'it["2"]: the name must be a boolean'),
        (dict[Level, int], {"3": 1}, 'it["3"]: the name must be one of 1 or 2'),
    ],
)
@pytest.mark.parametrize("lax", [False, True])
async def test_text_that_is_no_base64_and_names_that_are_no_numbers_are_refused(
    annotation: Any, value: Any, words: str, lax: bool
) -> None:
    with pytest.raises(ToolError) as refused:
        await given(annotation, value, lax=lax)
    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("annotation", "value", "got"),
    [
        (Literal[Colour.RED], "red", Colour.RED),
        (Literal[1, True], True, True),
        (Literal["a", None], None, None),
    ],
)
async def test_an_option_of_a_literal_arrives_as_it_is(annotation: Any, value: Any, got: Any) -> None:
    arrived = await given(annotation, value)
    assert (type(arrived), arrived) == (type(got), got)


Text = TypeAliasType("Text", Annotated[str, Field(max_length=40)])


class Choice(BaseModel):
    first: date | Text
    second: date | Text
    name: Text


@pytest.mark.parametrize("lax", [False, True])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (bytes, "test"),
        (Base64Bytes, "aGk="),
        (date, "2026-07-28"),
        (datetime, "2026-07-28T12:00:00Z"),
        (time, "12:00:00"),
        (timedelta, "PT90M"),
        (UUID, ID),
        (Colour, "red"),
        (IPv4Address, "127.0.0.1"),
        (Path, "a"),
        (Pattern[str], "a"),
        (Fraction, "1/3"),
        (complex, "1+2j"),
        (AnyUrl, "https://example.com/"),
    ],
)
async def test_text_stays_text_in_a_union_with_str(kind: Any, text: str, lax: bool) -> None:
    for annotation in (kind | str, str | kind, str | kind | None, Annotated[str, Field(max_length=40)] | kind):
        arrived = await given(annotation, text, lax=lax)
        assert (type(arrived), arrived) == (str, text)
    assert await given(list[kind | str], [text], lax=lax) == [text]
    assert await given(dict[str, kind | str], {"a": text}, lax=lax) == {"a": text}


@pytest.mark.parametrize("lax", [False, True])
async def test_text_stays_text_in_a_union_with_an_alias_of_str(lax: bool) -> None:
    day = "2026-07-28"
    arrived = await given(Choice, {"first": day, "second": day, "name": "a"}, lax=lax)
    assert arrived == Choice(first=day, second=day, name="a")
    assert type(arrived.first) is type(arrived.second) is str


async def test_text_that_str_rejects_goes_to_the_other_members_of_a_union() -> None:
    assert await given(date | Annotated[str, Field(max_length=4)], "2026-07-28") == date(2026, 7, 28)


@pytest.mark.parametrize("lax", [False, True])
@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Any | datetime, "2026-07-28T12:00:00Z"),
        (Any | bytes, "a text"),
        (Any | Decimal, 5),
        (Decimal | int, 5),
        (int | Decimal, 5),
        (Decimal | float, 5.5),
        (int | bytes | ByteSize, 8),
        (Number | int, 1),
        (int | Number, 1),
        (Level | int, 2),
        (date | datetime, "2026-07-28"),
        (datetime | date, "2026-07-28T12:00:00Z"),
        (Literal[1] | Decimal, 1),
        (int | float, 5),
        (bytes | None, None),
    ],
)
async def test_a_union_takes_the_member_that_pydantic_takes(annotation: Any, value: Any, lax: bool) -> None:
    arrived = await given(annotation, value, lax=lax)
    expected = TypeAdapter(annotation).validate_python(value)
    assert (type(arrived), arrived) == (type(expected), expected)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Bird(BaseModel):
    kind: Literal["bird"]
    lives: int


class Named(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (Cat | Dog, {"kind": "cat"}, "it.lives: is required (an integer)"),
        (Cat | Dog, {"kind": "dog", "tricks": [1]}, "it.tricks[0]: must be a string, not a number"),
        (
            list[Cat | Dog],
            [{"kind": "cat"}, {"kind": "dog"}],
            "it[0].lives: is required (an integer)\nit[1].tricks: is required (an array)",
        ),
        (Cat | Dog | int, "a", "it: must be an object or an integer, not a string"),
        (Cat | Dog, {"kind": "cow"}, 'it.kind: must be "cat" or "dog"'),
        (Cat | Dog, {"kind": "cow", "tricks": []}, 'it.kind: must be "cat" or "dog"'),
        (list[Cat | Dog], [{"kind": "cow"}], 'it[0].kind: must be "cat" or "dog"'),
        (
            Cat | Dog,
            {},
            (
                "it: fits none of its alternatives: kind is required, lives is required; "
                "or kind is required, tricks is required"
            ),
        ),
        (Cat | Bird, {}, 'it.kind: is required ("cat" or "bird")\nit.lives: is required (an integer)'),
        (Literal["a"] | Literal[1], "b", 'it: must be "a" or 1'),
        (int | str, True, "it: must be an integer or a string, not a boolean"),
        (ByteSize, "1 x y", "it: must be a size such as 10 MiB, or a number of bytes"),
        (ByteSize, "x", "it: must be a size such as 10 MiB, or a number of bytes"),
        (ByteSize, -1, "it: must be a size such as 10 MiB, or a number of bytes"),
        (dict[int, str], {"17.0": "a"}, 'it["17.0"]: the name must be an integer'),
        (dict[int, str], {"+17": "a"}, 'it["+17"]: the name must be an integer'),
        (int | Named | list[Named], [{"name": 1}], "it[0].name: must be a string, not a number"),
        (Named | Size, {}, "it: fits none of its alternatives: name is required; or width is required"),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {}, 'it.kind: is required (one of "cat" or "dog")'),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "cow"}, 'it.kind: must be one of "cat" or "dog"'),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "cat"}, "it.lives: is required (an integer)"),
        (float, 10**400, "it: must be a number that is not that large"),
        (Literal["a"], "b", 'it: must be "a"'),
    ],
)
async def test_of_a_union_the_member_that_was_meant_is_told(annotation: Any, value: Any, words: str) -> None:
    with pytest.raises(ToolError) as refused:
        await given(annotation, value)
    assert str(refused.value) == words


async def test_many_errors_are_cut_short() -> None:
    with pytest.raises(ToolError) as refused:
        await given(list[int], ["a"] * 50)
    lines = str(refused.value).splitlines()
    assert len(lines) == 21
    assert lines[0] == "it[0]: must be an integer, not a string"
    assert lines[-1] == "and 30 more"
    with pytest.raises(ToolError, match="1200 errors"):
        await given(list[int | bool], ["a"] * 600)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[int], ["a"] * 2000),
        (set[int], ["a"] * 2000),
        (frozenset[int], ["a"] * 2000),
        (deque[int], ["a"] * 2000),
        (tuple[int, ...], ["a"] * 2000),
        (list[list[int]], [["a"]] * 2000),
        (dict[str, int], {str(number): "a" for number in range(2000)}),
        (list[Node | Size], [{"title": 1}] * 2000),
    ],
)
async def test_a_large_collection_ends_at_its_first_wrong_item(annotation: Any, value: Any) -> None:
    """All errors of 4 MiB of wrong items would take seconds and gigabytes."""
    with pytest.raises(ToolError) as refused:
        await given(annotation, value)
    said = str(refused.value)
    assert "it[0]" in said or 'it["0"]' in said
    assert "it[1]" not in said
    assert 'it["1"]' not in said


async def test_arguments_beside_a_large_wrong_list_are_reported_with_it() -> None:
    async def tool(many: list[int], name: str) -> None: ...

    with pytest.raises(ToolError) as refused:
        await call(tool, {"many": ["a"] * 2000, "name": 1})
    assert str(refused.value).splitlines() == [
        "many[0]: must be an integer, not a string",
        "name: must be a string, not a number",
    ]


async def test_many_arguments_of_a_tool_without_any_are_cut_short() -> None:
    async def tool() -> None: ...

    with pytest.raises(ToolError) as refused:
        await call(tool, {f"a{number}": 1 for number in range(100_000)})
    assert str(refused.value).splitlines()[-1] == "and 980 more"


async def test_an_author_s_own_check_says_its_own_words() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("odd numbers are sold out")
            assert value < 100, "that is too many"
            return value

    with pytest.raises(ToolError, match=r"^it.number: odd numbers are sold out$"):
        await given(Even, {"number": 1})
    with pytest.raises(ToolError, match=r"^it.number: that is too many"):
        await given(Even, {"number": 100})


async def test_lax_tools_take_what_can_be_converted() -> None:
    assert await given(int, "5", lax=True) == 5
    assert await given(Decimal, "1.5", lax=True) == Decimal("1.5")
    assert await given(str | None, None, lax=True) is None
    with pytest.raises(ToolError, match=r"^it: must be an integer$"):
        await given(int, "five", lax=True)


async def test_an_empty_text_is_none_in_a_lax_tool_where_no_text_is_valid() -> None:
    kinds: list[Any] = [bool, date, datetime, Decimal, float, int, time, timedelta, UUID, Annotated[int, Field(ge=3)]]
    for kind in kinds:
        assert await given(kind | None, "", lax=True) is None, kind
    for kind in (str, Literal[""], int | str):
        assert await given(kind | None, "", lax=True) == "", kind
    with pytest.raises(ToolError):
        await given(int | None, "")


async def test_a_closed_model_refuses_other_names() -> None:
    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")
        a: int

    def tool(closed: Arguments[Closed], other: int) -> int:
        return closed.a + other

    assert (await call(tool, {"a": 1, "other": 2}))["structuredContent"] == {"result": 3}
    with pytest.raises(ToolError) as refused:
        await call(tool, {"b": 1})
    assert sorted(str(refused.value).splitlines()) == [
        "a: is required (an integer)",
        "b: is not an argument",
        "other: is required (an integer)",
    ]


async def test_defaults_and_aliases_reach_the_function() -> None:
    def tool(
        a: int = 3,
        b: Annotated[int, Field(alias="bee")] = 4,
        c: int = Field(5, ge=0),
        d: str | None = "d",
        *,
        e: str | None,
    ) -> dict[str, Any]:
        return {"a": a, "b": b, "c": c, "d": d, "e": e}

    assert (await call(tool))["structuredContent"] == {"a": 3, "b": 4, "c": 5, "d": "d", "e": None}
    given = {"a": 1, "bee": 2, "c": 3, "d": None, "e": "e"}
    assert (await call(tool, given))["structuredContent"] == {"a": 1, "b": 2, "c": 3, "d": None, "e": "e"}


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (Annotated[str | None, Field(default=None, description="The order")], "date"),
        (Annotated[int | None, Field(5, ge=3)], None),
        (Annotated[list[int], Field(default_factory=list)], [2]),
    ],
)
async def test_a_parameter_s_default_takes_the_place_of_that_of_its_annotation(annotation: Any, default: Any) -> None:
    def search(sort: Any = default) -> dict[str, Any]:
        return {"sort": sort}

    search.__annotations__["sort"] = annotation
    assert (await call(search))["structuredContent"] == {"sort": default}


async def test_the_first_of_several_names_is_shown_and_all_are_taken() -> None:
    def tool(a: Annotated[int, Field(validation_alias=AliasChoices("one", "uno"))]) -> int:
        return a

    assert list(schema_of(tool)["properties"]) == ["one"]
    for name in ("one", "uno"):
        assert (await call(tool, {name: 1}))["structuredContent"] == {"result": 1}


async def test_a_default_that_is_checked_needs_no_conversion() -> None:
    class Bill(BaseModel):
        model_config = ConfigDict(validate_default=True)
        total: Decimal = Decimal("1.5")
        paid: datetime = datetime(2026, 7, 28)  # noqa: DTZ001 - what an author writes
        level: Level = Level.LOW

    assert await given(Bill, {}) == Bill()


async def test_a_compiled_pattern_keeps_its_flags_and_is_linear() -> None:
    import re

    pattern = Annotated[str, Field(pattern=re.compile("^(a+)+$", re.IGNORECASE))]
    assert await given(pattern, "AAA") == "AAA"
    with pytest.raises(ToolError, match="pattern"):
        await given(pattern, "a" * 5000 + "b")


async def test_a_date_in_the_wrong_half_of_time_is_told() -> None:
    from pydantic import FutureDate, PastDate

    with pytest.raises(ToolError, match=r"^it: must be in the future$"):
        await given(FutureDate, "2000-01-01")
    with pytest.raises(ToolError, match=r"^it: must be in the past$"):
        await given(PastDate, "9000-01-01")


class SameAlias(BaseModel):
    first: int = Field(alias="number")
    second: int = Field(alias="number")


class AliasOfAnotherField(BaseModel):
    first: int = Field(alias="second")
    second: int


class ExchangedAliases(BaseModel):
    first: int = Field(alias="second")
    second: int = Field(alias="first")


@pytest.mark.parametrize(
    ("annotation", "name"),
    [(SameAlias, "number"), (list[SameAlias], "number"), (AliasOfAnotherField, "second")],
)
def test_two_fields_with_one_name_in_json_are_refused(annotation: Any, name: str) -> None:
    def count(it: annotation) -> None: ...

    with pytest.raises(RegistrationError, match=f"'it' of count has two fields with the name '{name}' in JSON"):
        schema_of(count)


def test_two_parameters_with_one_alias_are_refused() -> None:
    def count(a: Annotated[int, Field(alias="z")], b: Annotated[int, Field(alias="z")]) -> None: ...

    with pytest.raises(RegistrationError, match="two fields with the name 'z' in JSON"):
        schema_of(count)


async def test_exchanged_aliases_are_different_names() -> None:
    def difference(it: ExchangedAliases) -> int:
        return it.first - it.second

    result = await call(difference, {"it": {"first": 1, "second": 5}})
    assert result["structuredContent"] == {"result": 4}


class Fallback(BaseModel):
    n: int = 1

    @field_validator("n", mode="wrap")
    @classmethod
    def one_if_wrong(cls, value: Any, handler: Any) -> Any:
        try:
            return handler(value)
        except ValueError:
            return 1


class Whole(BaseModel):
    n: int


class Fractional(BaseModel):
    n: float


@pytest.mark.parametrize("lax", [False, True])
@pytest.mark.parametrize(
    ("annotation", "value", "got"),
    [
        (Any, {"v": 2.0}, {"v": 2.0}),
        (JsonValue, {"v": [2.0, 1e16]}, {"v": [2.0, 1e16]}),
        (dict[str, Any], {"v": 2.0}, {"v": 2.0}),
        (list, [2.0], [2.0]),
        (object, 1e16, 1e16),
        (float, 2.0, 2.0),
        (int | float, 2.0, 2.0),
        (str | float | int, 2.0, 2.0),
        (list[int] | list[float], [1.0, 2], [1.0, 2.0]),
        (list[int] | list[Any], [1.0, 2], [1.0, 2]),
        (Whole | Fractional, {"n": 5.0}, Fractional(n=5.0)),
        (int | str, 2.0, 2),
        (int | None, 2.0, 2),
        (list[int], [1.0, 2], [1, 2]),
        (tuple[int, float], [1.0, 2.0], (1, 2.0)),
        (dict[int, int], {"1": 2.0}, {1: 2}),
        (set[int], [2.0, 2], {2}),
        (deque[int], [2.0], deque([2])),
        (int | float, 1e20, 1e20),
        (Annotated[int, Field(ge=2, multiple_of=2)], 4.0, 4),
        (StrictInt, 4.0, 4),
        (Literal[1, 2], 2.0, 2),
        (Number, 1.0, Number.ONE),
        (Colours, 3.0, Colours.RED | Colours.BLUE),
        (ByteSize, 1024.0, ByteSize(1024)),
        (list[OnErrorOmit[int]], [1.0, "x", 2], [1, 2]),
        (Fallback, {"n": 5.0}, Fallback(n=5)),
        (Annotated[int, WrapValidator(lambda value, handler: handler(value))], 5.0, 5),
        (Annotated[int, BeforeValidator(lambda value: value)], 5.0, 5),
    ],
)
async def test_a_whole_number_is_an_integer_only_where_the_type_is_one(
    annotation: Any, value: Any, got: Any, lax: bool
) -> None:
    """Another argument is 5.0 for an integer, which must not change how this one is read."""
    received: list[Any] = []

    async def tool(number: int, it: Any) -> None:
        received.extend([number, it])

    tool.__annotations__ = {"number": int, "it": annotation}
    await call(tool, {"number": 5.0, "it": value}, lax=lax)
    assert received == [5, got]
    assert (type(received[0]), type(received[1])) == (int, type(got))
    assert repr(received[1]) == repr(got)


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (int, 5.5, "it: must be an integer, not a number with a fraction"),
        (int, "5", "it: must be an integer, not a string"),
        (int, True, "it: must be an integer, not a boolean"),
        (Annotated[int, Field(ge=1)], 0.0, "it: must be at least 1"),
        (Annotated[int, Field(ge=1)], 0, "it: must be at least 1"),
        (bool, 1.0, "it: must be a boolean, not a number"),
        (dict[int, int], {"1.0": 1}, 'it["1.0"]: the name must be an integer'),
    ],
)
async def test_what_is_no_whole_number_is_refused(annotation: Any, value: Any, words: str) -> None:
    with pytest.raises(ToolError) as refused:
        await given(annotation, value)
    assert str(refused.value) == words


async def test_validators_run_once_for_a_whole_number() -> None:
    runs: list[Any] = []

    class Counted(BaseModel):
        n: int

        @field_validator("n", mode="before")
        @classmethod
        def counted(cls, value: Any) -> Any:
            runs.append(value)
            return value

    assert await given(Counted, {"n": 5.0}) == Counted.model_construct(n=5)
    assert runs == [5.0]


@pytest.mark.parametrize("qualified", [Final[int], ClassVar[int], Final])
def test_a_type_that_only_variables_can_have_is_refused_with_the_parameter(qualified: Any) -> None:
    def tool(it: Any = 3) -> None: ...

    tool.__annotations__ = {"it": qualified}
    with pytest.raises(RegistrationError, match=r"The parameter 'it' of tool has the type .*, which only variables"):
        schema_of(tool)


def test_a_mark_that_another_framework_evaluates_is_refused_in_an_argument() -> None:
    """FastMCP 4.2.3 and the SDK 2.3.0 let clients pass the value, such as the user that Depends would find."""

    def mark(name: str, module: str = "fastapi.params") -> Any:
        return type(name, (type("Base", (), {}),), {"__module__": module})()

    marks: list[tuple[Any, Any]] = [
        (str, mark("Depends")),
        (Annotated[str | None, mark("Header")], None),
        (str, mark("Cookie")),
        (str, mark("Dependency", "uncalled_for.base")),
    ]
    for annotation, default in marks:

        def tool(it: Any = default) -> None: ...

        tool.__annotations__ = {"it": annotation}
        with pytest.raises(RegistrationError, match=r"The parameter 'it' of tool has \w+\(...\) of \w+, which is not"):
            schema_of(tool)


@pytest.mark.parametrize("kind", [Pattern[bytes], list[Pattern[bytes]]])
def test_a_pattern_of_bytes_is_refused_when_it_is_described(kind: Any) -> None:
    def tool(it: Any) -> None: ...

    tool.__annotations__ = {"it": kind}
    with pytest.raises(RegistrationError, match=r"a regular expression for bytes.* Use re\.Pattern\[str\]"):
        schema_of(tool)


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (
            IPv6Network,
            "2001:db8::/3",
            "it: must be an IP network whose bits after the prefix are 0, such as 10.0.0.0/8",
        ),
        (IPvAnyAddress, 1e22, "it: must be a string, not a number"),
        (IPvAnyNetwork, 5, "it: must be a string, not a number"),
    ],
)
async def test_an_address_is_a_text(kind: Any, value: Any, words: str) -> None:
    with pytest.raises(ToolError) as refused:
        await given(kind, value)
    assert str(refused.value) == words


async def test_marks_may_be_unhashable() -> None:
    def tool(it: list[int]) -> list[int]:
        return it

    marked = Annotated[list[int], FailFast()]
    tool.__annotations__ = {"it": marked, "return": marked}
    assert (await call(tool, {"it": [1]}))["structuredContent"] == {"result": [1]}
