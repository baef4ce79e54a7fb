"""Features that only some callers have."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError, MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp.client import Client
from tests import schemas
from tests.server.parts import prompt, resource, template, tool

pytestmark = pytest.mark.branches("A request gets the features whose condition its caller meets.")


async def never(_feature: Any, _request: Any) -> bool:
    return False


async def first(feature: Any, _request: Any) -> bool:
    return bool(feature.version == "1")


def server() -> MCPServer:
    mcp = MCPServer("shop")
    catalog = runtime_of(mcp).server.catalog
    for feature in (tool("a"), resource("data://a"), template("data://t/{x}"), prompt("a")):
        catalog.add(feature)
    hidden = prompt("b", completers=["a"], shown_if=never)
    for feature in (
        tool("b", shown_if=never),
        resource("data://b", shown_if=never),
        template("x://t/{x}", shown_if=never),
        hidden,
    ):
        catalog.add(feature)
    return mcp


@pytest.mark.parametrize("revision", schemas.REVISIONS)
async def test_a_caller_has_no_feature_whose_condition_it_does_not_meet(revision: str) -> None:
    async with Client(server(), revision=revision) as client:
        assert [item.name for item in await client.list_tools()] == ["a"]
        assert [item.uri for item in await client.list_resources()] == ["data://a"]
        assert [item.uri_template for item in await client.list_resource_templates()] == ["data://t/{x}"]
        assert [item.name for item in await client.list_prompts()] == ["a"]
        with pytest.raises(MCPError, match="Unknown tool: b"):
            await client.call_tool("b")
        with pytest.raises(MCPError, match="Unknown prompt: b"):
            await client.get_prompt("b")
        for uri in ("data://b", "x://t/1"):
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="Unknown prompt: b"):
            await client.complete({"type": "ref/prompt", "name": "b"}, "a", "1")


async def test_a_caller_gets_the_newest_version_that_it_has() -> None:
    mcp = MCPServer("shop")
    for version in ("1", "2"):
        runtime_of(mcp).server.catalog.add(tool("b", version=version, shown_if=first))
    async with Client(mcp) as client:
        assert [item.name for item in await client.list_tools()] == ["b"]
        assert (await client.call_tool("b")).text == "b"
        with pytest.raises(MCPError, match="Unknown tool: b"):
            await client.request("tools/call", {"name": "b", "arguments": {}, "_meta": {"fastmcp": {"version": "2"}}})


async def test_a_caller_that_has_no_version_does_not_have_the_feature() -> None:
    mcp = MCPServer("shop")
    for version in ("1", "2"):
        runtime_of(mcp).server.catalog.add(tool("b", version=version, shown_if=never))
    async with Client(mcp) as client:
        assert await client.list_tools() == []
        with pytest.raises(MCPError, match="Unknown tool: b"):
            await client.call_tool("b")
