"""What FastMCP sends of a component: its titles, and its tags in ``_meta.fastmcp``."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import FastMCP, MCPServer
from funcmcp.testing import Client


@pytest.mark.parametrize(
    ("make", "options", "meta"),
    [
        (FastMCP, {}, {"a": 1, "fastmcp": {"tags": ["x", "y"]}}),
        (FastMCP, {"include_fastmcp_meta": False}, {"a": 1}),
        (MCPServer, {}, {"a": 1}),
    ],
)
async def test_clients_get_the_tags(make: type[FastMCP], options: dict[str, Any], meta: dict[str, Any]) -> None:
    mcp = make("tagged", **options)
    mcp.tool(name="tagged", tags={"y", "x"}, meta={"a": 1})(lambda: 1)
    mcp.resource("a://b", tags={"x"})(lambda: "b")
    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
        (resource,) = await client.list_resources()
    assert tool.meta == meta
    assert ("fastmcp" in resource.meta) == ("fastmcp" in meta)


@pytest.mark.parametrize(
    ("make", "title", "tool_title", "other_title"),
    [
        (FastMCP, None, "Get Url", None),
        (FastMCP, "Chosen", "Chosen", "Chosen"),
        (MCPServer, None, None, None),
        (MCPServer, "Chosen", "Chosen", "Chosen"),
    ],
)
async def test_only_tools_of_fastmcp_have_a_title_by_default(
    make: type[FastMCP], title: str | None, tool_title: str | None, other_title: str | None
) -> None:
    mcp = make("titles")
    mcp.tool(name="get_URL", title=title)(lambda: 1)
    mcp.prompt(name="get_URL", title=title)(lambda: "p")
    mcp.resource("a://b", name="get_URL", title=title)(lambda: "b")
    mcp.resource("a://b/{c}", name="get_URL", title=title)(lambda c: "b")
    async with Client(mcp) as client:
        (tool,), (prompt,) = await client.list_tools(), await client.list_prompts()
        (resource,), (template,) = await client.list_resources(), await client.list_resource_templates()
    assert tool.title == tool_title
    assert [item.title for item in (prompt, resource, template)] == [other_title] * 3
