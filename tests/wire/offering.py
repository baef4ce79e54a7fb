"""The server that the wire tests talk to, and the gates by which they hold its tools in the middle of a call."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp.adapters.asgi import serve_http
from funcmcp.protocol.errors import InvalidParams, MCPError, ToolError
from funcmcp.protocol.headers import mirrored_parameters
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.server.dispatch import Server
from funcmcp.server.features import Tool
from funcmcp.server.options import ServerOptions
from funcmcp.sessions.memory import MemorySessions
from funcmcp.sessions.seal import KeyRing
from funcmcp.transports.http.options import HTTPOptions
from funcmcp.transports.http.streamable import StreamableHTTP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp.server.context import Context
    from funcmcp.sessions.store import SessionStore
    from tests.wire.peer import App

PATIENCE = 10.0
TIMEOUT = 0.2

NAME_QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": "Your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}
COLOUR_QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": "Your colour?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}


@dataclass
class Gates:
    """Where calls of the tool `wait` stand: tests see them arrive, let them go, and see how they end."""

    _events: dict[tuple[str, str], threading.Event] = field(default_factory=dict)
    _held: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Event]] = field(default_factory=dict)
    stuck: threading.Event = field(default_factory=threading.Event)

    def _event(self, what: str, key: str) -> threading.Event:
        return self._events.setdefault((what, key), threading.Event())

    async def hold(self, key: str) -> None:
        """Wait until the test opens the gate; tell what became of the call."""
        gate = asyncio.Event()
        self._held[key] = (asyncio.get_running_loop(), gate)
        self._event("arrived", key).set()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            self._event("cancelled", key).set()
            raise
        self._event("left", key).set()

    def open(self, key: str) -> None:
        """Let a call go on."""
        loop, gate = self._held[key]
        loop.call_soon_threadsafe(gate.set)

    def wait(self, what: str, key: str) -> None:
        """Wait until a call has `arrived`, `left` or been `cancelled`; fail after a while."""
        assert self._event(what, key).wait(PATIENCE), f"the call {key!r} never {what}"

    async def seen(self, what: str, key: str) -> None:
        """Wait as `wait` does, without holding the loop."""
        await asyncio.to_thread(self.wait, what, key)

    def was(self, what: str, key: str) -> bool:
        """Tell whether it has happened so far."""
        return self._event(what, key).is_set()


@dataclass
class Offering:
    """A server under test: the application, its gates and its sessions."""

    app: App
    gates: Gates
    sessions: MemorySessions


def text(value: object) -> dict[str, Any]:
    """Return a tool result of one text block."""
    return {"content": [{"type": "text", "text": str(value)}]}


def offer(
    *,
    http: HTTPOptions | None = None,
    revisions: Sequence[str] = tuple(REVISIONS),
    sessions: MemorySessions | None = None,
    page_size: int | None = None,
) -> Offering:
    """Return a server with every tool that the wire tests call."""
    server = Server(
        ServerOptions("wire", "1.0", page_size=page_size), [REVISIONS[date] for date in revisions], keys=KeyRing()
    )
    kept: SessionStore = MemorySessions() if sessions is None else sessions
    exchange = StreamableHTTP(server, kept, http or HTTPOptions(), path="/mcp")
    gates = Gates()
    for tool in _tools(gates):
        server.tools.add(tool)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await serve_http(exchange, scope, receive, send)

    return Offering(app, gates, kept)  # type: ignore[arg-type]


def _tool(name: str, handler: Any, properties: dict[str, Any] | None = None, **options: Any) -> Tool:
    schema = {"type": "object", "properties": properties or {}}
    if properties is None:
        schema["additionalProperties"] = False
    definition = {"name": name, "description": f"The wire tests call {name}.", "inputSchema": schema}
    return Tool(name, lambda: definition, handler, mirrored=mirrored_parameters(schema), **options)


def _tools(gates: Gates) -> list[Tool]:
    async def nothing(_context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
        return text("nothing")

    async def add(_context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        total = arguments["a"] + arguments["b"]
        return {**text(total), "structuredContent": {"result": total}}

    async def echo(_context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        return {**text("echo"), "structuredContent": arguments}

    async def wait(_context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        await gates.hold(arguments["key"])
        return text(arguments["key"])

    async def talk(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        token = context.meta.get("progressToken", "none")
        await context.notify("notifications/progress", {"progressToken": token, "progress": 1})
        if "key" in arguments:
            await gates.hold(arguments["key"])
        await context.notify("notifications/progress", {"progressToken": token, "progress": 2})
        return text("talked")

    async def log(context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
        await context.notify("notifications/message", {"level": "warning", "data": "hot"})
        return text("logged")

    async def stuck(_context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.to_thread(gates.stuck.wait, PATIENCE)
        return text("late")

    async def hang(_context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.Event().wait()
        return text("never")

    numbers = {"a": {"type": "integer"}, "b": {"type": "integer"}}
    region = {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "flag": {"type": "boolean", "x-mcp-header": "Flag"},
        "nested": {"type": "object", "properties": {"inner": {"type": "string", "x-mcp-header": "Inner"}}},
    }
    return [
        _tool("nothing", nothing),
        _tool("add", add, numbers),
        _tool("echo", echo, {}),
        _tool("region", echo, region),
        _tool("wait", wait, {"key": {"type": "string"}}),
        _tool("wait_quietly", wait, {"key": {"type": "string"}}, interactive=True),
        _tool("talk", talk, {"key": {"type": "string"}}, interactive=True),
        _tool("log", log, interactive=True),
        _tool("hang", hang, timeout=TIMEOUT),
        _tool("stuck", stuck, timeout=TIMEOUT),
        _tool("fail", _fail, {"how": {"type": "string"}}),
        _tool("ask", _ask, {"greeting": {"type": "string"}}, interactive=True),
        _tool("ask_both", _ask_both, interactive=True),
        _tool("ask_twice", _ask_twice, interactive=True),
        _tool("ask_same_key", _ask_same_key, interactive=True),
        _tool("sample", _sample, interactive=True),
        _tool("every_block", _every_block),
    ]


async def _ask(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    answers = await context.ask({"name": NAME_QUESTION})
    return text(f"{arguments.get('greeting', 'Hello')} {_said(answers['name'])}")


async def _ask_both(context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    answers = await context.ask({"name": NAME_QUESTION, "colour": COLOUR_QUESTION})
    return text(f"{_said(answers['name'])} likes {_said(answers['colour'])}")


async def _ask_twice(context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    name = await context.ask({"name": NAME_QUESTION})
    colour = await context.ask({"colour": COLOUR_QUESTION})
    return text(f"{_said(name['name'])} then {_said(colour['colour'])}")


async def _ask_same_key(context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    name = await context.ask({"it": NAME_QUESTION})
    colour = await context.ask({"it": COLOUR_QUESTION})
    return text(f"{_said(name['it'])} is not {_said(colour['it'])}")


async def _sample(context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "user", "content": {"type": "text", "text": "Say something"}}
    question = {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 10}}
    answers = await context.ask({"said": question})
    return text(answers["said"]["content"]["text"])


def _said(answer: dict[str, Any]) -> str:
    return str(answer["content"]["name"]) if answer["action"] == "accept" else str(answer["action"])


async def _every_block(_context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "content": [
            {"type": "text", "text": "words"},
            {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "orders://1", "name": "order"},
            {"type": "resource", "resource": {"uri": "orders://2", "text": "second"}},
        ],
        "structuredContent": ["a", "list"],
    }


_FAILURES: dict[str, BaseException] = {
    "tool error": ToolError("The kitchen is closed."),
    "tool error with a lone surrogate": ToolError("\ud800"),
    "invalid params": InvalidParams("No such table."),
    "invalid params with a lone surrogate": InvalidParams("\ud800"),
    "own code": MCPError(4711, "Out of stock.", {"left": 0}),
    "unsayable data": MCPError(4711, "Out of stock.", {"left": float("nan")}),
    "value error": ValueError("secret-of-the-house in /etc/kitchen/keys.py"),
    "key error": KeyError("secret-of-the-house"),
    "os error": FileNotFoundError(2, "No such file", "/etc/secret-of-the-house"),
    "recursion": RecursionError("secret-of-the-house"),
    "memory": MemoryError("secret-of-the-house"),
    "timeout of its own": TimeoutError("secret-of-the-house"),
    "cancelled by itself": asyncio.CancelledError("secret-of-the-house"),
    "group": ExceptionGroup("secret-of-the-house", [ValueError("secret-of-the-house")]),
    "stop iteration": StopAsyncIteration("secret-of-the-house"),
}
_RETURNS: dict[str, dict[str, Any]] = {
    "lone surrogate": text("before \ud800 after"),
    "nan": {**text("nan"), "structuredContent": {"value": float("nan")}},
    "infinity": {**text("infinity"), "structuredContent": {"value": float("inf")}},
    "not json": {**text("object"), "structuredContent": {"value": object()}},
}


async def _fail(_context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    how = arguments["how"]
    if how in _RETURNS:
        return _RETURNS[how]
    if how in _FAILURES:
        raise _FAILURES[how]
    raise ValueError(how)
