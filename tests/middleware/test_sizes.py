"""Middleware that limits the sizes of arguments and results."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError, MCPServer
from funcmcp.middleware import limit_sizes


def shop(middleware: Any) -> MCPServer:
    mcp = MCPServer("shop", middleware=[middleware])
    for name in ("say", "other"):
        mcp.tool(name, input_schema={"type": "object", "properties": {"text": {"type": "string"}}})(lambda text: text)
    mcp.prompt("greet")(lambda name: name)
    mcp.resource("data://info", name="info")(lambda: "x" * 500)
    return mcp


async def test_large_arguments_are_refused() -> None:
    mcp = shop(limit_sizes(["say", "greet"], arguments=20))
    assert (await mcp.call_tool("say", {"text": "a"})).text == "a"
    result = await mcp.call_tool("say", {"text": "a" * 20})
    assert (result.is_error, result.text) == (True, "The arguments have 31 bytes. say takes 20 at most.")
    with pytest.raises(MCPError, match="The arguments have 31 bytes"):
        await mcp.get_prompt("greet", {"name": "a" * 20})
    assert not (await mcp.call_tool("other", {"text": "a" * 20})).is_error


async def test_large_results_are_refused() -> None:
    mcp = shop(limit_sizes(results=400))
    assert (await mcp.call_tool("say", {"text": "a"})).text == "a"
    result = await mcp.call_tool("say", {"text": "a" * 500})
    assert result.is_error
    assert "say returns 400 at most. Ask for less" in result.text
    with pytest.raises(MCPError, match="data://info returns 400 at most"):
        await mcp.read_resource("data://info")
    assert len(await mcp.list_tools()) == 2


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="limit_sizes needs arguments=, results= or both"):
        limit_sizes()
    with pytest.raises(ValueError, match="with 1 byte or more"):
        limit_sizes(results=0)
    with pytest.raises(TypeError, match="not one string"):
        limit_sizes("say", results=1)
