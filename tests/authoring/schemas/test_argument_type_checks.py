"""Types whose schemas would offer only values that the tool rejects."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, AliasChoices, AliasPath, BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType, TypedDict

from funcmcp import MCPServer
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp.testing import Client
from tests.authoring.tool_calls import call, schema_of

pytestmark = [
    pytest.mark.every_python("Types, enums, dataclasses and regular expressions are Python's."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]


class Mutable(BaseModel):
    size: int


class Frozen(BaseModel, frozen=True):
    size: int


@dataclass(frozen=True)
class FrozenPoint:
    x: int


class FrozenWithList(BaseModel, frozen=True):
    sizes: list[int]


class FrozenAround(BaseModel, frozen=True):
    inner: FrozenWithList | None


class WithHash(BaseModel):
    sizes: list[int]

    def __hash__(self) -> int:
        return 1


@dataclass(frozen=True)
class FrozenPath:
    points: list[int]


@dataclass(frozen=True)
class FrozenLabel:
    x: int
    notes: list[str] = field(default_factory=list, compare=False)


@dataclass
class OwnHash:
    points: list[int]

    def __hash__(self) -> int:
        return 1


@dataclass
class MutablePoint:
    x: int


class Mapping(TypedDict):
    x: int


class WithPath(BaseModel):
    city: str = Field(validation_alias=AliasPath("address", "city"))


class WithPaths(BaseModel):
    city: str = Field("Rome", validation_alias=AliasChoices(AliasPath("address", 0), AliasPath("places", 0)))


class WithChoices(BaseModel):
    city: str = Field(validation_alias=AliasChoices(AliasPath("address", "city"), "town"))


class NamesOnly(BaseModel):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
    city: str = Field(alias="town")
    inner: Annotated[Frozen, Field(alias="nested")] = Frozen(size=1)


class Empty(Enum):
    pass


class SameTags(BaseModel):
    kind: Literal[1]


class SameTagsToo(BaseModel):
    kind: Literal[True]


NestedMutable = TypeAliasType("NestedMutable", Mutable)
Nested = TypeAliasType("Nested", "int | frozenset[Nested]")


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (set[Mutable], "has a set whose members are not hashable in Python. Use a list"),
        (set[MutablePoint], "has a set whose members"),
        (frozenset[list[int]], "has a set whose members"),
        (set[FrozenWithList], "has a set whose members"),
        (set[FrozenAround], "has a set whose members"),
        (set[FrozenPath], "has a set whose members"),
        (list[set[dict[str, int]]], "has a set whose members"),
        (set[Mapping], "has a set whose members"),
        (set[tuple[int, list[int]]], "has a set whose members"),
        (set[int | Mutable], "has a set whose members"),
        (set[NestedMutable], "has a set whose members"),
        (dict[tuple[int, int], int], "has a dict whose keys JSON can't carry. Use strings or numbers as keys"),
        (WithPath, "has the field 'city', whose AliasPath a schema can't describe. Use an alias with one name"),
        (list[WithPaths], "has the field 'city', whose AliasPath"),
        (Empty, "has the enum Empty, which has no members. Add members"),
        (Collection[int], "has the type Collection, which pydantic can't read. Use list"),
        (Iterator[int], "has the type Iterator, which pydantic can't read. Use list"),
        (
            Annotated[SameTags | SameTagsToo, Field(discriminator="kind")],
            "has a type that pydantic can't read: Value True for discriminator 'kind' mapped to multiple choices",
        ),
    ],
)
def test_such_a_type_is_refused_with_the_name_of_its_parameter(annotation: Any, reason: str) -> None:
    def tool(first: int, it: Any, last: str = "") -> None: ...

    tool.__annotations__["it"] = annotation
    with pytest.raises(RegistrationError) as raised:
        schema_of(tool)
    assert str(raised.value).startswith(f"The parameter 'it' of tool {reason}")


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (set[Frozen], [{"size": 1}, {"size": 1}], {Frozen(size=1)}),
        (set[FrozenPoint | int], [{"x": 1}], {FrozenPoint(1)}),
        (set[WithHash], [{"sizes": [1]}], {WithHash(sizes=[1])}),
        (set[FrozenLabel], [{"x": 1}], {FrozenLabel(1)}),
        (set[OwnHash], [{"points": []}], {OwnHash([])}),
        (set[tuple[int, frozenset[int]]], [[1, [2]]], {(1, frozenset({2}))}),
        (set[Annotated[list[int], AfterValidator(tuple)]], [[1]], {(1,)}),
        (set[Nested], [1, [2]], {1, frozenset({2})}),
        (WithChoices, {"town": "Rome"}, WithChoices.model_validate({"town": "Rome"})),
        (
            NamesOnly,
            {"city": "Rome", "inner": {"size": 2}},
            NamesOnly.model_validate({"city": "Rome", "inner": {"size": 2}}),
        ),
    ],
)
@pytest.mark.parametrize("lax", [False, True])
async def test_similar_types_work(annotation: Any, value: Any, expected: Any, lax: bool) -> None:
    got: list[Any] = []

    def tool(it: Any) -> None:
        got.append(it)

    tool.__annotations__["it"] = annotation
    await call(tool, {"it": value}, lax=lax)
    assert got == [expected]


def test_fields_that_are_read_by_name_only_have_their_names_in_the_schema() -> None:
    def tool(it: NamesOnly, other: WithChoices) -> None: ...

    properties = schema_of(tool)["properties"]
    assert list(properties["it"]["properties"]) == ["city", "inner"]
    assert properties["it"]["required"] == ["city"]
    assert list(properties["other"]["properties"]) == ["town"]


async def test_only_the_refused_feature_is_left_out_of_lists(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("Types")

    @mcp.tool
    def fine(it: int) -> None: ...

    @mcp.tool
    def wrong(it: set[Mutable]) -> None: ...

    @mcp.prompt
    def wrong_prompt(it: set[Mutable]) -> str:
        return ""

    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["fine"]
        assert await client.list_prompts() == []
    assert "The parameter 'it' of wrong has a set whose members" in caplog.text
    assert "The parameter 'it' of wrong_prompt has a set whose members" in caplog.text
