"""Arguments that a tool or a prompt does not have."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, model_validator, with_config
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import core_schema
from typing_extensions import TypedDict

from funcmcp import Arguments, MCPServer, ToolError, prompt, tool
from funcmcp._authoring.calling.unknown_arguments import ArgumentRules, unknown_arguments
from funcmcp._authoring.signatures.signature import Spread
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp.testing import Client
from tests.authoring.tool_calls import call, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")

POLICIES = ("refuse", "ignore", "drop")
NOT_A_STRING = "city: must be a string, not a number"


def weather(city: str, days: int = 1, user_id: str = "") -> str:
    return f"{city} {days} {user_id}".strip()


async def outcome(function: Callable[..., Any], arguments: dict[str, Any], **options: Any) -> str:
    """Return the text of the result, or of the error."""
    try:
        result = await call(function, arguments, **options)
    except ToolError as error:
        return str(error)
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.parametrize(
    ("arguments", "refused", "ignored"),
    [
        ({"city": "Rome"}, "Rome 1", "Rome 1"),
        ({"city": "Rome", "sessionId": "1"}, "sessionId: is not an argument", "Rome 1"),
        ({"city": "Rome", "day": 3}, "day: is not an argument. Did you mean days?", None),
        ({"city": "Rome", "day": 3, "days": 2}, "day: is not an argument", "Rome 2"),
        ({"citty": "Rome"}, "citty: is not an argument. Did you mean city?\ncity: is required (a string)", None),
        ({"City": "Rome"}, "City: is not an argument. Did you mean city?\ncity: is required (a string)", None),
        ({"city": "Rome", "userId": "a"}, "userId: is not an argument. Did you mean user_id?", None),
        ({"city": 5, "x": 1}, f"x: is not an argument\n{NOT_A_STRING}", NOT_A_STRING),
        ({"city": "Rome", "": 1}, '[""]: is not an argument', "Rome 1"),
        ({"city": "Rome", "a b\n": 1}, '["a b\\n"]: is not an argument', "Rome 1"),
        ({"city": "Rome", "days" * 100: 1}, f'["{"days" * 16}"]: is not an argument', "Rome 1"),
        ({"city": "Rome", "self": 1, "context": 2}, "self: is not an argument\ncontext: is not an argument", "Rome 1"),
    ],
)  # fmt: skip
async def test_unknown_arguments_are_refused_with_the_closest_name(
    arguments: dict[str, Any], refused: str, ignored: str | None
) -> None:
    assert await outcome(weather, arguments) == refused
    assert await outcome(weather, arguments, unknown_arguments="ignore") == (refused if ignored is None else ignored)


async def test_the_arguments_that_n8n_adds_are_ignored() -> None:
    added = {"sessionId": "1", "action": "sendMessage", "chatInput": "weather in Rome?", "toolCallId": "call_1"}
    assert await outcome(weather, {"city": "Rome", **added}, unknown_arguments="ignore") == "Rome 1"


async def test_all_unknown_arguments_can_be_dropped() -> None:
    assert await outcome(weather, {"city": "Rome", "day": 3, "x": 1}, unknown_arguments="drop") == "Rome 1"
    assert await outcome(weather, {"citty": "Rome"}, unknown_arguments="drop") == "city: is required (a string)"


async def test_a_tool_without_arguments() -> None:
    def ping() -> str:
        return "pong"

    assert await outcome(ping, {}) == "pong"
    assert await outcome(ping, {"a": 1, "b\nc": 2}) == 'a: is not an argument\n["b\\nc"]: is not an argument'
    for policy in ("ignore", "drop"):
        assert await outcome(ping, {"a": 1}, unknown_arguments=policy) == "pong"


@pytest.mark.parametrize("policy", POLICIES)
def test_the_schema_does_not_tell(policy: str) -> None:
    assert schema_of(weather, unknown_arguments=policy) == schema_of(weather)
    assert "additionalProperties" not in str(schema_of(weather))


class Plain(BaseModel):
    x: int = 1


class Forbidding(Plain):
    model_config = ConfigDict(extra="forbid")


class Ignoring(Plain):
    model_config = ConfigDict(extra="ignore")


class Allowing(Plain):
    model_config = ConfigDict(extra="allow")


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_nested_model_decides_itself(policy: str) -> None:
    def nested(plain: Plain, ignoring: Ignoring, allowing: Allowing) -> str:
        return f"{plain.model_extra} {ignoring.model_extra} {allowing.model_extra}"

    def forbidding(model: Forbidding) -> str:
        return repr(model)

    other = {"x": 2, "y": 3}
    arguments = {"plain": other, "ignoring": other, "allowing": other}
    assert await outcome(nested, arguments, unknown_arguments=policy) == "None None {'y': 3}"
    assert await outcome(forbidding, {"model": other}, unknown_arguments=policy) == "model.y: is not expected"


@dataclass
class Point:
    x: int = 1


@pydantic_dataclass(config=ConfigDict(extra="ignore"))
class IgnoringPoint:
    x: int = 1


class Table(TypedDict, total=False):
    x: int


@with_config(ConfigDict(extra="forbid"))
class ForbiddingTable(TypedDict, total=False):
    x: int


class Recursive(BaseModel):
    x: int = 1
    inner: Recursive | None = None


@pytest.mark.parametrize("lax", [False, True])
@pytest.mark.parametrize("kind", [Plain, Point, Table, Recursive])
async def test_the_arguments_in_a_type_without_a_choice_are_those_of_the_tool(kind: Any, lax: bool) -> None:
    def spread(it: Any, other: int = 1) -> str:
        return "called"

    spread.__annotations__ = {"it": Annotated[kind, Spread()], "other": int, "return": str}
    assert await outcome(spread, {"x": 2}, lax=lax) == "called"
    assert await outcome(spread, {"x": 2, "othr": 2}, lax=lax) == "othr: is not an argument. Did you mean other?"
    assert await outcome(spread, {"x": 2, "z": 2}, lax=lax, unknown_arguments="ignore") == "called"


async def test_only_the_outermost_object_of_a_recursive_type_has_the_tools_arguments() -> None:
    def spread(it: Arguments[Recursive]) -> str:
        return f"{it.inner}"

    assert await outcome(spread, {"inner": {"x": 2, "z": 3}}) == "x=2 inner=None"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Ignoring, "called"),
        (IgnoringPoint, "called"),
        (Allowing, "called"),
        (Forbidding, "z: is not an argument"),
        (ForbiddingTable, "z: is not an argument"),
    ],
)
async def test_the_arguments_in_a_type_with_a_choice_follow_it(kind: Any, text: str, policy: str) -> None:
    def spread(it: Any) -> str:
        return "called"

    spread.__annotations__ = {"it": Annotated[kind, Spread()], "return": str}
    assert await outcome(spread, {"x": 2, "z": 3}, unknown_arguments=policy) == text


class Renaming(BaseModel):
    city: str

    @model_validator(mode="before")
    @classmethod
    def rename(cls, value: Any) -> Any:
        return {"city": value.pop("town"), **value} if "town" in value else value


class WithInit(BaseModel):
    city: str

    def __init__(self, **members: Any) -> None:
        super().__init__(city=members.get("town", members.get("city")))


@pytest.mark.parametrize("kind", [Renaming, WithInit])
@pytest.mark.parametrize("lax", [False, True])
async def test_a_type_that_reads_the_arguments_itself_gets_all_of_them(kind: Any, lax: bool) -> None:
    def spread(it: Any) -> str:
        return str(it.city)

    spread.__annotations__ = {"it": Annotated[kind, Spread()], "return": str}
    assert await outcome(spread, {"town": "Rome"}, lax=lax) == "Rome"


class Chained:
    """A type with a core schema of its author, which has no fields to look at."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        fields = {"city": core_schema.typed_dict_field(core_schema.str_schema())}
        first = core_schema.typed_dict_schema(fields)
        return core_schema.chain_schema([first, core_schema.no_info_plain_validator_function(cls.of)])

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> Any:
        return {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

    @classmethod
    def of(cls, values: dict[str, str]) -> Chained:
        made = cls()
        made.city = values["city"]
        return made

    city: str


async def test_a_core_schema_of_an_author_decides_itself() -> None:
    def spread(it: Arguments[Chained]) -> str:
        return it.city

    assert await outcome(spread, {"city": "Rome", "z": 1}) == "Rome"


class Aliases(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    from_: str = Field("", alias="from")
    to: str = Field("", validation_alias=AliasChoices("to", "dest", AliasPath("route", 0)))


@pytest.mark.parametrize("arguments", [{"from": "a"}, {"from_": "a"}, {"to": "a"}, {"dest": "a"}, {"route": ["a"]}])
async def test_every_alias_is_an_argument(arguments: dict[str, Any]) -> None:
    def spread(it: Arguments[Aliases]) -> str:
        return it.from_ + it.to

    assert await outcome(spread, arguments) == "a"


async def test_an_alias_that_pydantic_does_not_read_is_no_argument() -> None:
    class ByName(BaseModel):
        model_config = ConfigDict(validate_by_name=True, validate_by_alias=False)
        from_: str = Field("", alias="from")

    def spread(it: Arguments[ByName]) -> str:
        return it.from_

    assert await outcome(spread, {"from_": "a"}) == "a"
    assert (await outcome(spread, {"from": "a"})).startswith("from: is not an argument")


async def test_aliases_of_parameters_are_arguments_and_their_names_are_not() -> None:
    def plain(from_: Annotated[str, Field(alias="from")], to: Annotated[str, Field(alias="dest")] = "") -> str:
        return from_ + to

    assert await outcome(plain, {"from": "a", "dest": "b"}) == "ab"
    assert await outcome(plain, {"from_": "a"}) == (
        "from_: is not an argument. Did you mean from?\nfrom: is required (a string)"
    )


async def test_a_hand_written_schema_decides_itself() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    def everything(arguments: dict[str, Any]) -> str:
        return str(sorted(arguments))

    def named(a: int) -> str:
        return str(a)

    assert await outcome(everything, {"a": 1, "b": 2}, input_schema=schema) == "['a', 'b']"
    assert await outcome(named, {"a": 1, "b": 2}, input_schema=schema) == "1"
    closed = {**schema, "additionalProperties": False}
    assert await outcome(named, {"a": 1, "b": 2}, input_schema=closed, unknown_arguments="drop") == "b: is not expected"


def server(**options: Any) -> MCPServer:
    mcp = MCPServer("weather", **options)

    class Tools:
        @tool
        def method(self, city: str) -> str:
            return city

        @prompt(unknown_arguments="drop")
        def lenient(self, topic: str) -> str:
            return topic

    mcp.add(Tools)
    mcp.tool(weather)

    @mcp.prompt
    def ask(topic: str, tone: str = "dry") -> str:
        return f"{topic} {tone}"

    @mcp.tool(task="optional")
    def later(city: str) -> str:
        return city

    return mcp


@pytest.mark.parametrize("name", ["weather", "method", "later"])
async def test_the_server_has_a_default_for_all_features(name: str) -> None:
    arguments = {"city": "Rome", "sessionId": "1"}
    async with Client(server()) as client:
        assert (await client.call_tool(name, arguments)).text == "sessionId: is not an argument"
    async with Client(server(unknown_arguments="ignore")) as client:
        assert (await client.call_tool(name, arguments)).text.startswith("Rome")


async def test_direct_calls_and_mounted_servers_follow_the_server_of_the_tool() -> None:
    main = server()
    main.mount(server(unknown_arguments="ignore"), prefix="n8n")
    arguments = {"city": "Rome", "action": "call"}
    assert (await main.call_tool("weather", arguments)).is_error
    assert not (await main.call_tool("n8n_weather", arguments)).is_error
    other = server(unknown_arguments="ignore")
    other.mount(server(), prefix="strict")
    assert (await other.call_tool("strict_weather", arguments)).is_error
    assert not (await other.call_tool("weather", arguments)).is_error


async def test_a_prompt_refuses_ignores_and_drops_them_too() -> None:
    async with Client(server()) as client:
        with pytest.raises(Exception, match=r"^tonne: is not an argument. Did you mean tone\?$"):
            await client.get_prompt("ask", {"topic": "x", "tonne": "kind"})
        assert "x" in str(await client.get_prompt("lenient", {"topic": "x", "topics": "y"}))
    async with Client(server(unknown_arguments="ignore")) as client:
        assert "x dry" in str(await client.get_prompt("ask", {"topic": "x", "sessionId": "1"}))
        with pytest.raises(Exception, match="Did you mean tone"):
            await client.get_prompt("ask", {"topic": "x", "tonne": "kind"})


@pytest.mark.parametrize("value", ["allow", True, "Refuse", 1])
def test_the_option_is_checked(value: Any) -> None:
    with pytest.raises(RegistrationError, match="unknown_arguments of a must be 'refuse', 'ignore' or 'drop'; got"):
        MCPServer("a", unknown_arguments=value)
    with pytest.raises(RegistrationError, match="unknown_arguments of weather must be"):
        MCPServer("a").tool(unknown_arguments=value)(weather)
    with pytest.raises(RegistrationError, match="unknown_arguments of weather must be"):
        MCPServer("a").prompt(unknown_arguments=value)(weather)


def test_a_feature_s_options_go_before_those_of_the_server() -> None:
    rules = ArgumentRules(lax=True, unknown="ignore")
    assert rules.with_options("a", {}) == rules
    assert rules.with_options("a", {"lax": None, "unknown_arguments": None}) == rules
    assert rules.with_options("a", {"lax": False, "unknown_arguments": "drop"}) == ArgumentRules(unknown="drop")


@pytest.mark.parametrize(("policy", "comparisons"), [("refuse", 20), ("ignore", 30), ("drop", 0)])
async def test_few_of_many_unknown_arguments_are_compared(
    policy: str, comparisons: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    compare = difflib.get_close_matches

    def note(*arguments: Any) -> list[str]:
        compared.append(arguments)
        return compare(*arguments)

    monkeypatch.setattr(difflib, "get_close_matches", note)
    text = await outcome(weather, {"city": "Rome", **{f"day{n}": 1 for n in range(100_000)}}, unknown_arguments=policy)
    assert len(compared) == comparisons
    assert text.splitlines()[0] == ("Rome 1" if policy == "drop" else "day0: is not an argument. Did you mean days?")
    assert text.count("\n") <= 20


def test_errors_are_in_the_order_of_the_names() -> None:
    error = unknown_arguments(["limitt", "zzz"], {"limit", "offset"})
    assert str(error) == "limitt: is not an argument. Did you mean limit?\nzzz: is not an argument"
