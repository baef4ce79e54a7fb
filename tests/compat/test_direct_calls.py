"""Calls of a server's own tools."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from typing import Any

import pytest

from funcmcp.compat import FastMCP, Middleware, NotFoundError, ToolError

MARK = {"fastmcp": {"wrap_result": True}}


async def test_calls_in_the_process_return_and_raise_what_fastmcp_does() -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    def later(day: dt.date, by: dt.timedelta, order: uuid.UUID) -> str:
        return f"{day + by} {order}"

    @mcp.tool(timeout=0.01)
    async def slow() -> str:
        await asyncio.Event().wait()
        return "never"

    @mcp.tool(timeout=0.0)
    def never() -> str:
        return "never"

    with pytest.raises(ToolError, match=r"^Error calling tool 'never': Tool 'never' execution timed out after 0.0s$"):
        await mcp.call_tool("never")
    order = uuid.uuid4()
    arguments = {"day": dt.date(2026, 1, 1), "by": dt.timedelta(days=1), "order": order}
    result = await mcp.call_tool("later", arguments)
    assert (result.content[0].text, result.meta) == (f"2026-01-02 {order}", MARK)
    with pytest.raises(NotFoundError):
        await mcp.call_tool("unknown")
    with pytest.raises(ToolError, match=r"^Error calling tool 'slow': Tool 'slow' execution timed out after 0.01s$"):
        await mcp.call_tool("slow")


async def test_a_circle_of_causes_ends_a_call() -> None:
    mcp = FastMCP("shop")

    class Circular(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            error = ToolError("round and round")
            raise error from error

    @mcp.tool
    async def add() -> int:
        return 1

    mcp.add_middleware(Circular())
    with pytest.raises(ToolError, match="round and round"):
        await mcp.call_tool("add")
