"""Enums, flags and literals: one rule in arguments, lax arguments, prompts, completions, URIs and results."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
from pydantic import BaseModel, Discriminator, Field, Tag, field_serializer

from funcmcp import MCPServer
from funcmcp._authoring.schemas import pydantic_choices
from funcmcp._authoring.signatures.choices import choice_text, json_value
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._serving.composition import runtime_of
from tests.authoring.tool_calls import call, run, schema_of, tool_of
from tests.server.parts import answer, context

pytestmark = [
    pytest.mark.every_python("Types, enums, dataclasses and regular expressions are Python's."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Text(str, Enum):  # noqa: UP042 - as authors wrote it before StrEnum
    A = "a"


class Word(StrEnum):
    HELLO = "hello"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(Enum):
    TEXT = "1"
    NUMBER = 1
    NOTHING = None
    HALF = 0.5


class Pair(Enum):
    ORIGIN = (0, 0)
    UNIT = (1, 1)


class Planet(Enum):
    EARTH = (5.9, 6.3)

    def __init__(self, mass: float, radius: float) -> None:
        self.mass = mass
        self.radius = radius


class Raw(Enum):
    BYTES = b"\x9f"


class Day(Enum):
    FIRST = date(2026, 7, 28)


class Price(Enum):
    LOW = Decimal("1.5")


class Settings(Enum):
    SMALL = {"size": [1]}  # noqa: RUF012 - a member, not an attribute


class Access(Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class OpenAccess(IntFlag):
    READ = 1
    WRITE = 2


class Loose(Enum):
    RED = "red"

    @classmethod
    def _missing_(cls, value: object) -> Loose | None:
        return cls.RED if str(value).lower() == "red" else None


class Careless(IntEnum):
    ONE = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls[value.upper()] if value != "nothing" else 5  # type: ignore[attr-defined] # raises for numbers


class Modes(Flag):
    FAST = 1
    SAFE = 2

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls.FAST if value == "fast" else None


CHOICES: list[tuple[Any, Any]] = [
    (Colour, Colour.RED),
    (Text, Text.A),
    (Word, Word.HELLO),
    (Level, Level.HIGH),
    (Mixed, Mixed.TEXT),
    (Mixed, Mixed.NUMBER),
    (Mixed, Mixed.HALF),
    (Pair, Pair.UNIT),
    (Planet, Planet.EARTH),
    (Raw, Raw.BYTES),
    (Day, Day.FIRST),
    (Price, Price.LOW),
    (Settings, Settings.SMALL),
    (Access, Access.READ),
    (Access, Access.READ | Access.RUN),
    (Access, Access(0)),
    (OpenAccess, OpenAccess(3)),
    (Modes, Modes.FAST),
    (Loose, Loose.RED),
    (Literal[Colour.RED], Colour.RED),
    (Literal[Text.A], Text.A),
    (Literal[Level.HIGH, "a"], Level.HIGH),
    (Literal[Pair.ORIGIN], Pair.ORIGIN),
    (Literal[b"x"], b"x"),
    (Literal[True, 1, "1"], 1),
    (Literal[True, "true"], True),
    (Literal["a", "b"], "b"),
]


def echoing(annotation: Any, got: list[Any]) -> Any:
    def echo(it: Any) -> Any:
        got.append(it)
        return it

    echo.__annotations__ = {"it": annotation, "return": annotation}
    return echo


def returning(annotation: Any, value: Any) -> Any:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    return tool


@pytest.mark.parametrize("lax", [False, True])
@pytest.mark.parametrize(("annotation", "choice"), CHOICES)
async def test_a_choice_is_the_same_json_in_arguments_results_and_schemas(
    annotation: Any, choice: Any, lax: bool
) -> None:
    got: list[Any] = []
    made = tool_of(echoing(annotation, got)).describe()
    value = json_value(choice)
    result = await call(echoing(annotation, got), {"it": value}, lax=lax)
    assert (got[0], type(got[0])) == (choice, type(choice))
    assert result["structuredContent"] == value if isinstance(value, dict) else {"result": value}
    assert jsonschema_rs.is_valid(made["inputSchema"], {"it": value})
    assert jsonschema_rs.is_valid(made["outputSchema"], result["structuredContent"])


@pytest.mark.parametrize(("annotation", "choice"), CHOICES)
async def test_a_choice_is_its_text_in_prompts_completions_and_uris(annotation: Any, choice: Any) -> None:
    got: list[Any] = []

    def prompt(it: Any) -> str:
        got.append(it)
        return "x"

    def read(it: Any) -> str:
        got.append(it)
        return "x"

    prompt.__annotations__["it"] = read.__annotations__["it"] = annotation
    mcp = MCPServer("Choices")
    mcp.prompt(prompt)
    mcp.resource("choices://{it}")(read)
    server = runtime_of(mcp).server
    text = choice_text(choice)
    if choice not in {Access.READ | Access.RUN, Access(0), OpenAccess(3)}:
        asked = {"ref": {"type": "ref/prompt", "name": "prompt"}, "argument": {"name": "it", "value": ""}}
        completed = await answer(server, context("completion/complete", asked))
        assert text in completed["result"]["completion"]["values"]
    await answer(server, context("prompts/get", {"name": "prompt", "arguments": {"it": text}}))
    quoted = "".join(character if character.isalnum() else f"%{ord(character):02X}" for character in text)
    await answer(server, context("resources/read", {"uri": f"choices://{quoted}"}))
    expected = "1" if annotation == Literal[True, 1, "1"] else choice
    if choice is Mixed.NUMBER:
        expected = Mixed.TEXT
    elif choice is True:
        expected = "true"
    assert got == [expected, expected]
    assert {type(value) for value in got} == {type(expected)}


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (Colour, "green", 'it: must be one of "red" or "blue"'),
        (Level, True, "it: must be one of 1 or 2"),
        (Level, "1", "it: must be one of 1 or 2"),
        (Mixed, False, 'it: must be one of "1", 1, null or 0.5'),
        (Pair, [0, 1], "it: must be one of [0,0] or [1,1]"),
        (Pair, [False, 0], "it: must be one of [0,0] or [1,1]"),
        (Raw, "\x9f", 'it: must be "nw=="'),
        (Literal[b"x"], "x", 'it: must be "eA=="'),
        (Literal[True], 1, "it: must be true"),
        (Access, 8, "it: must be 0 or a sum of 1, 2 or 4"),
        (Access, -1, "it: must be 0 or a sum of 1, 2 or 4"),
        (Access, True, "it: must be 0 or a sum of 1, 2 or 4"),
        (Access, "3", "it: must be 0 or a sum of 1, 2 or 4"),
        (OpenAccess, -1, "it: must be 0 or a sum of 1 or 2"),
        (OpenAccess, 4, "it: must be 0 or a sum of 1 or 2"),
        (Loose, "blue", 'it: must be "red"'),
        (Careless, 7, "it: must be 1"),
        (Careless, "two", "it: must be 1"),
        (Careless, "nothing", "it: must be 1"),
        (Modes, 3, "it: must be one of 1 or 2"),
    ],
)
async def test_another_value_is_rejected_with_the_choices_as_json(annotation: Any, value: Any, error: str) -> None:
    with pytest.raises(ToolError) as raised:
        await call(echoing(annotation, []), {"it": value})
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("annotation", "value", "choice"),
    [(Loose, "RED", Loose.RED), (Careless, "one", Careless.ONE), (Modes, "fast", Modes.FAST)],
)
async def test_an_enum_may_find_members_for_other_values(annotation: Any, value: Any, choice: Any) -> None:
    got: list[Any] = []
    await call(echoing(annotation, got), {"it": value})
    assert got == [choice]


async def test_a_default_that_is_validated_is_a_choice_already() -> None:
    class Options(BaseModel, validate_default=True):
        access: Access = Access.READ | Access.WRITE
        pair: Literal[Pair.UNIT] = Pair.UNIT
        raw: Literal[b"x"] = b"x"

    got: list[Any] = []
    await call(echoing(Options, got), {"it": {}})
    assert got == [Options()]


class Red(BaseModel):
    kind: Literal[Colour.RED]
    size: int


class Blue(BaseModel):
    kind: Literal[Colour.BLUE]
    kinds: list[int]


class First(BaseModel):
    kind: Literal[1]
    number: int


class Second(BaseModel):
    kind: Literal["1", b"x"]


def kind_of(value: Any) -> Any:
    return value.get("kind") if isinstance(value, dict) else value.kind.value


ByEnum = Annotated[Red | Blue, Field(discriminator="kind")]
ByMixed = Annotated[First | Second, Field(discriminator="kind")]


class Aliased(BaseModel):
    kind: Literal["a"] = Field(alias="type")
    size: int


class AliasedToo(BaseModel):
    kind: Literal["b"] = Field(alias="type")


ByAlias = Annotated[Aliased | AliasedToo, Field(discriminator="kind")]
ByFunction = Annotated[Annotated[Red, Tag("red")] | Annotated[Blue, Tag("blue")], Discriminator(kind_of)]
OwnError = Annotated[
    Annotated[Red, Tag("red")] | Annotated[Blue, Tag("blue")],
    Discriminator(kind_of, custom_error_type="paint", custom_error_message="must be paint"),
]


@pytest.mark.parametrize("lax", [False, True])
@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (ByEnum, {"kind": "red", "size": 1}, Red(kind=Colour.RED, size=1)),
        (list[ByEnum], [{"kind": "blue", "kinds": []}], [Blue(kind=Colour.BLUE, kinds=[])]),
        (ByMixed, {"kind": 1, "number": 1}, First(kind=1, number=1)),
        (ByMixed, {"kind": "1"}, Second(kind="1")),
        (ByMixed, {"kind": "eA=="}, Second(kind=b"x")),
        (ByFunction, {"kind": "red", "size": 1}, Red(kind=Colour.RED, size=1)),
    ],
)
async def test_a_choice_discriminates_a_union(annotation: Any, value: Any, expected: Any, lax: bool) -> None:
    got: list[Any] = []
    result = await call(echoing(annotation, got), {"it": value}, lax=lax)
    assert got == [expected]
    assert result["structuredContent"] in (value, {"result": value})


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (ByEnum, {"kind": "green"}, 'it.kind: must be one of "red" or "blue"'),
        (ByEnum, {"kind": "red"}, "it.size: is required (an integer)"),
        (ByEnum, {"size": 1}, 'it.kind: is required (one of "red" or "blue")'),
        (ByEnum, [], "it: must be an object, not an array"),
        (ByMixed, {"kind": 2}, 'it.kind: must be one of 1, "1" or "eA=="'),
        (ByMixed, {"kind": True, "number": 1}, "it.kind: must be 1"),
        (ByAlias, {"type": "c"}, 'it.type: must be one of "a" or "b"'),
        (ByAlias, {"type": "a"}, "it.size: is required (an integer)"),
        (ByAlias, {"size": 1}, 'it.type: is required (one of "a" or "b")'),
        (ByFunction, {"kind": "green"}, "it: fits none of its alternatives"),
        (OwnError, {"kind": "green"}, "it: must be paint"),
    ],
)
async def test_errors_about_a_discriminator_are_json(annotation: Any, value: Any, error: str) -> None:
    with pytest.raises(ToolError) as raised:
        await call(echoing(annotation, []), {"it": value})
    assert str(raised.value) == error


def test_the_schema_of_flags_is_a_sum() -> None:
    def tool(access: Access, open_access: OpenAccess) -> OpenAccess:
        return open_access

    assert tool_of(tool).describe()["outputSchema"]["properties"]["result"].keys() == {"type", "description", "minimum"}
    assert schema_of(tool)["properties"] == {
        "access": {
            "type": "integer",
            "description": "A sum of READ = 1, WRITE = 2, RUN = 4",
            "minimum": 0,
            "maximum": 7,
        },
        "open_access": {"type": "integer", "description": "A sum of READ = 1, WRITE = 2", "minimum": 0, "maximum": 3},
    }


class Everything(BaseModel):
    colour: Colour
    level: Level
    access: Access
    pair: Pair
    raw: Raw
    literals: list[Literal[Colour.RED, b"x", "c"]]


class Serialized(Everything):
    @field_serializer("level")
    def _doubled(self, level: Level) -> int:
        return level * 2


@pytest.mark.parametrize(("kind", "level"), [(Everything, 2), (Serialized, 4)])
async def test_a_dict_for_a_model_has_choices_or_their_json(kind: Any, level: int) -> None:
    choices = {
        "colour": Colour.RED,
        "level": Level.HIGH,
        "access": Access.READ | Access.WRITE,
        "pair": Pair.UNIT,
        "raw": Raw.BYTES,
        "literals": [Colour.RED, b"x", "c"],
    }
    values = {"colour": "red", "level": 2, "access": 3, "pair": [1, 1], "raw": "nw==", "literals": ["red", "eA==", "c"]}
    for returned in (kind.model_validate(choices), choices, values):
        result = await call(returning(kind, returned))
        assert result["structuredContent"] == {**values, "level": level}


async def test_a_result_may_have_bits_without_names() -> None:
    def tool() -> OpenAccess:
        return OpenAccess(9)

    assert (await call(tool))["structuredContent"] == {"result": 9}


async def test_clients_can_not_make_python_keep_any_number_of_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [(f"BIT_{number}", 1 << number) for number in range(40)]
    wide = Flag("Wide", names)  # type: ignore[misc] # made of many names
    monkeypatch.setattr(pydantic_choices, "MAX_COMBINATIONS", 60)
    got: list[Any] = []
    made = tool_of(echoing(wide, got))
    for number in range(20):
        await run(made, {"it": 3 << number})
    for number in (3, 1, 3 << 19):
        await run(made, {"it": number})
    with pytest.raises(ToolError, match="Too many different combinations of Wide have been sent"):
        await run(made, {"it": 7})
    assert len(got) == 23


def test_the_schema_of_an_enum_has_its_docstring_and_each_value_once() -> None:
    class Documented(Enum):
        """How loud it is."""

        SOFT = 1
        QUIET = 1  # noqa: PIE796 - another name of the member
        TRUE = True
        LOUD = 1.5

    def tool(it: Documented, pairs: Pair, nothing: Literal[None, "a"] = "a") -> None: ...

    assert schema_of(tool)["properties"] == {
        "it": {"type": "number", "description": "How loud it is.", "enum": [1, 1.5]},
        "pairs": {"type": "array", "enum": [[0, 0], [1, 1]], "items": {}},
        "nothing": {"enum": [None, "a"], "default": "a"},
    }


@pytest.mark.parametrize(
    ("key", "choice"), [(Level, Level.LOW), (Raw, Raw.BYTES), (Access, Access.RUN), (Literal[1, 2], 1)]
)
async def test_choices_are_keys_of_dicts(key: Any, choice: Any) -> None:
    got: list[Any] = []
    text = choice_text(choice)
    await call(echoing(dict[key, int], got), {"it": {text: 5}})
    assert got == [{choice: 5}]


class Impossible(Enum):
    THING = object()


@pytest.mark.parametrize("annotation", [Impossible, list[Impossible], Literal[Impossible.THING]])
def test_a_choice_that_json_can_not_carry_is_refused(annotation: Any) -> None:
    def tool(other: int, it: Any) -> None: ...

    tool.__annotations__["it"] = annotation
    with pytest.raises(RegistrationError, match="The parameter 'it' of tool has the choice <Impossible"):
        schema_of(tool)
    with pytest.raises(RegistrationError, match="What tool returns has the choice"):
        tool_of(returning(annotation, None)).describe()
