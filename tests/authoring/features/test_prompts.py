"""Prompts from Python functions."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Flag
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import pytest
from pydantic import BaseModel, BeforeValidator, Discriminator, Field, RootModel, Tag

from funcmcp import Context, MCPServer, RegistrationError
from funcmcp._authoring.calling.services import Services
from funcmcp._authoring.features.prompts import make_prompt
from funcmcp._authoring.results.content import (
    Audio,
    EmbeddedResource,
    Icon,
    Image,
    Message,
    PromptResult,
    ResourceLink,
    Text,
)
from funcmcp._authoring.signatures.signature import Arguments
from funcmcp._serving.composition import runtime_of
from tests import schemas
from tests.authoring import tool_calls
from tests.authoring.models import Address, Colour, CreateOrder, Level, Point, Size
from tests.server.parts import NEWEST, Recorder, answer, context

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)


@pytest.fixture
def mcp() -> MCPServer:
    return MCPServer("prompts")


async def ask(mcp: MCPServer, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = await answer(runtime_of(mcp).server, context(method, params, **more))
    return message


async def get(mcp: MCPServer, name: str, arguments: dict[str, str] | None = None, **more: Any) -> list[Any]:
    """Get a prompt and return its messages."""
    params = {"name": name, "arguments": arguments or {}}
    messages: list[Any] = (await ask(mcp, "prompts/get", params, **more))["result"]["messages"]
    return messages


async def text_of(mcp: MCPServer, name: str, arguments: dict[str, str] | None = None) -> str:
    (message,) = await get(mcp, name, arguments)
    text: str = message["content"]["text"]
    return text


async def refusal(mcp: MCPServer, name: str, arguments: dict[str, str] | None = None) -> dict[str, Any]:
    error: dict[str, Any] = (await ask(mcp, "prompts/get", {"name": name, "arguments": arguments or {}}))["error"]
    return error


async def listed(mcp: MCPServer, revision: str = NEWEST) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await ask(mcp, "prompts/list", revision=revision))["result"]["prompts"]
    return found


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": {"type": "text", "text": text}}


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("Hi", [user("Hi")]),
        ("", [user("")]),
        ([], []),
        (["one", "two"], [user("one"), user("two")]),
        (("one",), [user("one")]),
        (
            Text("Hi", annotations={"audience": ["user"]}),
            [{"role": "user", "content": {"type": "text", "text": "Hi", "annotations": {"audience": ["user"]}}}],
        ),
        (Message("Hi", role="assistant"), [{**user("Hi"), "role": "assistant"}]),
        (
            ["Hi", Message(Image(b"\xff"), role="assistant")],
            [user("Hi"), {"role": "assistant", "content": {"type": "image", "data": "/w==", "mimeType": "image/png"}}],
        ),
        (Audio(b""), [{"role": "user", "content": {"type": "audio", "data": "", "mimeType": "audio/wav"}}]),
        (
            EmbeddedResource("menu://a", text="Fish", mime_type="text/plain"),
            [
                {
                    "role": "user",
                    "content": {
                        "type": "resource",
                        "resource": {"uri": "menu://a", "mimeType": "text/plain", "text": "Fish"},
                    },
                }
            ],
        ),
        (
            ResourceLink("menu://a", "a"),
            [{"role": "user", "content": {"type": "resource_link", "uri": "menu://a", "name": "a"}}],
        ),
        (PromptResult("Hi"), [user("Hi")]),
        (PromptResult(["Hi"]), [user("Hi")]),
    ],
)
async def test_what_a_function_returns_are_the_messages(mcp: MCPServer, value: object, messages: list[Any]) -> None:
    mcp.prompt("say")(lambda: value)
    assert await get(mcp, "say") == messages


@EVERY_REVISION
async def test_every_kind_of_content_is_valid_in_every_revision(mcp: MCPServer, revision: str) -> None:
    blocks = [
        Text("a"),
        Image(b"a"),
        Audio(b"a"),
        EmbeddedResource("menu://a", blob=b"a"),
        ResourceLink("menu://a", "a"),
    ]
    mcp.prompt("all")(lambda: blocks)
    assert len(await get(mcp, "all", revision=revision)) == len(blocks)


async def test_a_whole_result_has_a_description_and_meta(mcp: MCPServer) -> None:
    mcp.prompt("say")(lambda: PromptResult(["Hi"], description="A greeting", meta={"a": 1}))
    result = (await ask(mcp, "prompts/get", {"name": "say"}))["result"]
    assert result == {"description": "A greeting", "messages": [user("Hi")], "_meta": {"a": 1}}


@pytest.mark.parametrize(
    "value",
    [None, 5, {"role": "user"}, [None], [["nested"]], b"bytes", {"a", "b"}, PromptResult([5])],  # type: ignore[list-item]
)
async def test_anything_else_is_an_internal_error(mcp: MCPServer, value: object) -> None:
    mcp.prompt("say")(lambda: value)
    assert (await refusal(mcp, "say"))["code"] == -32603


async def test_a_lone_surrogate_is_sent_as_the_replacement_character(mcp: MCPServer) -> None:
    mcp.prompt("say")(lambda: "a\ud800b")
    assert await get(mcp, "say") == [user("a\ufffdb")]


def test_a_role_that_the_specification_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="'user' or 'assistant'"):
        Message("Hi", role="system")


class Model(BaseModel):
    a: int


class Name(RootModel[str]):
    pass


class Day(RootModel[date]):
    pass


class ColourName(RootModel[Colour]):
    pass


class OptionalText(RootModel[str | None]):
    pass


class Several(RootModel[int | str | list[int]]):
    pass


class Numbers(RootModel[list[int]]):
    pass


class Names(RootModel[list[Name]]):
    pass


class WholeNumber(RootModel[int]):
    pass


class Access(Flag):
    READ = 1
    WRITE = 2


def words_of(value: Any) -> Any:
    return value.split(",") if isinstance(value, str) else value


def kind_of(value: Any) -> str:
    return "text" if isinstance(value, str) else "model"


def a_of(value: Any) -> str:
    return "model" if "a" in value.keys() else "other"  # noqa: SIM118 - raises for a text


ByKind = Annotated[Annotated[str, Tag("text")] | Annotated[Model, Tag("model")], Discriminator(kind_of)]
ByObject = Annotated[Annotated[Model, Tag("model")] | Annotated[Size, Tag("other")], Discriminator(a_of)]


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (str, "5", "5"),
        (str, "", ""),
        (Any, "[1]", "[1]"),
        (int, "5", 5),
        (float, "1.5", 1.5),
        (bool, "true", True),
        (bool, "false", False),
        (Decimal, "1.50", Decimal("1.50")),
        (date, "2026-07-28", date(2026, 7, 28)),
        (datetime, "2026-07-28", datetime(2026, 7, 28)),  # noqa: DTZ001 - what an author gets
        (datetime, "2026-07-28T12:00:00Z", datetime(2026, 7, 28, 12, tzinfo=UTC)),
        (timedelta, "PT1H", timedelta(hours=1)),
        (UUID, "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
        (Colour, "red", Colour.RED),
        (Level, "2", Level.HIGH),
        (Literal["a", "b"], "b", "b"),
        (Literal[1, 2], "2", 2),
        (Literal[True, "maybe"], "true", True),
        (Literal["a", None], "null", None),
        (Literal[Level.LOW], "1", Level.LOW),
        (int | None, "5", 5),
        (list[int], "[1, 2]", [1, 2]),
        (list[int] | None, "null", None),
        (Sequence[str], '["a"]', ["a"]),
        (Mapping[str, int], '{"a": 1}', {"a": 1}),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (set[int], "[1, 1]", {1}),
        (dict[str, Any], '{"a": null}', {"a": None}),
        (Model, '{"a": 1}', Model(a=1)),
        (Size, '{"width": 1}', Size(1, None)),
        (Address, '{"street": "Main"}', {"street": "Main", "city": None}),
        (Point, '[1, "a"]', Point(1, "a")),
        (Annotated[list[int], Field(min_length=1)], "[1]", [1]),
        (str | list[str], "plain", "plain"),
        (str | int, "5", "5"),
        (Name, "Ada", Name("Ada")),
        (Name, "5", Name("5")),
        (Name, '["a"]', Name('["a"]')),
        (Name | None, "", Name("")),
        (Name | int, "Ada", Name("Ada")),
        (Day, "2026-07-28", Day(date(2026, 7, 28))),
        (ColourName, "red", ColourName(Colour.RED)),
        (OptionalText, "[1]", OptionalText("[1]")),
        (Several, "[1]", Several("[1]")),
        (Numbers, "[1, 2]", Numbers([1, 2])),
        (WholeNumber, "+5", WholeNumber(5)),
        (Names, '["a"]', Names([Name("a")])),
        (Access, "3", Access.READ | Access.WRITE),
        (Annotated[list[str], BeforeValidator(words_of)], "a,b", ["a", "b"]),
        (Annotated[list[str], BeforeValidator(words_of)], '["a,b"]', ["a,b"]),
        (ByKind, "[1,2]", "[1,2]"),
        (ByKind, '{"a":1}', '{"a":1}'),
        (ByObject, '{"a":1}', Model(a=1)),
        (list[str] | None, "null", None),
    ],
)
async def test_an_argument_is_a_text_that_is_converted_to_the_annotated_type(
    mcp: MCPServer, hint: Any, text: str, value: object
) -> None:
    seen = []

    async def say(it: Any) -> str:
        seen.append(it)
        return ""

    say.__annotations__["it"] = hint
    mcp.prompt(say)
    await get(mcp, "say", {"it": text})
    assert (seen, type(seen[0])) == ([value], type(value))


@pytest.mark.parametrize(
    ("hint", "text", "words"),
    [
        (int, "five", "it: must be an integer"),
        (int, "", "it: must be an integer"),
        (bool, "perhaps", "it: must be a boolean"),
        (Colour, "green", 'it: must be one of "red" or "blue"'),
        (Literal[1, 2], "3", "it: must be one of 1 or 2"),
        (date, "yesterday", "it: must be a date such as 2026-07-28"),
        (date, "0", "it: must be a date such as 2026-07-28"),
        (date | None, "86400", "it: must be a date such as 2026-07-28"),
        (datetime, "1700000000", "it: must be a date and time such as 2026-07-28T12:00:00Z"),
        (datetime, "-1.5", "it: must be a date and time such as 2026-07-28T12:00:00Z"),
        (list[date], "[0]", "it[0]: must be a date such as 2026-07-28, not a number"),
        (int, "1" * 5000, "it: is too long"),
        (list[int], "1, 2", "it: must be JSON such as [1, 2]"),
        (list[str] | None, "a, b", 'it: must be JSON such as ["one", "two"]'),
        (list[Model], "a", 'it: must be JSON such as [{"name": "value"}]'),
        (Model, "a", 'it: must be JSON such as {"name": "value"}'),
        (list[int], '["a"]', "it[0]: must be an integer"),
        (list[int], "{}", "it: must be an array, not an object"),
        (list[float], "[NaN]", "it: must be JSON such as [1, 2] (expected value at line 1 column 2)"),
        (
            dict[str, int],
            "[" * 10_000,
            'it: must be JSON such as {"name": "value"} (recursion limit exceeded at line 1 column 202)',
        ),
        (Numbers, "5,6", "it: must be JSON such as [1, 2]"),
        (Numbers, "[5,", "it: must be JSON such as [1, 2] (EOF while parsing a value at line 1 column 3)"),
        (Names, "a", 'it: must be JSON such as ["one", "two"]'),
        (WholeNumber, "true", "it: must be an integer"),
        (Access, " 3", "it: must be 0 or a sum of 1 or 2"),
        (Access, "-0", "it: must be 0 or a sum of 1 or 2"),
        (ByObject, "a", 'it: must be JSON such as {"name": "value"}'),
        (int | list[int], "[1", "it: must be JSON: EOF while parsing a list at line 1 column 2"),
        (Model, "{}", "it.a: is required (an integer)"),
        (Annotated[int, Field(ge=1)], "0", "it: must be at least 1"),
    ],
)
async def test_an_argument_of_another_type_is_invalid_in_plain_words(
    mcp: MCPServer, hint: Any, text: str, words: str
) -> None:
    async def say(it: Any) -> str:
        return ""

    say.__annotations__["it"] = hint
    mcp.prompt(say)
    error = await refusal(mcp, "say", {"it": text})
    assert (error["code"], error["message"]) == (-32602, words)


async def test_the_whole_docstring_is_the_description_without_what_the_arguments_say(mcp: MCPServer) -> None:
    @mcp.prompt
    def review(code: str) -> str:
        """Review code.

        Args:
            code: What to review.
            style: An old argument.

        Be kind.
        """
        return code

    [definition] = await listed(mcp)
    assert definition["description"] == "Review code.\n\nArgs:\n    style: An old argument.\n\nBe kind."
    assert definition["arguments"] == [{"name": "code", "description": "What to review.", "required": True}]


async def test_a_name_may_be_any_line_of_text_and_a_description_stands_in_the_annotation(mcp: MCPServer) -> None:
    @mcp.prompt("Menu of the day: größe")
    def menu(day: Annotated[str, "Which day"], diet: Annotated[str | None, "Such as vegan"] = None) -> str:
        return f"{day} {diet}"

    [definition] = await listed(mcp)
    assert (definition["name"], definition["title"]) == ("Menu of the day: größe", "Menu of the day: größe")
    assert definition["arguments"] == [
        {"name": "day", "description": "Which day", "required": True},
        {"name": "diet", "description": "Such as vegan", "required": False},
    ]
    assert await text_of(mcp, "Menu of the day: größe", {"day": "Monday"}) == "Monday None"


async def test_missing_and_unknown_arguments_are_invalid(mcp: MCPServer) -> None:
    @mcp.prompt
    async def say(a: str, b: int, c: str | None, d: str = "d") -> str:
        return f"{a} {b} {c} {d}"

    error = await refusal(mcp, "say")
    assert (error["code"], error["message"]) == (-32602, "a: is required (a string)\nb: is required (an integer)")
    error = await refusal(mcp, "say", {"a": "1", "b": "2", "x" * 500: "3"})
    assert error["code"] == -32602
    assert error["message"].startswith('["xxx')
    assert error["message"].endswith('"]: is not an argument')
    assert len(error["message"]) < 200
    assert await text_of(mcp, "say", {"a": "1", "b": "2"}) == "1 2 None d"


@pytest.mark.parametrize(
    "hint", [int, int | None, float, bool, date, UUID, Colour, Literal["a", "b"], list[int], dict[str, int], Model]
)
async def test_an_empty_text_for_an_optional_argument_that_is_no_text_means_left_out(mcp: MCPServer, hint: Any) -> None:
    """Forms of clients send it for what nobody filled in."""

    async def say(it: Any = None) -> str:
        return f"{it}"

    say.__annotations__["it"] = hint
    mcp.prompt(say)
    assert await text_of(mcp, "say", {"it": ""}) == "None"


@pytest.mark.parametrize("hint", [str, str | None, int | str, Literal["", "a"], Any, bytes, NewType("Name", str)])
async def test_an_empty_text_for_an_optional_text_is_that_text(mcp: MCPServer, hint: Any) -> None:
    async def say(it: Any = "left out") -> str:
        return it.decode() if isinstance(it, bytes) else f"{it}"

    say.__annotations__["it"] = hint
    if hint is bytes:
        say.__defaults__ = (b"left out",)
    mcp.prompt(say)
    assert await text_of(mcp, "say", {"it": ""}) == ""


async def test_an_alias_means_nothing_here(mcp: MCPServer) -> None:
    @mcp.prompt
    async def say(who: Annotated[str, Field(alias="userName")]) -> str:
        return who

    assert [one["name"] for one in (await listed(mcp))[0]["arguments"]] == ["who"]
    assert await text_of(mcp, "say", {"who": "Ada"}) == "Ada"


async def test_a_function_keeps_working_as_it_did_and_runs_in_a_thread_of_its_own(mcp: MCPServer) -> None:
    @mcp.prompt
    def where() -> str:
        return threading.current_thread().name

    assert where() == threading.current_thread().name
    assert await text_of(mcp, "where") != threading.current_thread().name


async def test_the_context_knows_the_prompt_and_reaches_the_client(mcp: MCPServer) -> None:
    @mcp.prompt
    async def say(number: int, context: Context) -> str:
        await context.report_progress(1)
        await context.log("error", "hot")
        return f"{context.name} {dict(context.arguments)} {context.session_id}"

    channel = Recorder()
    params = {"name": "say", "arguments": {"number": "5"}, "_meta": {"progressToken": "t"}}
    assert runtime_of(mcp).server.routes.route(context("prompts/get", params).request).interactive
    result = (await ask(mcp, "prompts/get", params, channel=channel))["result"]
    assert result["messages"] == [user("say {'number': '5'} None")]
    assert channel.sent == [
        ("notifications/progress", {"progressToken": "t", "progress": 1}),
        ("notifications/message", {"level": "error", "data": "hot"}),
    ]
    assert [one["name"] for one in (await listed(mcp))[0]["arguments"]] == ["number"]


async def test_services_are_injected_and_are_no_arguments(mcp: MCPServer) -> None:
    class Library:
        book = "Moby-Dick"

    async def say(library: Any) -> str:
        return str(library.book)

    say.__annotations__["library"] = Library
    mcp.prompt(say)
    mcp.services.register_factory(Library, Library)
    assert await text_of(mcp, "say") == "Moby-Dick"
    assert "arguments" not in (await listed(mcp))[0]


@EVERY_REVISION
async def test_everything_that_is_said_of_a_prompt_is_listed(mcp: MCPServer, revision: str) -> None:
    @mcp.prompt(
        "code.review",
        title="Review",
        description="Reviews code",
        icons=[Icon("https://example.com/icon.png")],
        meta={"example.com/a": 1},
    )
    def review(code: Annotated[str, Field(title="Code", description="What to review")], loud: bool = False) -> str:
        return ""

    (one,) = await listed(mcp, revision)
    assert (one["name"], one["description"]) == ("code.review", "Reviews code")
    code, loud = one["arguments"]
    assert (code["name"], code["description"], code["required"]) == ("code", "What to review", True)
    assert loud == {"name": "loud", "required": False}
    if revision >= "2025-06-18":
        assert (one["title"], code["title"], one["_meta"]) == ("Review", "Code", {"example.com/a": 1})
    if revision >= "2025-11-25":
        assert one["icons"] == [{"src": "https://example.com/icon.png"}]


async def test_name_title_description_and_arguments_come_from_the_function(mcp: MCPServer) -> None:
    @mcp.prompt
    def CodeReview(code: str, language: str | None) -> str:  # noqa: N802 - the point
        """Review code.

        Args:
            code: what to review.
            language: its language.
        """
        return ""

    assert await listed(mcp) == [
        {
            "name": "code_review",
            "title": "Code Review",
            "description": "Review code.",
            "arguments": [
                {"name": "code", "description": "what to review.", "required": True},
                {"name": "language", "description": "its language.", "required": False},
            ],
        }
    ]


@pytest.mark.parametrize(
    ("options", "function", "why"),
    [
        ({"name": "two\nlines"}, lambda: "", "is not a valid name of a prompt"),
        ({}, lambda: "", "is not a valid name of a prompt"),
        ({"meta": {"a": object()}}, lambda: "", "must be JSON"),
        ({"timeout": -1}, lambda: "", "above 0"),
        ({"completions": {"b": len}}, lambda a: "", "no argument 'b'"),
        ({}, Model, "is a class"),
        ({}, lambda **more: "", "Name each parameter"),
    ],
)
def test_what_cannot_be_a_prompt_is_refused_with_the_reason(
    mcp: MCPServer, options: dict[str, Any], function: Any, why: str
) -> None:
    named = {"name": "say"} if why != "is a class" and "name of a prompt" not in why else {}
    with pytest.raises(RegistrationError) as caught:
        mcp.prompt(**{**named, **options})(function)
    assert why in str(caught.value)


def test_a_name_is_given_once_and_taken_once(mcp: MCPServer) -> None:
    with pytest.raises(RegistrationError, match="by position or as name="):
        mcp.prompt("a", name="b")
    mcp.prompt("say")(lambda: "")
    with pytest.raises(RegistrationError, match="too little"):
        mcp.prompt("SAY")(lambda: "")
    mcp.remove_prompt("say")
    with pytest.raises(KeyError):
        mcp.remove_prompt("say")
    mcp.prompt("SAY")(lambda: "")


async def test_a_parameter_that_no_prompt_has_is_told_to_the_author(
    mcp: MCPServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def say(it: Any) -> str:
        return ""

    say.__annotations__["it"] = Arguments[CreateOrder]
    mcp.prompt(say)
    assert (await refusal(mcp, "say", {"it": ""}))["code"] == -32603
    assert "only tools can have" in caplog.text


def test_an_argument_that_json_can_never_carry_is_refused(mcp: MCPServer) -> None:
    def review(code: type) -> str:
        return str(code)

    with pytest.raises(RegistrationError, match="The parameter 'code' of review is type, which JSON can't carry"):
        mcp.prompt(review)


async def test_a_prompt_that_can_not_be_described_is_left_out_and_named_as_one_in_the_log(
    mcp: MCPServer, caplog: pytest.LogCaptureFixture
) -> None:
    class Unreadable:
        """What is no JSON."""

    @mcp.prompt
    def review(code: Unreadable) -> str:
        return str(code)

    assert await listed(mcp) == []
    [record] = caplog.records
    assert record.getMessage().startswith("The prompt review is left out of prompts/list. Correct it: ")


async def test_the_result_has_the_prompts_description_unless_it_has_its_own(mcp: MCPServer) -> None:
    @mcp.prompt
    def text() -> str:
        """Review \"code\"."""
        return "Please."

    @mcp.prompt
    def whole(context: Context) -> PromptResult:
        """Not this."""
        return PromptResult([context.name], description="Its own.")

    assert (await ask(mcp, "prompts/get", {"name": "text"}))["result"] == {
        "description": 'Review "code".',
        "messages": [user("Please.")],
    }
    assert (await ask(mcp, "prompts/get", {"name": "whole"}))["result"]["description"] == "Its own."


async def test_a_prompt_can_not_end_the_process() -> None:
    async def leave() -> str:
        raise SystemExit(3)

    made = make_prompt(leave, {"name": "leave"}, Services())
    with pytest.raises(RuntimeError, match="leave raised SystemExit"):
        await made.handler(tool_calls.context(), {})


async def test_the_description_of_an_argument_says_that_its_text_is_json(mcp: MCPServer) -> None:
    @mcp.prompt
    def say(tags: list[str], size: Size, count: int, numbers: Numbers | None = None) -> str:
        """Say something.

        Args:
            tags: Tags of the page.
            size: Its size
            count: How often.
        """
        return ""

    (prompt,) = (await ask(mcp, "prompts/list"))["result"]["prompts"]
    assert [argument.get("description") for argument in prompt["arguments"]] == [
        'Tags of the page. JSON such as ["one", "two"].',
        'Its size. JSON such as {"name": "value"}.',
        "How often.",
        "JSON such as [1, 2].",
    ]
