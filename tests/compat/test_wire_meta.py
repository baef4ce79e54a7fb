"""What FastMCP sends of a component: its titles, and its tags in ``_meta.fastmcp``."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import Context, FastMCP, MCPServer, TextResource, Tool, ToolTransform, ToolTransformConfig
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
    mcp.tool(name="get_url", title=title)(lambda: 1)
    mcp.prompt(name="get_url", title=title)(lambda: "p")
    mcp.resource("a://b", name="get_url", title=title)(lambda: "b")
    mcp.resource("a://b/{c}", name="get_url", title=title)(lambda c: "b")
    async with Client(mcp) as client:
        (tool,), (prompt,) = await client.list_tools(), await client.list_prompts()
        (resource,), (template,) = await client.list_resources(), await client.list_resource_templates()
    assert tool.title == tool_title
    assert [item.title for item in (prompt, resource, template)] == [other_title] * 3


async def test_lists_have_titles_of_tools_only_and_all_arguments() -> None:
    mcp = FastMCP("lists")
    mcp.tool(lambda: "x", name="get_it", annotations={"readOnlyHint": True})
    mcp.resource("r://a", name="a")(lambda: "x")
    mcp.resource("r://t/{b}", name="t", title="T")(lambda b: b)
    mcp.prompt(lambda: "x", name="p")
    mcp.add_resource(TextResource("r://text", "text", name="text"))
    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
        resources = await client.list_resources()
        (template,) = await client.list_resource_templates()
        (prompt,) = await client.list_prompts()
    assert (tool["title"], tool["annotations"]) == ("Get It", {"readOnlyHint": True})
    assert [{"title", "description"} & resource.keys() for resource in resources] == [set(), set()]
    assert template["title"] == "T"
    assert prompt == {"name": "p", "arguments": [], "_meta": {"fastmcp": {"tags": []}}}


async def test_a_changed_tool_has_the_title_of_its_name_and_its_tags() -> None:
    mcp = FastMCP("lists")

    @mcp.tool
    def get_it() -> str:
        return "x"

    mcp.add_tool(Tool.from_tool(await mcp.get_tool("get_it"), name="fetch"))
    mcp.add_transform(ToolTransform({"get_it": ToolTransformConfig(tags={"new"})}))
    async with Client(mcp) as client:
        listed = {tool.name: tool for tool in await client.list_tools()}
    assert listed["fetch"]["title"] == "Fetch"
    assert "annotations" not in listed["fetch"]
    assert listed["fetch"]["_meta"] == {"fastmcp": {"tags": []}}
    assert listed["get_it"]["_meta"]["fastmcp"]["tags"] == ["new"]


async def test_the_meta_of_a_request_is_a_dict_with_attributes() -> None:
    mcp = FastMCP("meta")

    @mcp.tool
    def read(ctx: Context) -> str:
        meta: Any = ctx.request_context.meta
        return f"{meta.get('my')} {meta.my} {meta.progressToken} {meta.model_extra['my']}"

    async with Client(mcp) as client:
        assert (await client.call_tool("read", meta={"my": "v"})).text == "v v None v"


@pytest.mark.parametrize("decorator", ["tool", "prompt"])
def test_a_decorator_takes_a_function_or_a_name(decorator: str) -> None:
    mcp = FastMCP("refused")
    with pytest.raises(TypeError, match="must be a function, string, or None"):
        getattr(mcp, decorator)(5)
    with pytest.raises(ValueError, match="You must provide a name for lambda functions"):
        getattr(mcp, decorator)(name="")(lambda: "x")
    assert repr(mcp) == "FastMCP('refused')"
