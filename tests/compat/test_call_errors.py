"""The errors of components in FastMCP's words, and what its lists have unasked."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError
from funcmcp.compat import (
    Context,
    FastMCP,
    NotFoundError,
    PromptError,
    ResourceError,
    TextResource,
    Tool,
    ToolError,
    ToolTransform,
    ToolTransformConfig,
)
from funcmcp.compat.mcp.shared.exceptions import MCPError as SDKError
from funcmcp.testing import Client


@pytest.mark.parametrize(
    ("error", "text", "masked"),
    [  # the answers of FastMCP 4.2.3
        (ToolError("bad"), "bad", "bad"),
        (ResourceError("bad"), "bad", "bad"),
        (ValueError("bad"), "Error calling tool 'fail': bad", "Error calling tool 'fail'"),
        (KeyError("bad"), "Error calling tool 'fail': 'bad'", "Error calling tool 'fail'"),
        (NotFoundError("bad"), "Error calling tool 'fail': bad", "Error calling tool 'fail'"),
        (SDKError(code=-32000, message="bad"), "Error calling tool 'fail': bad", "Error calling tool 'fail'"),
    ],
)
async def test_the_error_of_a_tool_is_a_result_that_names_it(error: Exception, text: str, masked: str) -> None:
    for masks, expected in ((False, text), (True, masked)):
        mcp = FastMCP("errors", mask_error_details=masks)

        @mcp.tool
        def fail() -> str:
            raise error

        async with Client(mcp) as client:
            result = await client.call_tool("fail", raise_on_error=False)
        assert (result.is_error, result.text) == (True, expected)


@pytest.mark.parametrize(
    ("error", "read", "rendered"),
    [
        (ResourceError("bad"), "bad", "bad"),
        (PromptError("bad"), "bad", "bad"),
        (ValueError("bad"), "Error reading resource 'r://1': bad", "Error rendering prompt 'fail': bad"),
    ],
)
async def test_errors_of_resources_and_prompts_name_them(error: Exception, read: str, rendered: str) -> None:
    mcp = FastMCP("errors")

    @mcp.resource("r://{number}")
    def read_it(number: str) -> str:
        raise error

    @mcp.prompt
    def fail() -> str:
        raise error

    async with Client(mcp) as client:
        for request, text in ((client.read_resource("r://1"), read), (client.get_prompt("fail"), rendered)):
            with pytest.raises(MCPError) as failure:
                await request
            assert (failure.value.code, failure.value.message) == (-32603, text)


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
    assert prompt == {"name": "p", "arguments": []}


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
    assert not {"_meta", "annotations"} & listed["fetch"].keys()
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
