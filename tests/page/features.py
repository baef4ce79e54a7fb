"""A server with a feature for each control of the page."""

from __future__ import annotations

import asyncio
import base64
import threading
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel

from funcmcp import Context, Header, MCPServer, ServerInfo, ToolError
from funcmcp.content import Audio, EmbeddedResource, Image, ResourceLink, Text
from funcmcp.http import Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")
FIELDS = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "Any text"},
        "whole": {"type": "integer", "minimum": 0},
        "part": {"type": "number"},
        "sure": {"type": "boolean"},
        "maybe": {"type": "boolean"},
        "color": {"enum": ["red", 7, None]},
        "size": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}], "default": "l"},
        "day": {"type": "string", "format": "date"},
        "moment": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "days": {"type": "array", "items": {"enum": ["mon", "tue", "wed"]}, "uniqueItems": True},
        "person": {"$ref": "#/$defs/person"},
        "partner": {"$ref": "#/$defs/person", "title": "Partner"},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "nothing": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
        "code": {"type": ["integer", "string"]},
        "limit": {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]},
        "start": {"type": "string", "format": "time"},
        "length": {"type": "string", "format": "duration"},
        "photo": {"type": "string", "contentEncoding": "base64"},
        "pay": {
            "title": "Payment",
            "anyOf": [{"$ref": "#/$defs/card"}, {"$ref": "#/$defs/bank"}, {"type": "null"}],
        },
        "note": {"type": "string", "default": "none"},
        "tree": {"$ref": "#/$defs/tree"},
    },
    "required": ["text", "whole", "sure", "person", "tags"],
    "$defs": {
        "person": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "born": {"type": "string", "format": "date"}},
            "required": ["name"],
        },
        "card": {
            "type": "object",
            "title": "Card",
            "properties": {"kind": {"const": "card"}, "number": {"type": "string"}},
            "required": ["kind", "number"],
        },
        "bank": {
            "type": "object",
            "properties": {"kind": {"const": "bank"}, "iban": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["kind", "iban"],
        },
        "tree": {"type": "object", "properties": {"leaf": {"type": "string"}, "branch": {"$ref": "#/$defs/tree"}}},
    },
}


class Seat(BaseModel):
    """The answer to a question."""

    row: int
    window: bool = False


class Features:
    """The server, and the arguments and the progress of its calls.

    Attributes:
        mcp: The server.
        calls: The arguments of the calls of `fields`.
        cancelled: Is set when a call of `wait` or `flood` is cancelled.
        proceed: Lets `wait`, `flood` and `job` continue. A request to /proceed sets it.
    """

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.cancelled = threading.Event()
        self.proceed = asyncio.Event()
        self.mcp = mcp = MCPServer(
            "features", version="1.2.3", instructions="Use the tools.", info=ServerInfo(title="All features")
        )
        mcp.tool(input_schema=FIELDS)(self.fields)
        mcp.tool(destructive=True, idempotent=True)(self.wait)
        read_only: tuple[Callable[..., Any], ...] = (
            *(self.seat, self.link, self.model, self.roots, self.media, self.fail),
            *(self.table, self.header, self.flood, self.nothing),
        )
        for function in read_only:
            mcp.tool(read_only=True)(function)
        mcp.tool(task="required")(self.job)
        mcp.resource("notes://today", mime_type="application/json")(today)
        mcp.resource("notes://files/{+path}{?lang}")(file)
        mcp.custom_route("/proceed", methods=["POST"])(self.release)
        mcp.prompt(completions={"city": lambda text: [city for city in ("Bern", "Berlin") if city.startswith(text)]})(
            greet
        )

    async def release(self, request: Request) -> Response:
        """Set `proceed`."""
        self.proceed.set()
        return Response(None, 204)

    def fields(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments."""
        self.calls.append(arguments)
        return arguments

    async def wait(self, context: Context) -> str:
        """Report progress and wait."""
        await context.report_progress(2, 5, "Halfway <b>there</b>")
        await context.warning({"left": 3}, "clock")
        try:
            await self.proceed.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "It was worth it."

    async def flood(self, count: int, context: Context) -> str:
        """Send messages as quickly as possible, and wait."""
        for number in range(1, count + 1):
            await context.info(f"line {number}")
            await context.report_progress(number, count)
        try:
            await self.proceed.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "All messages are sent."

    def nothing(self) -> str:
        """Return an empty text."""
        return ""

    async def seat(self, context: Context) -> str:
        """Ask for a seat."""
        answer = await context.elicit("Which seat?", Seat)
        if answer.action != "accept":
            return f"You {answer.action}."
        return f"Row {answer.content.row}, window {answer.content.window}."

    async def link(self, url: str, context: Context) -> str:
        """Ask the user to open a page."""
        answer = await context.elicit_url("Pay there.", url)
        return f"You {answer.action}."

    async def model(self, context: Context) -> str:
        """Ask a language model."""
        answer = await context.sample("What is the capital of France?", max_tokens=9)
        return f"The model said {answer.text}."

    async def roots(self, context: Context) -> list[str]:
        """Ask for folders."""
        return [root.uri for root in await context.list_roots()]

    def media(self) -> list[Text | Image | Audio | ResourceLink | EmbeddedResource]:
        """Return one block of each kind."""
        return [
            Text("Plain <i>text</i>"),
            Image(PNG),
            Audio(WAV),
            ResourceLink("notes://today", "today", title="The note of today"),
            EmbeddedResource("notes://inner", text='{"inner": true}', mime_type="application/json"),
            EmbeddedResource("notes://bytes", blob=b"\x00\x01", mime_type="application/zip"),
        ]

    def fail(self) -> str:
        """Fail."""
        raise ToolError("It is <em>broken</em>.")

    def table(self) -> list[dict[str, Any]]:
        """Return rows."""
        return [{"name": "soup", "price": 4.5}, {"name": "bread", "price": 2}]

    def header(self, region: Annotated[str, Header("Region")]) -> str:
        """Take an argument that a header repeats."""
        return f"Region {region}"

    async def job(self, context: Context) -> str:
        """Work as a task."""
        answer = await context.elicit("Shall it begin?", Seat)
        await context.report_progress(1, 2, "working")
        if answer.action != "accept":
            await self.proceed.wait()
        return f"The task is over: {answer.action}."


def today() -> dict[str, Any]:
    """Return a note."""
    return {"note": "Lentil soup", "number": 9007199254740993}


def file(path: str, lang: str = "en") -> str:
    """Return a file."""
    return f"{path} in {lang}"


def greet(city: str, mood: str = "kind") -> str:
    """Greet a city."""
    return f"A {mood} greeting to {city}"
