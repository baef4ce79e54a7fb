"""Completers of authors, and completions of types with named values."""

from __future__ import annotations

import threading
from enum import Enum, IntEnum, StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import Field

from funcmcp import Context, MCPServer
from funcmcp._authoring.signatures.choices import choices_of
from funcmcp._protocol.completion import Completion
from funcmcp._serving.composition import runtime_of
from tests.authoring.models import Colour, Level
from tests.server.parts import answer, context

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")

DAYS = ["monday", "tuesday"]


@pytest.fixture
def mcp() -> MCPServer:
    return MCPServer("completions")


async def ask(
    mcp: MCPServer, name: str, value: str, others: dict[str, str] | None = None, *, uri: str | None = None
) -> dict[str, Any]:
    reference = {"type": "ref/prompt", "name": "say"} if uri is None else {"type": "ref/resource", "uri": uri}
    params: dict[str, Any] = {"ref": reference, "argument": {"name": name, "value": value}}
    if others is not None:
        params["context"] = {"arguments": others}
    message: dict[str, Any] = await answer(runtime_of(mcp).server, context("completion/complete", params))
    return message


async def complete(
    mcp: MCPServer, name: str, value: str, others: dict[str, str] | None = None, **more: Any
) -> list[str]:
    values: list[str] = (await ask(mcp, name, value, others, **more))["result"]["completion"]["values"]
    return values


def completing(mcp: MCPServer, function: Callable[..., Any]) -> None:
    """Offer a prompt whose argument `day` a function completes."""
    mcp.prompt("say", completions={"day": function})(lambda day, meal="lunch": "")


async def test_a_completer_gets_what_has_been_written_and_the_other_arguments(mcp: MCPServer) -> None:
    async def days(value: str, others: dict[str, str]) -> list[str]:
        return [f"{day} {others.get('meal')}" for day in DAYS if day.startswith(value)]

    completing(mcp, days)
    assert await complete(mcp, "day", "mon", {"meal": "dinner"}) == ["monday dinner"]
    assert await complete(mcp, "day", "t") == ["tuesday None"]
    assert await complete(mcp, "meal", "") == []


async def test_a_plain_completer_with_one_parameter_runs_in_a_thread(mcp: MCPServer) -> None:
    completing(mcp, lambda value: [value, threading.current_thread().name])
    value, thread = await complete(mcp, "day", "m", {"meal": "x"})
    assert value == "m"
    assert thread != threading.current_thread().name


@pytest.mark.parametrize("found", [DAYS, tuple(DAYS), dict.fromkeys(DAYS), (day for day in DAYS), Completion(DAYS)])
async def test_texts_may_come_in_any_collection(mcp: MCPServer, found: Any) -> None:
    completing(mcp, lambda value: found)
    assert await complete(mcp, "day", "") == DAYS


async def test_a_completion_says_how_many_there_are(mcp: MCPServer) -> None:
    completing(mcp, lambda value: Completion(DAYS, total=7, has_more=True))
    assert (await ask(mcp, "day", ""))["result"]["completion"] == {"values": DAYS, "total": 7, "hasMore": True}


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda value: "monday", "not str"),
        (lambda value: None, "not NoneType"),
        (lambda value: 5, "not int"),
        (lambda value: [1], "must return strings"),
        (lambda value: Completion("monday"), "not Completion"),
        (lambda: DAYS, "must take one or two arguments"),
        (lambda value, others, more: DAYS, "must take one or two arguments"),
    ],
)
async def test_anything_else_is_an_internal_error(
    mcp: MCPServer, caplog: pytest.LogCaptureFixture, function: Callable[..., Any], why: str
) -> None:
    completing(mcp, function)
    assert (await ask(mcp, "day", ""))["error"]["code"] == -32603
    assert why in caplog.text


