"""The server that `memory` attacks: all endpoints, sessions and tasks in memory, tools that wait, ask and report."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from funcmcp import Context, HTTPOptions, MCPServer

mcp = MCPServer("Attacked", sessions="memory", http=HTTPOptions(sse="/sse", websocket="/ws"))


@mcp.tool(task="optional")
async def echo(value: Any) -> str:
    """Return as many characters as the value says."""
    return "x" * min(int(value), 4_000_000)


@mcp.tool(task="optional", timeout=3600)
async def wait(value: Any) -> None:
    """Wait with the value."""
    await asyncio.Event().wait()


@mcp.tool(task="optional", timeout=3600)
async def ask(context: Context, value: Any) -> str:
    """Ask for a text."""
    answer = await context.elicit("Your text?", str)
    return answer.action


@mcp.tool(timeout=3600)
async def report(context: Context, count: int, text: str) -> str:
    """Send messages before the result."""
    for number in range(min(count, 5000)):
        await context.report_progress(number, count, text)
        await context.log("warning", text)
    return "reported"


@mcp.resource("item://{name}", completions={"name": lambda value: [value]})
async def item(name: str) -> str:
    """Return the name."""
    return name


@mcp.prompt(completions={"who": lambda value: [value]})
async def greet(who: str) -> str:
    """Greet."""
    return who


if __name__ == "__main__":
    mcp.run("http", host="127.0.0.1", port=int(sys.argv[1]))
