"""FastMCP's transforms: what is hidden before a transform stays hidden after it, in lists and in calls."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError, ToolError
from funcmcp.compat import (
    ArgTransformConfig,
    FastMCP,
    FastMCPProvider,
    Namespace,
    PromptsAsTools,
    ResourcesAsTools,
    Tool,
    ToolTransform,
    ToolTransformConfig,
    Transform,
    VersionFilter,
    VersionSpec,
    Visibility,
    is_enabled,
)
from funcmcp.testing import Client

pytestmark = pytest.mark.branches("A view of features has every kind of them.")


def shop() -> FastMCP:
    mcp = FastMCP("shop")
    for version in ("1", "2", "3"):
        mcp.tool(lambda version=version: f"tool {version}", name="read", version=version)
    mcp.tool(lambda text: f"{text}!", name="shout", tags={"loud"})
    mcp.resource("shop://secret", name="secret")(lambda: "secret resource")
    mcp.prompt(lambda: "secret prompt", name="secret")
    return mcp


async def names(mcp: FastMCP) -> list[str]:
    async with Client(mcp) as client:
        tools = [tool.name for tool in await client.list_tools()]
        resources = [resource.uri for resource in await client.list_resources()]
        return [*tools, *resources, *[prompt.name for prompt in await client.list_prompts()]]


async def test_a_rule_before_a_transform_holds_after_it() -> None:
    mcp = shop()
    mcp.disable(names={"secret", "shout"})
    mcp.add_transform(Namespace("api"))
    assert await names(mcp) == ["api_read"]
    async with Client(mcp) as client:
        for uri in ("shop://secret", "shop://api/secret"):
            with pytest.raises(MCPError, match="not found"):
                await client.read_resource(uri)
        for name in ("shout", "api_shout", "read"):
            with pytest.raises(ToolError, match="Unknown tool"):
                await client.call_tool(name, {"text": "x"}, raise_on_error=True)
        assert (await client.call_tool("api_read")).text == "tool 3"
    mcp.enable(names={"api_shout"})
    assert await names(mcp) == ["api_read", "api_shout"]
    mcp.add_transform(Visibility(False, tags={"loud"}))
    assert await names(mcp) == ["api_read"]


async def test_versions_are_filtered_and_tools_are_changed() -> None:
    mcp = shop()
    mcp.add_transform(VersionFilter(version_gte="2", version_lt="3"))
    change = ToolTransformConfig(
        name="cry", tags={"sad"}, arguments={"text": ArgTransformConfig(name="words", description="What is cried.")}
    )
    mcp.add_tool_transformation("shout", change)
    async with Client(mcp) as client:
        assert (await client.call_tool("read")).text == "tool 2"
        unknown = await client.request("tools/call", {"name": "read", "_meta": {"fastmcp": {"version": "3"}}})
        assert unknown["content"][0]["text"] == "Unknown tool: 'read'"
        assert (await client.call_tool("cry", {"words": "oh"})).text == "oh!"
        with pytest.raises(ToolError):
            await client.call_tool("shout", {"text": "oh"}, raise_on_error=True)
    tool = await mcp.get_tool("cry")
    assert tool is not None
    assert tool.tags == {"sad"}
    assert tool.parameters["properties"]["words"]["description"] == "What is cried."
    assert "oh!" in str((await tool.run({"words": "oh"})).content)
    mcp.add_transform(ToolTransform({"cry": ToolTransformConfig(enabled=False)}))
    assert await names(mcp) == ["read", "shop://secret", "secret"]


async def test_a_mount_has_transforms() -> None:
    above = FastMCP("above")
    above.mount(shop(), "p", transforms=[VersionFilter(version_lt="2"), Visibility(False, names={"secret"})])
    assert await names(above) == ["p_read", "p_shout"]
    async with Client(above) as client:
        assert (await client.call_tool("p_read")).text == "tool 1"
    with pytest.raises(TypeError, match="has methods of its own"):
        above.mount(shop(), "q", transforms=[Transform()])


async def test_resources_and_prompts_are_tools_that_see_what_clients_see() -> None:
    mcp = shop()
    mcp.add_transform(ResourcesAsTools(mcp))
    mcp.add_transform(PromptsAsTools(mcp))
    async with Client(mcp) as client:
        listed = await client.call_tool("list_resources")
        assert listed.structured_content == {"result": listed.text}
        assert '"uri": "shop://secret"' in listed.text
        assert (await client.call_tool("read_resource", {"uri": "shop://secret"})).text == "secret resource"
        assert "secret prompt" in (await client.call_tool("get_prompt", {"name": "secret"})).text
        mcp.disable(names={"secret"})
        assert (await client.call_tool("list_resources")).text == (await client.call_tool("list_prompts")).text == "[]"
        assert (await client.call_tool("read_resource", {"uri": "shop://secret"})).is_error
        assert (await client.call_tool("get_prompt", {"name": "secret"})).is_error
    with pytest.raises(TypeError, match="ResourcesAsTools requires a FastMCP server"):
        ResourcesAsTools(object())


async def test_methods_of_transforms_change_components() -> None:
    tools = [Tool.from_function(lambda: "x", name=name, version=version) for name in "ab" for version in ("1", "2")]

    async def find(name: str, *, version: VersionSpec | None = None) -> Any:
        matching = [tool for tool in tools if tool.name == name and (version is None or version.matches(tool.version))]
        return matching[-1] if matching else None

    hidden = await Visibility(False, names={"a"}).list_tools(tools)
    assert [is_enabled(tool) for tool in hidden] == [False, False, True, True]
    assert "_internal" not in str(hidden[0].get_meta())
    assert [tool.key for tool in await Namespace("n").list_tools(tools)][:2] == ["tool:n_a@1", "tool:n_a@2"]
    assert (await Namespace("n").get_tool("n_a", find)).name == "n_a"
    assert await Namespace("n").get_tool("a", find) is None
    oldest = VersionFilter(version_lt="2")
    assert (await oldest.get_tool("b", find)).version == "1"
    assert await oldest.get_tool("b", find, version=VersionSpec(eq="2")) is None
    with pytest.warns(UserWarning, match="missing the '@'"):
        Visibility(False, keys={"tool:a"})


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (VersionFilter, ValueError, "At least one"),
        (lambda: ToolTransformConfig(colour="red"), TypeError, "no option 'colour'"),
        (lambda: ArgTransformConfig(required=False), ValueError, "required must be True"),
        (lambda: ToolTransform({n: ToolTransformConfig(name="x") for n in "ab"}), ValueError, "duplicate target name"),
    ],
)
def test_what_a_transform_cannot_do_is_refused(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("hide", ["transform", "rule", "version"])
async def test_a_provider_of_another_server_has_its_transforms_or_takes_none(hide: str) -> None:
    provider = FastMCPProvider(shop())
    if hide == "transform":
        provider.add_transform(Visibility(False, names={"read", "secret"}))
    elif hide == "rule":
        provider.disable(names={"read", "secret"})
    else:
        provider.add_transform(VersionFilter(version_lt="0"))
        provider.add_transform(Visibility(False, names={"secret"}))
    provider.add_transform(Namespace("p"))
    mcp = FastMCP("above")
    mcp.add_provider(provider)
    assert await names(mcp) == ["p_shout"]
    with pytest.raises(RuntimeError, match="belongs to a server already"):
        provider.add_transform(Namespace("q"))
    with pytest.raises(RuntimeError, match="belongs to a server already"):
        provider.disable(names={"shout"})
    other = FastMCPProvider(shop())
    other.add_transform(Transform())
    with pytest.raises(TypeError, match="has methods of its own"):
        mcp.add_provider(other)
