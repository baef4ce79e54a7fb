"""Unions that contain themselves: what fits is read as ever, and no value takes more than a bounded number of tries."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator, model_validator
from typing_extensions import TypeAliasType, TypedDict

from funcmcp import ToolError
from funcmcp._authoring.calling.arguments import reader_of_type
from funcmcp._authoring.results.result_writer import ResultWriter
from funcmcp._authoring.schemas.pydantic_schemas import core_schema_of
from funcmcp._authoring.schemas.union_limits import bounded

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")

tries: list[str] = []
DEEPEST = 60
MANY = 10_000


class Left(BaseModel):
    x: Left | Right | int

    @model_validator(mode="before")
    @classmethod
    def count(cls, value: Any) -> Any:
        tries.append("left")
        return dict(value) if isinstance(value, dict) else value


class Right(BaseModel):
    x: Left | Right | int
    y: int = 0


class DatedLeft(BaseModel):
    x: DatedLeft | DatedRight | dt.date


class DatedRight(BaseModel):
    x: DatedLeft | DatedRight | dt.date
    y: int = 0


@dataclass
class LeftData:
    x: LeftData | RightData | int


@dataclass
class RightData:
    x: LeftData | RightData | int
    y: int = 0


class LeftDict(TypedDict):
    x: LeftDict | RightDict | int


class RightDict(TypedDict):
    x: LeftDict | RightDict | int


class LeftValidated(BaseModel):
    x: LeftValidated | RightValidated | int

    @field_validator("x")
    @classmethod
    def same(cls, value: Any) -> Any:
        return value


class RightValidated(BaseModel):
    x: LeftValidated | RightValidated | int


class ListOfLeft(BaseModel):
    x: list[ListOfLeft] | list[ListOfRight] | int


class ListOfRight(BaseModel):
    x: list[ListOfLeft] | list[ListOfRight] | int


class Through(BaseModel):
    """Its union is at another place than the types that lead back to it."""

    x: ThroughLeft | ThroughRight


class ThroughLeft(BaseModel):
    x: Through | int


class ThroughRight(BaseModel):
    x: Through | int


class TaggedLeft(BaseModel):
    kind: Literal["left"]
    x: Annotated[TaggedLeft | TaggedRight, Field(discriminator="kind")] | int


class TaggedRight(BaseModel):
    kind: Literal["right"]
    x: Annotated[TaggedLeft | TaggedRight, Field(discriminator="kind")] | int


class Alone(BaseModel):
    x: Alone | int | str


class And(BaseModel):
    all: list[And | Or | Not | Is]


class Or(BaseModel):
    any: list[And | Or | Not | Is]


class Not(BaseModel):
    no: And | Or | Not | Is


class Is(BaseModel):
    field: str
    on: dt.date | None = None


Alias = TypeAliasType("Alias", "LeftOfAlias | RightOfAlias | int")


class LeftOfAlias(TypedDict):
    x: Alias


class RightOfAlias(TypedDict):
    x: Alias


JSON = TypeAliasType("JSON", "dict[str, JSON] | list[JSON] | str | int | None")

AMBIGUOUS = [
    Left,
    DatedLeft,
    LeftData,
    LeftDict,
    ListOfLeft,
    Through,
    Alias,
    Is | Not,
    list[Left],
    dict[str, Left] | None,
]


def nested(depth: int, leaf: Any, *, in_lists: bool = False) -> Any:
    for _ in range(depth):
        leaf = {"x": [leaf] if in_lists and leaf != 1 else leaf}
    return leaf


@pytest.mark.parametrize("leaf", [1, "no number"])
@pytest.mark.parametrize("kind", [Left, DatedLeft, LeftData, LeftDict, ListOfLeft, Through, Alias])
def test_a_value_that_can_be_read_in_too_many_ways_is_refused(kind: Any, leaf: Any) -> None:
    value = nested(DEEPEST, leaf, in_lists=kind is ListOfLeft)
    with pytest.raises(ToolError, match="nested too deeply in types that contain themselves"):
        reader_of_type(kind, "it")(value)


@pytest.mark.parametrize("leaf", [1, "no number"])
def test_tries_are_bounded_even_where_an_author_makes_the_value_anew(leaf: Any) -> None:
    tries.clear()
    with pytest.raises(ToolError):
        reader_of_type(Left, "it")(nested(DEEPEST, leaf))
    assert DEEPEST < len(tries) < MANY


@pytest.mark.parametrize(
    ("kind", "leaf", "expected"),
    [
        (Left, 1, Left(x=Right(x=Left(x=1), y=2))),
        (DatedLeft, "2026-07-28", DatedLeft(x=DatedRight(x=DatedLeft(x=dt.date(2026, 7, 28)), y=2))),
        (LeftData, 1, LeftData(RightData(LeftData(1), 2))),
        (LeftDict, 1, {"x": {"x": {"x": 1}}}),
    ],
)
def test_what_fits_is_read_as_the_member_that_fits_best(kind: Any, leaf: Any, expected: Any) -> None:
    assert reader_of_type(kind, "it")({"x": {"x": {"x": leaf}, "y": 2}}) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Left, {"x": {"x": []}}),
        (Left, {"x": {"x": {"x": {}}}}),
        (DatedLeft, {"x": {"x": "yesterday", "y": 1.5}}),
        (LeftData, {"x": {"x": {"x": "a"}}}),
        (And, {"all": [{"any": [{"no": {"on": "2026-07-28"}}]}, {"field": 1}]}),
        (list[Is | Not], [{"no": {"field": None}}, 5]),
    ],
)
def test_an_error_is_told_in_the_same_words_with_a_bound_as_without(
    monkeypatch: pytest.MonkeyPatch, kind: Any, value: Any
) -> None:
    with pytest.raises(ToolError) as with_bound:
        reader_of_type(kind, "it")(value)
    monkeypatch.setattr("funcmcp._authoring.schemas.pydantic_schemas.bounded", lambda _: None)
    with pytest.raises(ToolError) as without:
        reader_of_type(kind, "it")(value)
    assert str(with_bound.value) == str(without.value)


def test_ten_levels_of_two_members_that_both_fit_are_read() -> None:
    value = reader_of_type(Left, "it")(nested(10, 1))
    assert isinstance(value, Left)


def test_depth_is_no_matter_where_one_member_fits() -> None:
    value: Any = {"field": "a", "on": "2026-07-28"}
    for _ in range(20):
        value = {"all": [{"no": value}, {"any": [{"field": "b"}]}]}
    assert isinstance(reader_of_type(And | Or, "it")(value), And)


def test_the_equal_parts_of_a_value_do_not_allow_for_more_tries() -> None:
    tries.clear()
    with pytest.raises(ToolError, match="nested too deeply"):
        reader_of_type(list[Left], "it")([nested(1, 1)] * 5_000 + [nested(DEEPEST, 1)])
    assert len(tries) < 5_000 + MANY


def test_each_value_has_tries_of_its_own() -> None:
    read = reader_of_type(Left, "it")
    for _ in range(20):
        read(nested(10, 1))


def test_equal_parts_of_a_large_value_are_read() -> None:
    found = reader_of_type(list[And | Or | Not | Is], "it")([{"no": {"field": "a"}}] * 10_000)
    assert len(found) == 10_000


@pytest.mark.parametrize("kind", AMBIGUOUS)
def test_a_union_that_contains_itself_gets_a_bound(kind: Any) -> None:
    assert bounded(core_schema_of(kind, "it")) is not None


@pytest.mark.parametrize("kind", [int, int | str, Alone, list[Alone], TaggedLeft, JSON, dict[str, int | str]])
def test_other_types_have_no_bound_and_no_cost(kind: Any) -> None:
    assert bounded(core_schema_of(kind, "it")) is None


@pytest.mark.parametrize("kind", [TaggedLeft, Alone, JSON])
def test_types_without_a_bound_are_read_at_any_depth(kind: Any) -> None:
    value: Any = 1
    for _ in range(DEEPEST):
        value = {"x": value, "kind": "left"}
    assert reader_of_type(kind, "it")(value) is not None


@pytest.mark.parametrize("kind", [LeftDict, LeftValidated])
def test_results_have_the_same_bound_if_they_must_be_read(kind: Any) -> None:
    assert ResultWriter(kind, "it").write({"x": {"x": 1}}) == b'{"x":{"x":1}}'
    with pytest.raises(ToolError, match="nested too deeply"):
        ResultWriter(kind, "it").write(nested(DEEPEST, 1.5))


def test_results_that_need_not_be_read_are_written_at_any_depth() -> None:
    value: Any = 1
    for _ in range(DEEPEST):
        value = Left(x=value)
    assert ResultWriter(Left, "it").write(value) == ResultWriter(LeftDict, "it").write(nested(DEEPEST, 1))
