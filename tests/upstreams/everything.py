"""A server that uses everything of the protocol, as an upstream of tests."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

from funcmcp import Context, MCPError, MCPServer, ProtocolOptions, ToolError
from funcmcp.providers import Provider, Tool
from funcmcp.state import MemorySessions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._server.calls.context import RequestContext

ERAS = {"handshake": "2025-11-25", "per-request": "2026-07-28"}
PAIRS = [(client, upstream) for client in ERAS for upstream in ERAS]

RAW_RESULT: dict[str, Any] = {
    "content": [{"type": "text", "text": "raw", "vendor": {"deep": [1, 1.0, 12345678901234567890, None, "é"]}}],
    "structuredContent": {"large": 2**80, "float": 1.0, "null": None, "empty": {}},
    "_meta": {"example.com/trace": "x"},
    "vendorMember": [True],
}


class Everything:
    """A server with a tool for each message of the protocol.

    Args:
        revisions: The revisions that it supports.
        report: Receives "began" when the tool `wait` runs, and "cancelled" when it is cancelled.

    Attributes:
        mcp: The server.
    """

    def __init__(self, revisions: Sequence[str], report: Callable[[str], None]) -> None:
        self.mcp = MCPServer("Everything", protocol=ProtocolOptions(revisions=revisions), sessions=MemorySessions())
        self._report = report
        self.mcp.add_provider(_RawTools())
        tools: list[Callable[..., Any]] = [self.echo, self.wait, self.steps, self.speak, self.ask, self.ask_twice]
        tools += [self.open_url, self.sample, self.roots, self.fail, self.refuse, self.look, self.change]
        for tool in tools:
            self.mcp.tool(tool)
        for tool in (self.report, self.survey, self.endless):
            self.mcp.tool(task="optional")(tool)
        self.mcp.resource("memo://note")(self.note)
        self.mcp.prompt(self.greet)

    async def echo(self, text: str) -> str:
        """Return a text."""
        return text

    async def wait(self) -> None:
        """Wait until the call is cancelled."""
        self._report("began")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self._report("cancelled")
            raise

    async def steps(self, count: int, context: Context) -> str:
        """Report progress."""
        for number in range(1, count + 1):
            await context.report_progress(number, count, f"step {number}")
        return "done"

    async def speak(self, context: Context) -> str:
        """Send log messages of three levels."""
        await context.log("debug", "quiet", "example.logger")
        await context.log("info", {"text": "usual"}, "example.logger")
        await context.log("error", "loud", "example.logger")
        return "spoken"

    async def ask(self, context: Context) -> str:
        """Ask the user for a name."""
        answer = await context.elicit("Your name?", str)
        return f"{answer.action}: {answer.content}"

    async def ask_twice(self, context: Context) -> str:
        """Ask the user two questions, one after the other."""
        first = await context.elicit("First?", str, key="first")
        second = await context.elicit("Second?", int, key="second")
        return f"{first.content} {second.content}"

    async def open_url(self, context: Context) -> str:
        """Let the user open a URL."""
        answer = await context.elicit_url("Sign in.", "https://example.com/sign-in")
        return answer.action

    async def sample(self, context: Context) -> str:
        """Let the client's model answer."""
        answer = await context.sample("Hello", max_tokens=10)
        return str(answer)

    async def roots(self, context: Context) -> list[str]:
        """List the client's roots."""
        return [root.uri for root in await context.list_roots()]

    async def fail(self) -> str:
        """Fail for the model."""
        raise ToolError("It is closed on Sundays.")

    async def refuse(self) -> str:
        """Fail with an error of JSON-RPC."""
        raise MCPError(-31999, "Quota used up", {"left": 0, "of": [1, 1.0]})

    async def look(self, context: Context) -> dict[str, Any]:
        """Return what the server sees of the client and its request."""
        capabilities = [name for name in ("elicitation", "sampling", "roots") if context.can(name)]
        return {"capabilities": capabilities, "meta": dict(context.meta), "client": dict(context.client_info)}

    async def change(self, name: str) -> str:
        """Add a tool, and report a change of the resource."""

        def added() -> str:
            return name

        self.mcp.tool(name=name)(added)
        self.mcp.notify_resource_updated("memo://note")
        return "changed"

    async def report(self, topic: str, context: Context) -> str:
        """Write a report."""
        self._report(f"report {topic}")
        await context.report_progress(1, 2, "half of it")
        return f"All about {topic}"

    async def survey(self, context: Context) -> str:
        """Ask two questions in a task."""
        name = await context.elicit("Your name?", str, key="name")
        age = await context.elicit("Your age?", int, key="age")
        return f"{name.content} {age.content}"

    async def endless(self) -> None:
        """Wait in a task until it is cancelled."""
        await self.wait()

    async def note(self) -> str:
        """A note."""
        return "remember"

    async def greet(self, name: str) -> str:
        """Greet somebody."""
        return f"Greet {name}."


class _RawTools(Provider):
    """A tool whose result has members that this library does not know."""

    components = frozenset({"tool"})

    async def list(self, caller: object) -> list[Tool]:
        del caller
        definition = {"name": "raw", "inputSchema": {"type": "object"}}
        return [Tool("raw", lambda: definition, _raw)]


async def _raw(context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
    del context, arguments
    return RAW_RESULT


def _report_to_test(event: str) -> None:
    """Send an event to the test that has started this process."""
    with socket.create_connection(("127.0.0.1", int(os.environ["EVENTS_PORT"]))) as connection:
        connection.sendall(event.encode() + b"\n")


if __name__ == "__main__":
    Everything(sys.argv[1:], _report_to_test).mcp.run("stdio")
