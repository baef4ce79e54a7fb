"""FastMCP's middleware that adds tools to a server."""

from __future__ import annotations

import pytest

from funcmcp.compat import (
    FastMCP,
    PromptToolMiddleware,
    ResourceToolMiddleware,
    Tool,
    ToolInjectionMiddleware,
)
from funcmcp.testing import Client


def tool(text: str, name: str = "hello") -> Tool:
    """Return a tool that answers with a text."""
    made: Tool = Tool.from_function(lambda: text, name=name, tags={"extra"})
    return made


async def test_injected_tools_replace_others_and_no_rule_hides_them() -> None:
    mcp = FastMCP("tools")
    mcp.tool(lambda: "before", name="hello")
    mcp.add_middleware(ToolInjectionMiddleware([tool("injected"), tool("other", "other")]))
    mcp.add_middleware(ToolInjectionMiddleware([tool("second")]))
    mcp.tool(lambda: "after", name="hello")
    mcp.disable(tags={"extra"})
    parent = FastMCP("parent")
    parent.mount(mcp, prefix="child")
    async with Client(mcp) as client, Client(parent) as outer:
        assert [item.name for item in await client.list_tools()] == ["hello", "other"]
        assert (await client.call_tool("hello")).text == "injected"
        assert (await outer.call_tool("child_hello")).text == "injected"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_resources_and_prompts_become_tools(revision: str) -> None:
    mcp = FastMCP("tools", middleware=[PromptToolMiddleware(), ResourceToolMiddleware()])

    @mcp.resource("note://one")
    def note() -> str:
        return "First."

    @mcp.prompt
    def greet(name: str) -> str:
        return f"Hello {name}"

    async with Client(mcp, revision=revision) as client:
        names = {item.name for item in await client.list_tools()}
        assert names == {"list_prompts", "get_prompt", "list_resources", "read_resource"}
        assert "First." in (await client.call_tool("read_resource", {"uri": "note://one"})).text
        assert (
            "Hello Ada" in (await client.call_tool("get_prompt", {"name": "greet", "arguments": {"name": "Ada"}})).text
        )
