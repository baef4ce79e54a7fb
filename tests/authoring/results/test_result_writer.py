"""Results are serialized once, not validated again, and checked against what was announced."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar

import pytest
from pydantic import (
    AfterValidator,
    AwareDatetime,
    Base64Bytes,
    Base64Str,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    EmailStr,
    Field,
    Json,
    JsonValue,
    PlainSerializer,
    RootModel,
    WithJsonSchema,
    WrapSerializer,
    computed_field,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)
from typing_extensions import TypedDict

from funcmcp._authoring.results.result_writer import ResultWriter
from funcmcp._authoring.schemas.string_formats import Format
from funcmcp._protocol.codec import decode
from tests.authoring.tool_calls import call, tool_of

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")

T = TypeVar("T")


def double(value: int) -> int:
    return value * 2


def written(annotation: Any, value: Any) -> Any:
    """Return the JSON value that is written for a returned value."""
    return decode(ResultWriter(annotation, "it").write(value))


class Doubled(BaseModel):
    number: Annotated[int, AfterValidator(double)]


class DoubledAndNamed(BaseModel):
    doubled: Doubled
    name: str = "n"


@dataclass
class Renamed:
    name: Annotated[str, AfterValidator(str.upper)]


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: Annotated[int, AfterValidator(double)]


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    age: Annotated[int, AfterValidator(double)]


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Counted(BaseModel):
    names: list[str] = []

    @field_validator("names")
    @classmethod
    def add(cls, names: list[str]) -> list[str]:
        return [*names, "validated"]


class Checked(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def in_order(self) -> Checked:
        assert self.low <= self.high
        return self


class Priced(BaseModel):
    price: float

    @field_serializer("price")
    def in_cents(self, price: float) -> int:
        return round(price * 100)


class Squared(BaseModel):
    side: int

    @computed_field
    def area(self) -> int:
        return self.side**2


class Short(BaseModel):
    a: int = 1
    b: str | None = None

    @model_serializer(mode="wrap")
    def without_none(self, handler):  # type: ignore[no-untyped-def] # authors often leave the type out
        return {name: value for name, value in handler(self).items() if value is not None}


class Aliased(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)
    number: int = Field(validation_alias="in", serialization_alias="out")


class Stream(BaseModel):
    items: str | Iterable[Decimal]
    payload: bytes


class Base(BaseModel):
    name: str


class Derived(Base):
    password: str = "secret"
    note: str = "n"


class Page(BaseModel, Generic[T]):
    items: list[T]


class Hidden(BaseModel):
    name: str
    key: str = Field(default="k", exclude=True)


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: Decimal = Decimal("1.5")


@dataclass
class Item:
    name: str
    tags: list[str] = field(default_factory=list)


@dataclass
class Special(Item):
    extra: int = 5


class Numbers(RootModel[list[int]]):
    pass


class Left(TypedDict):
    below: Left | Right | None
    left: int


class Right(TypedDict):
    below: Left | Right | None
    right: int


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (Annotated[int, AfterValidator(double)], 2, 2),
        (list[Annotated[int, AfterValidator(double)]], [2], [2]),
        (Annotated[int, BeforeValidator(double)], 2, 2),
        (Doubled, Doubled(number=2), {"number": 4}),
        (Counted, Counted(names=["a"]), {"names": ["a", "validated"]}),
        (Counted, Counted(), {"names": []}),
        (Json[list[int]], [1], [1]),
        (Base64Str | int, "abc", "YWJj"),
        (list[Base64Bytes | None], [b"abc", None], ["YWJj", None]),
        (list[Base64Str], ["abc"], ["YWJj"]),
        (Checked, Checked.model_construct(low=2, high=1), {"low": 2, "high": 1}),
    ],
)
def test_no_validator_runs_on_an_object_of_the_type(annotation: Any, value: Any, result: Any) -> None:
    assert written(annotation, value) == result


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (Doubled, {"number": 2}, {"number": 4}),
        (list[Doubled], [{"number": 2}], [{"number": 4}]),
        (Counted, {"names": ["a"]}, {"names": ["a", "validated"]}),
        (Short, {"a": 2}, {"a": 2}),
        (Base, {"name": "a", "password": "b"}, {"name": "a"}),
        (Derived, {"name": "a"}, {"name": "a", "password": "secret", "note": "n"}),
        (Item, {"name": "a"}, {"name": "a", "tags": []}),
        (Squared, {"side": 2}, {"side": 2, "area": 4}),
        (Squared, {"side": 2, "area": 9}, {"side": 2, "area": 4}),
        (Priced, {"price": 1.5}, {"price": 150}),
        (Aliased, {"in": 1}, {"out": 1}),
        (Pair, (1, 2), {"left": 1, "right": 2}),
        (Pair, {"left": 1}, {"left": 1, "right": 1.5}),
        (dict[int, str], {"1": "a"}, {"1": "a"}),
        (frozenset[int], [1, 1], [1]),
        (Numbers, [1, 2], [1, 2]),
        (Hidden, {"name": "a", "key": "b"}, {"name": "a"}),
        (Page[Item], {"items": [{"name": "a"}]}, {"items": [{"name": "a", "tags": []}]}),
        (datetime, "2026-07-28T12:00:00Z", "2026-07-28T12:00:00Z"),
        (timedelta, "P1D", "P1D"),
        (bytes | int, "YWJj", "YWJj"),
    ],
)
def test_a_value_of_another_shape_is_read_once(annotation: Any, value: Any, result: Any) -> None:
    assert written(annotation, value) == result


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (DoubledAndNamed, {"doubled": Doubled(number=2)}, {"doubled": {"number": 4}, "name": "n"}),
        (DoubledAndNamed | None, {"doubled": Doubled(number=2)}, {"doubled": {"number": 4}, "name": "n"}),
        (list[Doubled], (Doubled(number=2), {"number": 2}), [{"number": 4}, {"number": 4}]),
        (list[DoubledAndNamed], [{"doubled": Doubled(number=2)}], [{"doubled": {"number": 4}, "name": "n"}]),
        (set[Pair] | list[Renamed], (Renamed("a"),), [{"name": "a"}]),
        (Owner, {"pet": Cat(lives=2)}, {"pet": {"kind": "cat", "lives": 4}}),
        (
            list[Owner],
            ({"pet": {"kind": "dog", "age": 1}}, Owner(pet=Dog(age=2))),
            [{"pet": {"kind": "dog", "age": 2}}, {"pet": {"kind": "dog", "age": 4}}],
        ),
        (Derived, {"name": "a"}, {"name": "a", "password": "secret", "note": "n"}),
    ],
)
def test_no_validator_runs_on_an_object_inside_a_value_of_another_shape(
    annotation: Any, value: Any, result: Any
) -> None:
    assert written(annotation, value) == result


@dataclass
class Found:
    count: int


@dataclass
class Missing:
    reason: str = "not found"


@dataclass
class Other:
    other: int = 1


class MissingModel(BaseModel):
    reason: str = "not found"


class OtherModel(BaseModel):
    x: int = 1


class Reply(BaseModel):
    outcome: Found | Missing
    note: Any = None


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (Found | Missing, Found(None), "count must be an integer, not null"),  # type: ignore[arg-type] # wrong on purpose
        (Found | Missing, Found("3"), "count must be an integer, not a string"),  # type: ignore[arg-type] # as above
        (Found | Missing, Found(Decimal(3)), "count must be an integer, not a string"),  # type: ignore[arg-type] # as above
        (Missing | Found, Found(None), "count must be an integer, not null"),  # type: ignore[arg-type] # as above
        (Found | Missing | None, Found(None), "count must be an integer, not null"),  # type: ignore[arg-type] # as above
        (list[Found | Missing], [Found(None)], r"\[0\] does not fit"),  # type: ignore[arg-type] # as above
        (list[Found | Missing], ({"count": 1}, Found(None)), r"\[1\] does not fit"),  # type: ignore[arg-type] # as above
        (
            Found | Missing,
            Other(),
            "tests.authoring.results.test_result_writer.Other. Return Found or Missing, or a dict.",
        ),
        (Missing, Other(), "Other. Return Missing, or a dict."),
        (Missing | None, Other(), "Other. Return Missing, or a dict."),
        (MissingModel, OtherModel(), "OtherModel. Return MissingModel, or a dict."),
        (MissingModel | Found, OtherModel(), "OtherModel. Return Found or MissingModel, or a dict."),
        (list[Found | Missing], [Other()], "Other. Return Found or Missing, or a dict."),
        (dict[str, Missing], {"a": Other()}, "Other. Return Missing, or a dict."),
        (Reply, {"outcome": Other()}, "Other. Return Found or Missing or Reply, or a dict."),
        (Derived, Base(name="a"), "Base. Return Derived, or a dict."),
        (list[Item], (Base(name="a"),), "Base. Return Item, or a dict."),
        (Found | Movie, {"title": Other()}, "Other. Return Found, or a dict."),
    ],
)
def test_an_object_is_never_written_as_another_class(annotation: Any, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=f"it returned what its annotation does not allow: .*{reason}"):
        written(annotation, value)


@dataclass
class Twin:
    count: int


class Box(BaseModel):
    data: dict[str, Any]
    numbers: list[int] = []


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (Found | Missing, Found(3), {"count": 3}),
        (Found | Missing, {"count": 3}, {"count": 3}),
        (Found | Missing, Twin(3), {"count": 3}),
        (list[Found | Missing], [Twin(3), {"reason": "a"}], [{"count": 3}, {"reason": "a"}]),
        (tuple[Found, Any], [{"count": 1}, {"a": [Other(2)]}], [{"count": 1}, {"a": [{"other": 2}]}]),
        (
            tuple[Found, dict[Any, Any], list[Any]],
            [{"count": 1}, {"a": Other(2)}, [Other(3)]],
            [{"count": 1}, {"a": {"other": 2}}, [{"other": 3}]],
        ),
        (Reply, {"outcome": Found(1), "note": Other(2)}, {"outcome": {"count": 1}, "note": {"other": 2}}),
        (dict[str, Any], Other(2), {"other": 2}),
        (Box, {"data": Other(2), "numbers": Numbers([1])}, {"data": {"other": 2}, "numbers": [1]}),
        (tuple[Found, dict[str, int]], [Found(1), Found(2)], [{"count": 1}, {"count": 2}]),
        (Found | dict[str, int], Other(2), {"other": 2}),
    ],
)
def test_an_object_with_the_same_fields_and_any_object_under_any_are_written(
    annotation: Any, value: Any, result: Any
) -> None:
    assert written(annotation, value) == result


class Chain(BaseModel):
    name: str
    inner: Chain | Missing | None = None


def test_a_changed_object_of_a_class_that_contains_itself_is_read_as_that_class() -> None:
    chain = Chain(name="a")
    chain.inner = {"name": "b"}  # type: ignore[assignment] # an author assigns without validation
    assert written(Chain | Missing, chain) == {"name": "a", "inner": {"name": "b", "inner": None}}
    chain.name = None  # type: ignore[assignment] # as above
    with pytest.raises(ValueError, match="name must be a string, not null"):
        written(Chain | Missing, chain)


@pytest.mark.parametrize("annotation", [datetime, datetime | None, list[datetime], date])
@pytest.mark.parametrize("value", ["3", "1785196800", Decimal("1.5")])
def test_a_number_never_becomes_a_date(annotation: Any, value: Any) -> None:
    with pytest.raises(ValueError, match="must be a date"):
        written(annotation, [value] if annotation == list[datetime] else value)


def test_texts_in_iso_8601_are_dates() -> None:
    assert written(date, "2026-07-28") == "2026-07-28"
    assert written(list[AwareDatetime], ["2026-07-28T12:00:00Z"]) == ["2026-07-28T12:00:00Z"]
    with pytest.raises(ValueError, match="must be a date such as"):
        written(date, 3)


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (Annotated[int, WithJsonSchema({"type": "integer", "multipleOf": 2})], 3, "must be a multiple of 2"),
        (dict[str, Annotated[str, WithJsonSchema({"type": "integer"})]], {"a": "b"}, "a must be an integer"),
        (list[Annotated[int, Field(json_schema_extra={"maximum": 2})]], [3], r"\[0\] must be at most 2"),
    ],
)
def test_a_result_is_checked_against_a_schema_of_the_author(annotation: Any, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=f"does not allow: {reason}"):
        written(annotation, value)


def test_a_json_value_is_written_as_any_value_is() -> None:
    assert written(dict[str, JsonValue], {"all": iter([1, 2]), "none": None}) == {"all": [1, 2], "none": None}


def test_an_iterator_that_cannot_be_read_again_is_an_error() -> None:
    with pytest.raises(ValueError, match="generator inside another value can be read only once"):
        written(dict[str, Any], {"items": (number for number in (1, 2)), "text": "\ud800"})


NAN = float("nan")


@pytest.mark.parametrize(
    ("annotation", "value", "place"),
    [
        (
            dict[str, Any],
            {"b": NAN, "z": object()},
            "the value at z that can't be written as JSON: JSON can't carry object.",
        ),
        (list[dict[str, Any]], [{"b": NAN}, {"b": NAN, "z": object()}], r"the value at \[1\].z"),
        (dict, {"b": [NAN], "z": [1, object()]}, r"the value at z\[1\] that"),
        (Reply, Reply(outcome=Found(1), note={"b": NAN, "z": object()}), "the value at note.z that"),
    ],
)
def test_an_error_beside_a_nan_names_the_value_that_cannot_be_written(annotation: Any, value: Any, place: str) -> None:
    with pytest.raises(ValueError, match=f"it returned {place}"):
        written(annotation, value)


@pytest.mark.slow("Many values or schemas take half a second or longer.")
def test_a_list_that_contains_itself_is_an_error() -> None:
    items: list[Any] = [Doubled(number=2)]
    items.append(items)
    with pytest.raises(ValueError, match="can't be written as JSON"):
        written(list[Doubled], tuple(items))


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (Priced, Priced(price=1.5), {"price": 150}),
        (Squared, Squared(side=2), {"side": 2, "area": 4}),
        (Short, Short(), {"a": 1}),
        (Aliased, Aliased.model_validate({"in": 1}), {"out": 1}),
        (Hidden, Hidden(name="a"), {"name": "a"}),
        (Numbers, Numbers([1]), [1]),
        (Page[Item], Page[Item](items=[Item("a", ["b"])]), {"items": [{"name": "a", "tags": ["b"]}]}),
        (Pair, Pair(1), {"left": 1, "right": 1.5}),
        (Movie, {"title": "a", "other": 1}, {"title": "a"}),
        (Annotated[int, PlainSerializer(hex, return_type=str)], 17, "0x11"),
        (Annotated[datetime, PlainSerializer(lambda value: value.year)], datetime(2026, 7, 28, tzinfo=UTC), 2026),
        (Annotated[int, WrapSerializer(lambda value, handler: [handler(value)])], 1, [1]),
        (Iterable[int], (number for number in (1, 2)), [1, 2]),
        (Iterable[int], [1, 2], [1, 2]),
        (Sequence[Decimal], [Decimal("1.5")], [1.5]),
        (Stream, Stream(items=[Decimal(1)], payload=b"abc"), {"items": [1], "payload": "YWJj"}),
        (Stream, Stream.model_construct(items=[Decimal(1)], payload=b"abc"), {"items": [1], "payload": "YWJj"}),
        (Sequence[tuple[bytes, Pair]], [(b"abc", Pair(1))], [["YWJj", {"left": 1, "right": 1.5}]]),
    ],
)
def test_serializers_always_run(annotation: Any, value: Any, result: Any) -> None:
    assert written(annotation, value) == result


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [(Base, Derived(name="a"), {"name": "a"}), (Item, Special("a"), {"name": "a", "tags": []})],
)
def test_an_object_of_a_subclass_is_written_as_the_annotated_type(annotation: Any, value: Any, result: Any) -> None:
    assert written(annotation, value) == result
    assert written(list[annotation], [value]) == [result]


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (Annotated[int, Field(le=3)], 4, "must be at most 3"),
        (Annotated[int, Field(le=3), AfterValidator(double)], 4, "must be at most 3"),
        (Annotated[Decimal, Field(ge=0)], Decimal(-1), "must be at least 0"),
        (Annotated[list[int], Field(max_length=1)], [1, 2], "at most 1 item"),
        (Annotated[bytes, Field(max_length=3)], b"abcd", "at most 3 bytes"),
        (Annotated[str, Format("email")], "nobody", "must be an email address"),
        (list[Annotated[str, Format("phone")]], ["x"], r"\[0\] must be a phone number"),
        (Annotated[str, Format("date-time")], "2026-07-28", "must be a date and time"),
        (Annotated[str, Format("uuid")], "1", "must be a UUID"),
        (AwareDatetime, datetime(2026, 7, 28), "must have an offset such as Z"),  # noqa: DTZ001 - naive on purpose
        (Doubled, {"number": "x"}, "number must be an integer, not a string"),
        (Doubled, Doubled.model_construct(number="x"), "number must be an integer, not a string"),
        (Doubled, Doubled.model_construct(), "number is required"),
        (Base, Base.model_construct(), "required"),
        (Movie, {"year": 2000}, "required"),
        (Movie, {"title": "a", "year": "b"}, "year must be an integer, not a string"),
        (Item, Item(5), "name must be a string, not a number"),  # type: ignore[arg-type] # wrong on purpose
        (datetime, "banana", "must be a date and time such as"),
        (bytes | int, "a", "base64"),
        (dict[int, str], {"a": "b"}, "must be an integer"),
        (Pair, Pair("a"), r"\[0\] must be an integer, not a string"),  # type: ignore[arg-type] # wrong on purpose
        (Priced, {"price": "x"}, "price must be a number, not a string"),
        (Iterable[int], iter([1, "x"]), r"\[1\] must be an integer, not a string"),
        (Annotated[int, PlainSerializer(str, return_type=int)], 1, "a serializer returned another type"),
    ],
)
def test_a_result_that_breaks_its_schema_is_an_error(annotation: Any, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=f"(?s)it returned what its annotation does not allow: .*{reason}"):
        ResultWriter(annotation, "it").write(value)


def test_a_failing_serializer_is_the_error_of_the_call() -> None:
    def fails(value: int) -> int:
        raise LookupError(value)

    with pytest.raises(ValueError, match="LookupError: 1"):
        written(Annotated[int, PlainSerializer(fails)], 1)


def test_a_set_of_many_large_integers_is_written_in_short_time() -> None:
    numbers = {10**20 + number for number in range(5_000)}
    assert set(written(set[int], numbers)) == numbers


@pytest.mark.parametrize("depth", [5, 60])
def test_nested_unions_are_written_in_short_time(depth: int) -> None:
    value: Any = None
    for _ in range(depth):
        value = {"below": value, "right": 1}
    assert written(Left | Right, value) == value


@pytest.mark.parametrize(
    ("annotation", "value", "content"),
    [
        (Annotated[str, PlainSerializer(str.upper)], "a", "A"),
        (Annotated[str, Field(max_length=3)], "abc", "abc"),
        (Annotated[str, AfterValidator(str.upper)], "a", "a"),
        (Annotated[str, "What it says"], "abc", "abc"),
        (Annotated[str | None, Field(max_length=3)], None, None),
        (Annotated[str, Field(max_length=3)] | None, "abc", "abc"),
        (Annotated[bytes, PlainSerializer(bytes.hex)], b"a", "61"),
        (Annotated[str, PlainSerializer(lambda value: {"it": value})], "a", '{"it":"a"}'),
        (Base64Str, "abc", "YWJj"),
    ],
)
async def test_texts_are_serialized_and_checked_too(annotation: Any, value: Any, content: str | None) -> None:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    assert "outputSchema" not in tool_of(tool).describe()
    result = await call(tool)
    assert result == {"content": [] if content is None else [{"type": "text", "text": content}]}


@pytest.mark.parametrize("annotation", [Base64Bytes, Annotated[bytes, Field(max_length=3)]])
async def test_bytes_with_marks_are_an_embedded_resource(annotation: Any) -> None:
    def tool() -> Any:
        return b"abc"

    tool.__annotations__["return"] = annotation
    (block,) = (await call(tool))["content"]
    assert block["resource"]["blob"] == "YWJj"


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(Annotated[str, Field(max_length=3)], "abcd"), (Annotated[bytes | None, Field(max_length=3)], b"abcd")],
)
async def test_a_text_that_breaks_a_constraint_is_an_error(annotation: Any, value: Any) -> None:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    with pytest.raises(ValueError, match="does not allow"):
        await call(tool)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (datetime, {"type": "string"}),
        (AwareDatetime, {"type": "string", "format": "date-time"}),
        (timedelta, {"type": "string"}),
        (EmailStr, {"type": "string"}),
        (Annotated[str, Format("date")] | int, {"anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}]}),
        (Annotated[str, Format("time")] | int, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        (Annotated[float, Field(multiple_of=0.01)], {"type": "number"}),
        (Annotated[int, Field(multiple_of=5)], {"type": "integer", "multipleOf": 5}),
        (
            Annotated[Decimal, Field(ge=0, lt=Decimal("9.5"), multiple_of=0.01)],
            {"type": "number", "minimum": 0, "exclusiveMaximum": 9.5},
        ),
        (bytes | int, {"anyOf": [{"type": "string", "contentEncoding": "base64"}, {"type": "integer"}]}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (deque[int], {"type": "array", "items": {"type": "integer"}}),
        (
            defaultdict[str, int] | int,
            {"anyOf": [{"type": "object", "additionalProperties": {"type": "integer"}}, {"type": "integer"}]},
        ),
        (Annotated[int, PlainSerializer(lambda value: value)], {}),
        (Annotated[int, PlainSerializer(str)], {"type": "string"}),
    ],
)
def test_a_schema_promises_only_what_the_type_guarantees(annotation: Any, schema: dict[str, Any]) -> None:
    def tool() -> Any: ...

    tool.__annotations__["return"] = annotation
    assert tool_of(tool).describe()["outputSchema"]["properties"]["result"] == schema


def test_a_model_whose_serializer_has_no_return_type_is_just_an_object() -> None:
    def tool() -> Short: ...  # type: ignore[empty-body]

    assert tool_of(tool).describe()["outputSchema"] == {"type": "object"}


@pytest.mark.parametrize("seconds", [90, -3600, 0])
def test_an_aware_datetime_keeps_its_format_with_any_offset(seconds: int) -> None:
    moment = datetime(2026, 7, 28, 12, tzinfo=timezone(timedelta(seconds=seconds)))
    assert written(AwareDatetime, moment).startswith("2026-07-28T12:00:00")


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (dict[str, int], {"a\ud800": 1}, {"a\ufffd": 1}),
        (Base, Base.model_construct(name="\ud800"), {"name": "\ufffd"}),
        (dict[str, Any], {"\ufffd\ufffd\ufffd": 1}, {"\ufffd\ufffd\ufffd": 1}),
        (Annotated[str, Field(max_length=1)] | int, "\ud800", "\ufffd"),
    ],
)
def test_a_lone_surrogate_becomes_one_replacement_character(annotation: Any, value: Any, result: Any) -> None:
    assert written(annotation, value) == result
