"""The server that the wire tests talk to: tools as authors write them, and what they do wrong on purpose."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from funcmcp import Context, Elicit, InvalidParams, MCPError, MCPServer, ToolError
from funcmcp._authoring.results.content import Audio, EmbeddedResource, Image, ResourceLink, Text, ToolResult
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._state.sessions.store import SessionStore
from tests.server_options import grouped
from tests.wire.features import add_features
from tests.wire.gates import Gates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp import HTTPOptions
    from funcmcp._state.sessions.store import Handshake

TIMEOUT = 0.2

_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_REGION = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "flag": {"type": "boolean", "x-mcp-header": "Flag"},
        "nested": {"type": "object", "properties": {"inner": {"type": "string", "x-mcp-header": "Inner"}}},
    },
}


class PlainSessions(SessionStore):
    """Sessions without streams and subscriptions between their requests, in memory."""

    def __init__(self) -> None:
        self._sessions = MemorySessions()
        self.endings = self._sessions.endings

    async def create(self, handshake: Handshake) -> str:
        return await self._sessions.create(handshake)

    async def get(self, session_id: str) -> Handshake | None:
        return await self._sessions.get(session_id)

    async def end(self, session_id: str) -> bool:
        return await self._sessions.end(session_id)

    def __len__(self) -> int:
        return len(self._sessions)


@dataclass
class Offering:
    """A server under test: the application, its gates and its sessions."""

    app: MCPServer
    gates: Gates
    sessions: MemorySessions | PlainSessions


def offer(
    *,
    http: HTTPOptions | None = None,
    revisions: Sequence[str] = tuple(REVISIONS),
    sessions: MemorySessions | None = None,
    live: bool = False,
    page_size: int | None = None,
    **options: Any,
) -> Offering:
    """Return a server with every tool that the wire tests call."""
    store: Any = sessions
    if sessions is None:
        store = MemorySessions() if live else PlainSessions()
    arguments = grouped(**{"version": "1.0", "http": http, "revisions": revisions, "page_size": page_size, **options})
    app = MCPServer("wire", sessions=store, **arguments)
    gates = Gates()
    for function in (nothing, add, fail, every_block, ask, ask_both, ask_twice, ask_same_key, sample, log, checked):
        app.tool(function)
    app.tool(input_schema={"type": "object"})(echo)
    app.tool("region", input_schema=_REGION)(echo)
    add_held_tools(app, gates)
    return Offering(app, gates, store)


def offer_all(**options: Any) -> Offering:
    """Return a server with every resource, template and prompt, too; it can tell clients of both eras what changes."""
    offering = offer(**{"live": True, **options})
    add_features(offering.app, offering.gates)
    return offering


def add_held_tools(app: MCPServer, gates: Gates) -> None:
    """Add tools that wait at gates."""

    @app.tool
    async def wait(key: str) -> str:
        await gates.hold(key)
        return key

    @app.tool
    async def wait_quietly(key: str, context: Context) -> str:
        await gates.hold(key)
        return key

    @app.tool
    async def talk(context: Context, key: str | None = None) -> str:
        await context.report_progress(1)
        if key is not None:
            await gates.hold(key)
        await context.report_progress(2)
        return "talked"

    @app.tool(timeout=TIMEOUT)
    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    @app.tool(timeout=TIMEOUT)
    def stuck() -> str:
        gates.stuck.wait()
        return "late"


def nothing() -> str:
    """Do nothing."""
    return "nothing"


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments."""
    return arguments


async def checked(
    count: Annotated[int, Field(ge=1)],
    word: Annotated[str, Field(pattern="^(a+)+$")] = "a",
    code: Annotated[str, Field(pattern="^[a-z]+$")] = "a",
) -> str:
    """Take only what its schema says."""
    return f"{count} {word} {code}"


async def log(context: Context) -> str:
    """Send a log message."""
    await context.log("warning", "hot")
    return "logged"


async def ask(context: Context, greeting: str = "Hello") -> str:
    """Ask for a name."""
    return f"{greeting} {_answer_text(await context.elicit('Your name?', _FORM, key='name'))}"


async def ask_both(context: Context) -> str:
    """Ask two questions at once."""
    answers = await context.ask({"name": Elicit("Your name?", _FORM), "colour": Elicit("Your colour?", _FORM)})
    return f"{_answer_text(answers['name'])} likes {_answer_text(answers['colour'])}"


async def ask_twice(context: Context) -> str:
    """Ask one question after the other."""
    name = await context.elicit("Your name?", _FORM, key="name")
    colour = await context.elicit("Your colour?", _FORM, key="colour")
    return f"{_answer_text(name)} then {_answer_text(colour)}"


async def ask_same_key(context: Context) -> str:
    """Ask two questions under one key."""
    name = await context.elicit("Your name?", _FORM, key="it")
    colour = await context.elicit("Your colour?", _FORM, key="it")
    return f"{_answer_text(name)} is not {_answer_text(colour)}"


async def sample(context: Context) -> str:
    """Ask the client's model."""
    answer = await context.sample("Say something", max_tokens=10, key="said")
    return answer.text


def _answer_text(answer: Any) -> str:
    return str(answer.content["name"]) if answer.action == "accept" else str(answer.action)


async def every_block() -> ToolResult:
    """Return one of each kind of content."""
    return ToolResult(
        [
            Text("words"),
            Image(b"hello", mime_type="image/png"),
            Audio(b"hello", mime_type="audio/wav"),
            ResourceLink("orders://1", name="order"),
            EmbeddedResource("orders://2", text="second"),
        ],
        structured_content=["a", "list"],
    )


_SECRET = "secret-of-the-house"
_FAILURES: dict[str, BaseException] = {
    "tool error": ToolError("The kitchen is closed."),
    "tool error with a lone surrogate": ToolError("\ud800"),
    "invalid params": InvalidParams("No such table."),
    "invalid params with a lone surrogate": InvalidParams("\ud800"),
    "own code": MCPError(4711, "Out of stock.", {"left": 0}),
    "unsayable data": MCPError(4711, "Out of stock.", {"left": float("nan")}),
    "value error": ValueError(f"{_SECRET} in /etc/kitchen/keys.py"),
    "key error": KeyError(_SECRET),
    "os error": FileNotFoundError(2, "No such file", f"/etc/{_SECRET}"),
    "recursion": RecursionError(_SECRET),
    "memory": MemoryError(_SECRET),
    "timeout of its own": TimeoutError(_SECRET),
    "cancelled by itself": asyncio.CancelledError(_SECRET),
    "group": ExceptionGroup(_SECRET, [ValueError(_SECRET)]),
    "stop iteration": StopAsyncIteration(_SECRET),
}
_RETURNS: dict[str, object] = {
    "lone surrogate": "before \ud800 after",
    "lone surrogate inside": {"value": "before \ud800 after"},
    "nan": {"value": float("nan")},
    "infinity": {"value": float("inf")},
    "not json": {"value": object()},
    "nan in a result": ToolResult(["nan"], structured_content={"value": float("nan")}),
    "not json in a result": ToolResult(["object"], structured_content={"value": object()}),
    "secret in what is not json": {"value": {_SECRET: object()}},
}


async def fail(how: str) -> Any:
    """Fail in one of many ways."""
    if how in _RETURNS:
        return _RETURNS[how]
    if how in _FAILURES:
        raise _FAILURES[how]
    raise ValueError(how)
