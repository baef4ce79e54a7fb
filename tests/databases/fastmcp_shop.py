"""The shop on FastMCP: fastmcp_shop.py URL ROUNDS makes the calls, and prints the texts in the table as JSON.

It runs in the environment of scripts/setup-fastmcp.sh.
"""

# ruff: noqa: B008 - dependencies are defaults in FastMCP

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.dependencies import Depends
from fastmcp.exceptions import McpError, ToolError
from fastmcp.tools import ToolResult

sys.path.insert(0, ".")
from tests.databases.shop import Database, add


def add_failing(mcp: FastMCP, database: Database) -> None:
    @mcp.tool
    async def raises(session: Any = Depends(database.session)) -> str:
        await add(session, "raises")
        raise ValueError

    @mcp.tool
    async def tool_error(session: Any = Depends(database.session)) -> str:
        await add(session, "tool error")
        raise ToolError("Sold out.")

    @mcp.tool(timeout=0.1)
    async def slow(session: Any = Depends(database.session)) -> str:
        await add(session, "slow")
        await asyncio.Event().wait()
        return "never"

    @mcp.tool
    async def failing_commit(session: Any = Depends(database.session)) -> str:
        await add(session, "failing commit", item="no such item")
        return "written"

    @mcp.tool
    async def wrong_type(session: Any = Depends(database.session)) -> int:
        await add(session, "wrong type")
        return "text"  # type: ignore[return-value]

    @mcp.resource("shop://failing")
    async def failing(session: Any = Depends(database.session)) -> str:
        await add(session, "failing resource")
        raise ValueError

    @mcp.prompt
    async def failing_prompt(session: Any = Depends(database.session)) -> str:
        await add(session, "failing prompt")
        raise ValueError


def add_succeeding(mcp: FastMCP, database: Database) -> None:
    @mcp.tool
    async def order(session: Any = Depends(database.session)) -> str:
        await add(session, "order")
        return "ordered"

    @mcp.tool
    async def order_in_a_thread(session: Any = Depends(database.session)) -> str:
        await add(session, "order in a thread")
        return "ordered"

    @mcp.tool
    async def returns_an_error(session: Any = Depends(database.session)) -> ToolResult:
        await add(session, "returns an error")
        return ToolResult(content="Half of it was ordered.", is_error=True)

    @mcp.resource("shop://{item}/visits")
    async def visits(item: str, session: Any = Depends(database.session)) -> str:
        await add(session, "resource")
        return item

    @mcp.prompt
    async def advice(session: Any = Depends(database.session)) -> str:
        await add(session, "prompt")
        return "Buy tea."


async def main(url: str, rounds: int) -> None:
    database = Database(url)
    await database.create()
    mcp = FastMCP("Shop")
    add_failing(mcp, database)
    add_succeeding(mcp, database)
    async with Client(mcp) as client:
        for _ in range(rounds):
            for name in ("raises", "tool_error", "slow", "failing_commit"):
                result = await client.call_tool(name, raise_on_error=False)
                assert result.is_error, name
            for name in ("order", "order_in_a_thread", "returns_an_error"):
                await client.call_tool(name, raise_on_error=False)
            with contextlib.suppress(RuntimeError):  # the client refuses the result
                await client.call_tool("wrong_type")
            with contextlib.suppress(McpError):
                await client.read_resource("shop://failing")
            with contextlib.suppress(McpError):
                await client.get_prompt("failing_prompt")
            await client.read_resource("shop://tea/visits")
            await client.get_prompt("advice")
        texts = await database.texts()
    await database.engine.dispose()
    print(json.dumps(texts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
