"""FastMCP's middleware that limits the size of results of tools."""

from __future__ import annotations

import pytest

from funcmcp.compat import FastMCP, ResponseLimitingMiddleware, ToolResult
from funcmcp.content import Image, Text
from funcmcp.testing import Client


async def test_results_are_cut() -> None:
    mcp = FastMCP("limits", middleware=[ResponseLimitingMiddleware(max_size=200, truncation_suffix=" [cut]")])

    @mcp.tool
    def text() -> dict[str, str]:
        return {"text": "ä" * 500}

    @mcp.tool
    def short() -> str:
        return "short"

    @mcp.tool
    def failed() -> ToolResult:
        return ToolResult([Text("x" * 300), Text("y")], is_error=True)

    @mcp.tool
    def image() -> ToolResult:
        return ToolResult(Image(b"0" * 400))

    async with Client(mcp) as client:
        assert all(tool.output_schema is None for tool in await client.list_tools())
        result = await client.call_tool("text")
        assert result.text.endswith("ä [cut]")
        assert len(result.text.encode()) <= 200
        assert result.structured_content is None
        assert (await client.call_tool("short")).text == "short"
        failure = await client.call_tool("failed")
        assert (failure.is_error, failure.text[:3], failure.text[-6:]) == (True, "xxx", " [cut]")
        assert (await client.call_tool("image")).text.endswith(" [cut]")


async def test_only_some_tools_are_limited() -> None:
    mcp = FastMCP("limits", middleware=[ResponseLimitingMiddleware(max_size=100, tools=["small"])])
    mcp.tool(lambda: ToolResult("x" * 200), name="large")
    mcp.tool(lambda: ToolResult("x" * 200), name="small")
    async with Client(mcp) as client:
        assert (await client.call_tool("large")).text == "x" * 200
        assert (await client.call_tool("small")).text.endswith("[Response truncated due to size limit]")


def test_a_size_is_above_zero() -> None:
    with pytest.raises(ValueError, match="max_size must be positive, got 0"):
        ResponseLimitingMiddleware(max_size=0)
