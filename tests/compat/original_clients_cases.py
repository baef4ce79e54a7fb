"""What a test of a server that moved does with FastMCP's client. It runs where FastMCP is installed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from funcmcp.compat.fastmcp import Client, Context, FastMCP
from funcmcp.compat.fastmcp.client.transports import FastMCPTransport
from funcmcp.compat.fastmcp.exceptions import McpError, ToolError

mcp = FastMCP("shop")


@mcp.tool
async def add(first: int, second: int, ctx: Context) -> int:
    """Add two numbers."""
    await ctx.info("adding")
    if first < 0:
        raise ToolError("too small")
    return first + second


@mcp.tool
async def ask(ctx: Context) -> str:
    """Ask the user."""
    answer: Any = await ctx.elicit("How many?", int)
    return f"{answer.action} {answer.data}"


async def outcomes() -> dict[str, Any]:
    """Return what the client sees."""
    found: dict[str, Any] = {"logs": [], "errors": []}

    async def log(message: Any) -> None:
        found["logs"].append(str(message.level))

    async def answer(*_: Any) -> Any:
        return {"value": 3}

    async with Client(mcp, log_handler=log, elicitation_handler=answer) as client:
        found["sum"] = (await client.call_tool("add", {"first": 1, "second": 2})).structured_content["result"]
        found["answer"] = (await client.call_tool("ask", {})).content[0].text
        for error, call in (
            (ToolError, client.call_tool("add", {"first": -1, "second": 2})),
            (McpError, client.read_resource("data://none")),
        ):
            try:
                await call
            except error as failure:
                found["errors"].append([type(failure).__name__, str(failure)])
    async with Client(FastMCPTransport(mcp)) as client:
        found["tools"] = [tool.name for tool in await client.list_tools()]
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(outcomes())))
