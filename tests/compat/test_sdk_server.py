"""`MCPServer` of the official SDK: what clients see of errors and lists, and what direct calls return and raise."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from mcp import types

from funcmcp import MCPError
from funcmcp.compat import (
    Context,
    MCPServer,
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedResourceError,
    UnexpectedToolError,
)
from funcmcp.compat.mcp import TextResource
from funcmcp.compat.mcp.server import CacheHint
from funcmcp.testing import Client


def shop() -> MCPServer:
    mcp = MCPServer("Shop", resources=[TextResource("shop://terms", "Pay first.")])

    @mcp.tool()
    def price(item: str, ctx: Context, count: int = 1) -> int:
        assert isinstance(ctx, Context)
        failures = {"gold": KeyError("vault 7"), "gone": ToolError("Sold out.")}
        if item in failures:
            raise failures[item]
        return 5 * count

    @mcp.tool()
    async def quote(uri: str, ctx: Context) -> str:
        return "".join(str(part.content) for part in await ctx.read_resource(uri))

    @mcp.resource("shop://shelves/{name}")
    def shelf(name: str) -> dict[str, str]:
        failures = {
            "broken": KeyError("vault 7"),
            "lost": ResourceNotFoundError("No such shelf."),
            "closed": ResourceError("Closed."),
        }
        if name in failures:
            raise failures[name]
        return {"shelf": name}

    @mcp.prompt()
    def greet(name: str) -> str:
        if name == "broken":
            raise KeyError("vault 7")
        return f"Hello {name}"

    return mcp


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("price", {"item": "gold"}, "Error executing tool price"),
        ("price", {"item": "gone"}, "Error executing tool price: Sold out."),
        ("price", {"item": "tea", "count": "many"}, "Error executing tool price: count: must be an integer"),
        ("cost", {}, "Unknown tool: cost"),
        ("quote", {"uri": "shop://none"}, "Error executing tool quote: Unknown resource: shop://none"),
        ("quote", {"uri": "shop://shelves/closed"}, "Error executing tool quote: Closed."),
        (
            *("quote", {"uri": "shop://shelves/broken"}),
            "Error executing tool quote: Error creating resource from template shop://shelves/broken",
        ),
    ],
)
async def test_a_call_fails_with_the_text_of_the_sdk(name: str, arguments: dict[str, Any], text: str) -> None:
    mcp = shop()
    async with Client(mcp) as client:
        result = await client.call_tool(name, arguments, raise_on_error=False)
        assert (result.is_error, result.text) == (True, text)
    with pytest.raises(ToolError) as error:
        await mcp.call_tool(name, arguments)
    assert str(error.value) == text
    assert isinstance(error.value, UnexpectedToolError) == (name != "cost" and text.endswith(("price", "broken")))


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("uri", "code", "text", "kind"),
    [
        ("shop://none", -32602, "Unknown resource: shop://none", ResourceNotFoundError),
        ("shop://shelves/..", -32602, "Unknown resource: shop://shelves/..", ResourceNotFoundError),
        ("shop://shelves/lost", -32602, "No such shelf.", ResourceNotFoundError),
        ("shop://shelves/closed", -32603, "Closed.", ResourceError),
        (
            *("shop://shelves/broken", -32603),
            *("Error creating resource from template shop://shelves/broken", UnexpectedResourceError),
        ),
    ],
)
async def test_a_read_fails_with_the_error_of_the_sdk(
    revision: str, uri: str, code: int, text: str, kind: type[Exception]
) -> None:
    mcp = shop()
    async with Client(mcp, revision=revision) as client:
        with pytest.raises(MCPError) as error:
            await client.read_resource(uri)
        assert (error.value.code, error.value.message, error.value.data) == (code, text, {"uri": uri})
    with pytest.raises(kind) as direct:
        await mcp.read_resource(uri)
    assert text in str(direct.value)


async def test_a_prompt_fails_with_the_text_of_the_sdk() -> None:
    mcp = shop()
    async with Client(mcp) as client:
        for arguments, text in (({}, "Missing required arguments: {'name'}"), ({"name": "broken"}, "Error rendering")):
            with pytest.raises(MCPError, match=text):
                await client.get_prompt("greet", arguments)
            with pytest.raises(ValueError, match=text):
                await mcp.get_prompt("greet", arguments)
    with pytest.raises(ValueError, match="Unknown prompt: none"):
        await mcp.get_prompt("none")


async def test_direct_calls_return_the_models_of_the_sdk_and_take_a_context() -> None:
    mcp, seen = shop(), []

    @mcp.tool()
    def look(ctx: Context) -> str:
        seen.append(ctx)
        return "seen"

    context: Context = Context(mcp_server=mcp)
    result = await mcp.call_tool("look", {}, context)
    assert isinstance(result, types.CallToolResult)
    assert (seen, result.structured_content, result.meta) == ([context], {"result": "seen"}, None)
    async with Client(mcp) as client:
        assert (await client.call_tool("quote", {"uri": "shop://terms"})).text == "Pay first."
    (part,) = await mcp.read_resource("shop://shelves/tea")
    assert (part.content, part.mime_type) == ('{\n  "shelf": "tea"\n}', "text/plain")
    prompt = await mcp.get_prompt("greet", {"name": "Ann"})
    assert prompt.messages[0].content == types.TextContent(type="text", text="Hello Ann")


async def test_lists_have_the_members_of_the_sdk() -> None:
    mcp = shop()
    async with Client(mcp) as client:
        (tool, _) = await client.list_tools()
        assert {name: tool[name] for name in ("description", "inputSchema", "outputSchema")} == {
            "description": "",
            "inputSchema": {
                "type": "object",
                "title": "priceArguments",
                "properties": {
                    "item": {"type": "string", "title": "Item"},
                    "count": {"type": "integer", "title": "Count", "default": 1},
                },
                "required": ["item"],
            },
            "outputSchema": {
                "type": "object",
                "title": "priceOutput",
                "properties": {"result": {"type": "integer", "title": "Result"}},
                "required": ["result"],
            },
        }
        assert "title" not in tool
        (template,) = await client.list_resource_templates()
        assert (template["mimeType"], template["description"]) == ("text/plain", "")
        assert (await client.get_prompt("greet", {"name": "Ann"}))["description"] == ""


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_one_function_completes_arguments_of_all_references(revision: str) -> None:
    mcp, asked = MCPServer("Shop"), []

    @mcp.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> types.Completion | None:
        asked.append((type(ref).__name__, argument.name, context and context.arguments))
        if argument.value == "crash":
            raise KeyError("vault 7")
        return types.Completion(values=["tea"]) if argument.value else None

    async with Client(mcp, revision=revision) as client:
        assert "completions" in client.capabilities
        reference = {"type": "ref/prompt", "name": "none"}

        async def values(value: str) -> Any:
            params = {"ref": reference, "argument": {"name": "item", "value": value}}
            return (await client.request("completion/complete", params))["completion"]["values"]

        assert await values("t") == ["tea"]
        assert await values("") == []
        with pytest.raises(MCPError, match="Error completing argument item") as error:
            await values("crash")
        assert error.value.code == -32603
    assert asked == [("PromptReference", "item", None)] * 3


async def test_hints_for_caches_are_those_of_the_author() -> None:
    hint = CacheHint(5_000, "public")
    async with Client(MCPServer("Shop", cache_hints={"tools/list": hint}), revision="2026-07-28") as client:
        lists = [await client.request(method, {}) for method in ("tools/list", "prompts/list")]
        assert [(item["ttlMs"], item["cacheScope"]) for item in lists] == [(5_000, "public"), (0, "private")]
    with pytest.raises(ValueError, match="cacheable methods"):
        MCPServer("Shop", cache_hints={"tools/call": hint})
    with pytest.raises(TypeError, match="must be a CacheHint"):
        MCPServer("Shop", cache_hints={"tools/list": 5})


async def test_programs_read_the_private_managers() -> None:
    mcp = shop()
    assert [tool.name for tool in mcp._tool_manager.list_tools()] == ["price", "quote"]
    assert mcp._tool_manager.get_tool("none") is None

    def size(item: str) -> int:
        return len(item)

    tool = mcp._tool_manager.add_tool(size)
    assert mcp._tool_manager.get_tool("size") is tool
    assert mcp._tool_manager.add_tool(size) is tool
    assert (await mcp._tool_manager.call_tool("price", {"item": "tea"}, Context(mcp_server=mcp))) == 5
    mcp._tool_manager.remove_tool("size")
    assert "size" not in mcp._tool_manager._tools
    with pytest.raises(ToolError, match="Unknown tool: size"):
        await mcp._tool_manager.call_tool("size", {})
    assert [prompt.name for prompt in mcp._prompt_manager.list_prompts()] == ["greet"]
    assert [resource.uri for resource in mcp._resource_manager.list_resources()] == ["shop://terms"]
    assert [template.uri for template in mcp._resource_manager.list_templates()] == ["shop://shelves/{name}"]
    assert (await mcp._resource_manager.get_resource("shop://terms")).uri == "shop://terms"
    with pytest.raises(ResourceNotFoundError):
        await mcp._resource_manager.get_resource("shop://none")


async def test_results_and_capabilities_have_attributes_without_the_package_mcp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("mcp.types", "mcp_types"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    mcp = MCPServer("Shop")

    @mcp.tool()
    def look(ctx: Context) -> list[Any]:
        capabilities = ctx.session.client_capabilities
        return [capabilities.roots.list_changed, capabilities.sampling]

    async with Client(mcp, roots=[{"uri": "file:///a"}], revision="2025-11-25") as client:
        assert (await client.call_tool("look")).structured_content == {"result": [None, None]}
    result = await shop().call_tool("price", {"item": "tea"})
    assert (result.content[0].text, result.structured_content, result.is_error) == ("5", {"result": 5}, False)


def described(path: str = "") -> str:
    """Read an endpoint.

    Args:
        path: The path of the endpoint.

    Returns:
        Its text.
    """
    return path


async def test_descriptions_are_whole_docstrings_because_schemas_do_not_describe_arguments() -> None:
    mcp = MCPServer("Endpoints")
    mcp.tool()(described)
    mcp.prompt()(described)
    mcp.resource("endpoint://one")(lambda: "1")
    mcp.resource("endpoint://{path}")(described)
    async with Client(mcp) as client:
        (tool,), (prompt,) = await client.list_tools(), await client.list_prompts()
        (template,) = await client.list_resource_templates()
        result = await client.get_prompt("described")
    assert tool["inputSchema"]["properties"]["path"] == {"default": "", "title": "Path", "type": "string"}
    texts = [tool.description, prompt.description, template.description, result["description"]]
    assert texts == [described.__doc__] * 4
