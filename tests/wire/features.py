"""The resources and prompts that the wire tests ask for, as authors write them, and what they do wrong on purpose."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from funcmcp import Context, MCPServer, ResourceNotFound, ToolError
from funcmcp._authoring.results.content import (
    Audio,
    Content,
    Contents,
    EmbeddedResource,
    Icon,
    Image,
    Message,
    PromptResult,
    ResourceInfo,
    ResourceLink,
)
from funcmcp.content import UIResource

if TYPE_CHECKING:
    from tests.wire.gates import Gates

TIMEOUT = 0.2
SECRET = "secret-of-the-house"
PAGE = "ui://board"
ICON = Icon("https://example.com/icon.png", mime_type="image/png", sizes=["48x48"])
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
DAYS = ["monday", "tuesday", "wednesday"]


class Colour(Enum):
    """What a greeting may be printed in."""

    RED = "red"
    BLUE = "blue"


def add_features(app: MCPServer, gates: Gates) -> None:
    """Add every resource, template, list and prompt."""
    _add_resources(app)
    _add_templates(app)
    _add_prompts(app)
    _add_waiting(app, gates)
    app.tool("show_board", ui=PAGE)(show_board)


def show_board() -> str:
    """Show the board."""
    return "shown"


def _add_resources(app: MCPServer) -> None:
    annotations: dict[str, Any] = {"audience": ["user"], "priority": 0.5}
    metadata: dict[str, Any] = {
        "title": "Today",
        "annotations": annotations,
        "icons": [ICON],
        "meta": {"example.com/a": 1},
    }
    app.resource("menu://today", name="today", size=4, mime_type="text/plain", **metadata)(lambda: "Fish")
    app.resource("menu://logo", name="logo", mime_type="image/png")(lambda: b"\x89PNG\r\n\x00\xff")
    app.resource("menu://empty", name="empty")(lambda: "")
    app.resource("menu://list", name="list")(lambda: [{"dish": "Fish", "price": 7.5}])
    app.resource("menu://gone", name="gone")(lambda: None)
    app.resource(PAGE, name="board", ui=UIResource(csp={"connectDomains": ["https://example.com"]}))(
        lambda: "<!doctype html>"
    )

    @app.resource("menu://week")
    def week() -> list[Contents]:
        return [Contents("Fish", uri="menu://week/1", mime_type="text/plain"), Contents(blob=b"\x00", meta={"a": 1})]

    @app.resource("menu://broken")
    def broken() -> str:
        raise ValueError(SECRET)

    @app.resource("menu://closed")
    async def closed() -> str:
        raise ToolError("The kitchen is closed.")

    @app.resource("menu://unsayable")
    async def unsayable() -> dict[str, float]:
        return {"price": float("nan")}

    @app.resource_lister("news")
    async def news() -> list[ResourceInfo]:
        return [ResourceInfo(f"news://{day}", day, mime_type="text/plain", icons=[ICON]) for day in DAYS]


def _add_templates(app: MCPServer) -> None:
    @app.resource("news://{day}", icons=[ICON], meta={"example.com/a": 1})
    async def day(day: str) -> str:
        if day not in DAYS:
            raise ResourceNotFound(f"news://{day}")
        return f"News of {day}"

    @app.resource("menu://dishes/{number}{?colour,half}", completions={"number": lambda value: [value + "0"]})
    async def dish(
        number: Annotated[int, Field(ge=1)], colour: Colour = Colour.RED, half: Literal[1, 2] | None = None
    ) -> dict[str, Any]:
        return {"number": number, "colour": colour.value, "half": half}

    @app.resource("file://docs/{path*}")
    async def document(path: str) -> str:
        return path


def _add_prompts(app: MCPServer) -> None:
    @app.prompt(icons=[ICON], meta={"example.com/a": 1}, completions={"who": complete_who})
    async def greet(
        who: Annotated[str, Field(description="Whom to greet")], colour: Colour = Colour.RED, times: int = 1
    ) -> str:
        """Greet somebody."""
        return f"Greet {who} {times} times in {colour.value}"

    @app.prompt
    def everything() -> PromptResult:
        """Say something in every kind of content."""
        blocks: list[str | Content | Message] = [
            "words",
            Message(Image(b"hello"), role="assistant"),
            Audio(b"hello"),
            EmbeddedResource("menu://today", text="Fish"),
            EmbeddedResource("menu://logo", blob=b"\x89PNG"),
            ResourceLink("menu://today", "today", title="Today", icons=[ICON]),
        ]
        return PromptResult(blocks, description="Everything", meta={"example.com/a": 1})

    app.prompt("broken", description="Fails")(_fail)
    app.prompt("many", completions={"it": lambda value: [str(number) for number in range(250)]})(_say)
    app.prompt("stuck", completions={"it": _fail_completing})(_say)


async def complete_who(value: str, others: dict[str, str]) -> list[str]:
    """Complete a name."""
    return [f"{name} {others.get('colour', '')}".strip() for name in ("Ada", "Alan") if name.startswith(value)]


def _fail() -> str:
    raise ValueError(SECRET)


def _say(it: str) -> str:
    return it


def _fail_completing(value: str) -> list[str]:
    raise ValueError(SECRET + value)


async def talk(context: Context) -> str:
    """Report progress, some of it no progress, and log."""
    for step in (1, 1, 2, 0.5, 3):
        await context.report_progress(step, 3)
    await context.log("debug", "small")
    await context.log("error", {"what": "big"}, logger="kitchen")
    return "talked"


async def ask(context: Context) -> str:
    """Ask two questions, one after the other."""
    answers = []
    for key in ("name", "colour"):
        answer = await context.elicit(f"Your {key}?", FORM, key=key)
        answers.append(answer.content["name"] if answer.action == "accept" else answer.action)
    return " likes ".join(answers)


async def hang() -> str:
    """Take longer than there is time."""
    await asyncio.Event().wait()
    return "never"


def _add_waiting(app: MCPServer, gates: Gates) -> None:
    """Add what talks, asks or waits."""

    async def talk_resource(context: Context) -> str:
        return await talk(context)

    async def talk_prompt(context: Context) -> str:
        return await talk(context)

    async def ask_resource(context: Context) -> str:
        return await ask(context)

    async def ask_prompt(context: Context) -> str:
        return await ask(context)

    async def held(key: str) -> str:
        await gates.hold(key)
        return key

    app.resource("menu://talk")(talk_resource)
    app.resource("menu://ask")(ask_resource)
    app.resource("menu://held/{key}")(held)
    app.resource("menu://slow", timeout=TIMEOUT)(hang)
    app.prompt("talk")(talk_prompt)
    app.prompt("ask")(ask_prompt)
    app.prompt("held")(held)
    app.prompt("slow", timeout=TIMEOUT)(hang)
