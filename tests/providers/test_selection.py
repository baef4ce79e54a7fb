"""Transforms that choose, rename and describe features."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPServer, RegistrationError
from funcmcp.transforms import Describe, Hide, Rename, Select, VersionFilter


def shop(*transforms: Any) -> MCPServer:
    mcp = MCPServer("shop")
    mcp.tool("add", description="Adds.", tags={"public"})(lambda: "add")
    mcp.tool("remove", tags={"admin"})(lambda: "remove")
    mcp.resource("data://info", name="info", tags={"public"})(lambda: "info")
    mcp.prompt("greet")(lambda: "Hello.")
    for transform in transforms:
        mcp.add_transform(transform)
    return mcp


async def seen(mcp: MCPServer) -> list[str]:
    return [
        *[tool.name for tool in await mcp.list_tools()],
        *[resource.uri for resource in await mcp.list_resources()],
        *[prompt.name for prompt in await mcp.list_prompts()],
    ]


@pytest.mark.parametrize(
    ("transform", "names"),
    [
        (Select({"add", "greet"}), ["add", "greet"]),
        (Select(tags={"public"}), ["add", "data://info"]),
        (Select({"add"}, components={"tool"}), ["add", "data://info", "greet"]),
        (Hide({"add", "data://info"}), ["remove", "greet"]),
        (Hide(tags={"admin"}), ["add", "data://info", "greet"]),
        (Hide(components={"tool"}), ["data://info", "greet"]),
    ],
)
async def test_features_are_chosen_by_names_tags_and_kinds(transform: Any, names: list[str]) -> None:
    assert await seen(shop(transform)) == names


def test_conditions_are_collections_of_strings() -> None:
    with pytest.raises(TypeError, match="names must be a set of strings"):
        Select("add")
    with pytest.raises(ValueError, match="Unknown kind of feature 'tools'"):
        Hide(components={"tools"})  # type: ignore[arg-type]


async def test_tools_and_prompts_get_other_names() -> None:
    mcp = shop(Rename({"add": "plus", "greet": "welcome", "data://info": "x"}))
    assert await seen(mcp) == ["remove", "plus", "data://info", "welcome"] or await seen(mcp) == [
        "plus",
        "remove",
        "data://info",
        "welcome",
    ]
    assert (await mcp.call_tool("plus")).text == "add"
    assert (await mcp.get_prompt("welcome")).messages[0].content.text == "Hello."


async def test_names_can_be_exchanged() -> None:
    mcp = MCPServer("shop")
    other = shop()
    mcp.mount(other, transforms=[Rename({"add": "remove", "remove": "add"})])
    assert (await mcp.call_tool("remove")).text == "add"


def test_a_wrong_name_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="'a' and 'b' would both be called 'c'"):
        Rename({"a": "c", "b": "c"})
    with pytest.raises(RegistrationError, match="'a b' is not a valid name"):
        Rename({"a": "a b"})
    with pytest.raises(RegistrationError, match="Duplicate tool name 'remove'"):
        shop(Rename({"add": "remove"}))


async def test_features_get_other_descriptions() -> None:
    mcp = shop(Describe({"add": "Adds two.", "data://info": "About us."}))
    assert [tool.description for tool in await mcp.list_tools()] == ["Adds two.", None]
    assert (await mcp.list_resources())[0].description == "About us."
    with pytest.raises(TypeError, match="The description of add must be a string, not int"):
        Describe({"add": 1})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("options", "versions"),
    [
        ({"version_lt": "3"}, ["2", "1"]),
        ({"version_gte": "2"}, ["3", "2"]),
        ({"version_gte": "2", "version_lt": "3"}, ["2"]),
    ],
)
async def test_versions_are_chosen_by_a_range(options: dict[str, Any], versions: list[str]) -> None:
    mcp = MCPServer("shop")
    for version in ("1", "2", "3"):
        mcp.tool("price", version=version)(lambda: "")
    mcp.tool("plain")(lambda: "")
    mcp.add_transform(VersionFilter(**options))
    tools = {tool.name: tool for tool in await mcp.list_tools()}
    assert tools["price"].meta["fastmcp"]["versions"] == versions
    assert "plain" in tools
    mcp.add_transform(VersionFilter(**options, include_unversioned=False))
    assert [tool.name for tool in await mcp.list_tools()] == ["price"]


def test_a_range_of_versions_needs_an_end() -> None:
    with pytest.raises(ValueError, match="needs version_gte=, version_lt= or both"):
        VersionFilter()


def test_names_before_the_change_are_known() -> None:
    from funcmcp._server.catalog.features import Resource, Tool

    rename = Rename({"add": "plus"})
    assert rename.source_key(Tool, "plus") == "add"
    assert rename.source_key(Tool, "other") == "other"
    assert rename.source_key(Resource, "plus") == "plus"
