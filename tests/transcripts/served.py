"""The small server that the transcripts were recorded with. What changes here changes what they say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from funcmcp import Context, Elicit, ListRoots, MCPServer, ProtocolOptions, Sample
from funcmcp._authoring.results.content import (
    Audio,
    Content,
    Contents,
    EmbeddedResource,
    Icon,
    Image,
    Message,
    ResourceInfo,
    ResourceLink,
)
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def serve() -> MCPServer:
    """Return the server."""
    mcp = MCPServer(
        "menu",
        version="1.0",
        instructions="Ask for the menu.",
        sessions="memory",
        protocol=ProtocolOptions(page_size=4),
    )
    for tool in (add, cook, greet_user, survey, wait, fail):
        mcp.tool(tool)
    about: dict[str, Any] = {"icons": [Icon("https://example.com/icon.png")], "meta": {"example.com/a": 1}}
    priority = {"audience": ["user"], "priority": 1}
    mcp.resource("menu://today", mime_type="text/markdown", size=6, annotations=priority, **about)(today)
    mcp.resource("menu://logo", mime_type="image/png")(logo)
    mcp.resource("menu://week")(week)
    mcp.resource("menu://greeting")(greeting)
    mcp.resource("menu://dishes/{dish}{?half}", completions={"dish": complete_dish})(dish)
    mcp.resource_lister("news")(news)
    mcp.prompt(completions={"dish": complete_dish}, **about)(praise)
    mcp.prompt(every_content)
    mcp.prompt(personal)
    return mcp


def change(mcp: MCPServer, what: str) -> None:
    """Change the server while it runs."""
    changes: dict[str, Callable[[], object]] = {
        "add a tool": lambda: mcp.tool("late")(lambda: "late"),
        "remove the tool": lambda: mcp.remove_tool("late"),
        "add a prompt": lambda: mcp.prompt("late")(lambda: "late"),
        "add a resource": lambda: mcp.resource("menu://late", name="late")(lambda: "late"),
        "stop": runtime_of(mcp).drain,
    }
    changes[what]()


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def cook(dish: str, context: Context) -> list[str | Content]:
    """Cook a dish, and tell how it goes."""
    await context.report_progress(1, 2, "Chopping")
    await context.log("debug", {"dish": dish}, logger="kitchen")
    await context.log("warning", "The oven is hot.")
    await context.report_progress(2, 2)
    return [dish, Image(b"png"), ResourceLink("menu://today", "today")]


async def greet_user(context: Context) -> str:
    """Ask the user for a name."""
    answer = await context.elicit("What is your name?", NAME, key="name")
    return f"Hello {answer.content['name']}" if answer.action == "accept" else "Hello"


async def survey(context: Context) -> str:
    """Ask the client's model and for its roots."""
    questions: dict[str, Sample | ListRoots] = {"dish": Sample("Name a dish.", max_tokens=20), "roots": ListRoots()}
    answers = await context.ask(questions)
    return f"{answers['dish'].text} in {len(answers['roots'])} roots"


async def wait(context: Context) -> str:
    """Begin, and never end."""
    await context.report_progress(1)
    await asyncio.Event().wait()
    return "never"


def fail() -> str:
    """Fail."""
    raise ValueError("the plates are broken")


def today() -> str:
    """Tell today's menu."""
    return "# Fish"


async def logo() -> bytes:
    """Show the logo."""
    return b"\x89PNG"


async def week() -> list[Contents]:
    """Tell the week's menu."""
    return [Contents("Fish", uri="menu://week/1"), Contents("Chips", uri="menu://week/2")]


async def greeting(context: Context) -> str:
    """Tell something personal."""
    return await _personal(context)


async def dish(dish: str, half: bool = False) -> dict[str, object] | None:
    """Tell about a dish."""
    return {"dish": dish, "half": half} if dish != "unicorn" else None


async def news() -> list[ResourceInfo]:
    """List the news."""
    return [ResourceInfo("news://1", "one", title="First", mime_type="text/plain")]


def complete_dish(value: str, others: dict[str, str]) -> list[str]:
    """Complete a dish."""
    return [name for name in ("fish", "fish and chips", "soup") if name.startswith(value) and name not in others]


def praise(
    dish: Annotated[str, Field(description="What to praise")], tone: Literal["warm", "cool"] = "warm"
) -> list[str | Message]:
    """Praise a dish."""
    return [f"Praise {dish}.", Message(f"In a {tone} tone?", role="assistant")]


def every_content() -> list[str | Content]:
    """Say something in every kind of content."""
    return ["words", Image(b"png"), Audio(b"wav"), EmbeddedResource("menu://today", text="# Fish")]


async def personal(context: Context) -> str:
    """Say something personal."""
    return await _personal(context)


async def _personal(context: Context) -> str:
    answers = await context.ask({"name": Elicit("What is your name?", NAME)})
    return f"Fish for {answers['name'].content['name']}"
