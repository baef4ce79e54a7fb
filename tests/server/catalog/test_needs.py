"""Features that only clients with certain capabilities have."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError, MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp.client import Client
from tests import schemas
from tests.server.parts import prompt, resource, template, tool

pytestmark = pytest.mark.branches("What a client has depends on its capabilities.")

URL = frozenset({("elicitation", "url")})


async def decline(_params: dict[str, Any]) -> dict[str, Any]:
    return {"action": "decline"}


def server() -> MCPServer:
    mcp = MCPServer("shop")
    catalog = runtime_of(mcp).server.catalog
    for feature in (tool("a"), resource("data://a"), template("data://t/{x}"), prompt("a")):
        catalog.add(feature)
    needed = prompt("b", completers=["a"], needs=URL)
    for feature in (tool("b", needs=URL), resource("data://b", needs=URL), template("x://t/{x}", needs=URL), needed):
        catalog.add(feature)
    return mcp


@pytest.mark.parametrize("revision", schemas.REVISIONS)
async def test_a_client_without_a_capability_has_no_feature_that_needs_it(revision: str) -> None:
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
        with pytest.raises(MCPError, match="names no resource template"):
            await client.complete({"type": "ref/resource", "uri": "x://t/{x}"}, "x", "1")


@pytest.mark.parametrize("revision", schemas.REVISIONS)
async def test_a_client_with_the_capability_has_it(revision: str) -> None:
    async with Client(server(), revision=revision, elicit=decline) as client:
        assert [item.name for item in await client.list_tools()] == ["a", "b"]
        assert (await client.call_tool("b")).text == "b"
        assert (await client.read_resource("data://b")).contents
    async with Client(server(), revision=revision) as client:
        assert [item.name for item in await client.list_tools()] == ["a"]