async def test_a_completer_may_take_a_context_and_services(mcp: MCPServer) -> None:
    class Calendar:
        days = DAYS

    async def days(value: str, calendar: Any, context: Context) -> list[str]:
        return [f"{day} {context.protocol_version}" for day in calendar.days]

    days.__annotations__["calendar"] = Calendar
    mcp.services.register_factory(Calendar, Calendar)
    completing(mcp, days)
    assert await complete(mcp, "day", "") == ["monday 2025-11-25", "tuesday 2025-11-25"]


async def test_variables_of_a_template_are_completed_too(mcp: MCPServer) -> None:
    uri = "menu://{day}/{colour}"

    @mcp.resource(uri, completions={"day": lambda value, others: [*DAYS, *others.values()]})
    def dish(day: str, colour: Colour) -> str:
        return ""

    assert await complete(mcp, "day", "", {"colour": "red"}, uri=uri) == [*DAYS, "red"]
    assert await complete(mcp, "colour", "b", uri=uri) == ["blue"]


class Heat(StrEnum):
    MILD = "Mild"
    HOT = "hot"


class Number(IntEnum):
    ONE = 1
    TEN = 10


class Odd(Enum):
    NONE = None
    YES = True
    TEXT = "text"


@pytest.mark.parametrize(
    ("hint", "texts"),
    [
        (bool, ["true", "false"]),
        (bool | None, ["true", "false"]),
        (Colour, ["red", "blue"]),
        (Heat, ["Mild", "hot"]),
        (Number, ["1", "10"]),
        (Odd, ["null", "true", "text"]),
        (Literal["a", "b"], ["a", "b"]),
        (Literal[1, True, None], ["1", "true", "null"]),
        (Literal[Level.LOW], ["1"]),
        (Annotated[Literal["a"], Field(description="an a")], ["a"]),
        (str, []),
        (int, []),
        (Any, []),
        (list[bool], []),
        (Colour | int, []),
    ],
)
async def test_a_type_that_names_its_values_completes_by_itself(mcp: MCPServer, hint: Any, texts: list[str]) -> None:
    async def say(it: Any, more: bool) -> str:
        return ""

    say.__annotations__["it"] = hint
    mcp.prompt(say)
    assert await complete(mcp, "it", "") == texts
    assert choices_of(hint) == texts


@pytest.mark.parametrize(
    ("begun", "values"), [("", ["Mild", "hot"]), ("m", ["Mild"]), ("HO", ["hot"]), ("hot", ["hot"]), ("hott", [])]
)
async def test_what_has_been_written_chooses_among_them(mcp: MCPServer, begun: str, values: list[str]) -> None:
    async def say(heat: Heat) -> str:
        return ""

    mcp.prompt(say)
    assert await complete(mcp, "heat", begun) == values


@pytest.mark.parametrize(
    "hint", [bool, Colour, Level, Heat, Number, Odd, Literal[1, True, None, "a"], Literal[Level.LOW]]
)
async def test_every_value_that_is_suggested_is_taken(mcp: MCPServer, hint: Any) -> None:
    async def say(it: Any) -> str:
        return repr(it)

    async def hold(it: Any) -> str:
        return repr(it)

    say.__annotations__["it"] = hold.__annotations__["it"] = hint
    mcp.prompt(say)
    mcp.resource("menu://{it}")(hold)
    said = set()
    for value in await complete(mcp, "it", ""):
        got = await answer(runtime_of(mcp).server, context("prompts/get", {"name": "say", "arguments": {"it": value}}))
        said.add(got["result"]["messages"][0]["content"]["text"])
        read = await answer(runtime_of(mcp).server, context("resources/read", {"uri": f"menu://{value}"}))
        assert read["result"]["contents"][0]["text"] in said
    assert len(said) == len(choices_of(hint))


async def test_an_authors_completer_goes_before_the_types_own(mcp: MCPServer) -> None:
    mcp.prompt("say", completions={"colour": lambda value: ["red first"]})(_say_colour)
    assert await complete(mcp, "colour", "") == ["red first"]


def _say_colour(colour: Colour) -> str:
    return colour.value
