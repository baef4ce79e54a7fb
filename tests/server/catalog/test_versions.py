"""Versions of features: their order, and the version that a request names."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError, MCPServer, RegistrationError
from funcmcp._server.catalog.versions import newest_first, order_of, requested_version
from funcmcp.middleware import cache_results
from funcmcp.testing import Client
from tests import schemas
from tests.server.parts import tool

pytestmark = pytest.mark.branches("Servers have several versions of features.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)


def shop() -> MCPServer:
    mcp = MCPServer("shop")

    @mcp.tool(version="1")
    def price(item: str) -> str:
        """Return the old price."""
        return f"old {item}"

    @mcp.tool(name="price", version=10)
    def new_price(item: str) -> str:
        """Return the new price."""
        return f"new {item}"

    @mcp.tool(name="price", version="2")
    def middle_price(item: str) -> str:
        return f"middle {item}"

    @mcp.resource("data://info", version="1")
    def info() -> str:
        return "old"

    @mcp.resource("data://info", version="2")
    def new_info() -> str:
        return "new"

    @mcp.resource("data://days/{day}", version="1")
    def day(day: str) -> str:
        return f"old {day}"

    @mcp.resource("data://days/{day}", version="2")
    def new_day(day: str) -> str:
        return f"new {day}"

    @mcp.prompt(version="1")
    def greet() -> str:
        return "Hello."

    @mcp.prompt(name="greet", version="2")
    def new_greet() -> str:
        return "Hi."

    return mcp


def in_version(version: object) -> dict[str, Any]:
    return {"fastmcp": {"version": version}}


def test_versions_are_compared_as_those_of_packages_and_otherwise_as_texts() -> None:
    versions = ["2025-01-15", "v2.0", "10", "1.0rc1", "1", "1.0", "latest"]
    ordered = newest_first([tool(f"tool{number}", version=version) for number, version in enumerate(versions)])
    assert [item.version for item in ordered] == ["latest", "2025-01-15", "10", "v2.0", "1.0", "1", "1.0rc1"]
    assert order_of("v1") == order_of("1.0")


@pytest.mark.parametrize("meta", [None, 1, {}, {"fastmcp": 1}, {"fastmcp": {}}, in_version(2)])
def test_a_request_without_a_version_gets_the_newest_one(meta: Any) -> None:
    assert requested_version({} if meta is None else {"_meta": meta}) is None


@EVERY_REVISION
async def test_lists_and_calls_have_the_newest_version(revision: str) -> None:
    async with Client(shop(), revision=revision) as client:
        assert [item.name for item in await client.list_tools()] == ["price"]
        assert (await client.call_tool("price", {"item": "tea"})).text == "new tea"
        assert (await client.read_resource("data://info")).text == "new"
        assert (await client.read_resource("data://days/x")).text == "new x"
        assert (await client.get_prompt("greet")).messages[0].content.text == "Hi."
        assert len(await client.list_resources()) == 1
        assert len(await client.list_resource_templates()) == 1
        assert len(await client.list_prompts()) == 1


@EVERY_REVISION
async def test_a_request_names_another_version(revision: str) -> None:
    async with Client(shop(), revision=revision) as client:

        async def send(method: str, params: dict[str, Any], version: str) -> dict[str, Any]:
            return await client.request(method, {**params, "_meta": in_version(version)})

        for version, text in (("1", "old tea"), ("1.0", "old tea"), ("v2", "middle tea"), ("10", "new tea")):
            result = await send("tools/call", {"name": "price", "arguments": {"item": "tea"}}, version)
            assert result["content"][0]["text"] == text
        assert (await send("resources/read", {"uri": "data://info"}, "1"))["contents"][0]["text"] == "old"
        assert (await send("resources/read", {"uri": "data://days/x"}, "1"))["contents"][0]["text"] == "old x"
        assert (await send("prompts/get", {"name": "greet"}, "1"))["messages"][0]["content"]["text"] == "Hello."
        with pytest.raises(MCPError, match=r"Unknown tool: price, in this version\. Its versions: 10, 2, 1\."):
            await send("tools/call", {"name": "price"}, "3")
        with pytest.raises(MCPError, match=r"Unknown prompt: greet, in this version\. Its versions: "):
            await send("prompts/get", {"name": "greet"}, "3")
        with pytest.raises(MCPError, match=r"Resource not found in this version\. Its versions: "):
            await send("resources/read", {"uri": "data://info"}, "3")


async def test_an_error_names_the_ten_newest_versions() -> None:
    mcp = MCPServer("shop")
    for version in range(1, 13):
        mcp.tool("price", version=str(version))(lambda: "x")
    async with Client(mcp) as client:
        with pytest.raises(MCPError, match=r"Its versions: 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, \.\.\.\.$"):
            await client.request("tools/call", {"name": "price", "_meta": in_version("99")})


async def test_the_definition_has_all_versions() -> None:
    mcp = shop()
    meta = (await mcp.list_tools())[0].meta
    assert meta == {"fastmcp": {"version": "10", "versions": ["10", "2", "1"]}}
    mcp.tool("price", version="3")(lambda: "third")
    assert (await mcp.list_tools())[0].meta["fastmcp"]["versions"] == ["10", "3", "2", "1"]
    mcp.remove_tool("price")
    assert await mcp.list_tools() == []
    with pytest.raises(KeyError):
        mcp.remove_tool("price")


async def test_a_hidden_version_is_none() -> None:
    mcp = MCPServer("shop")
    mcp.tool("price", version="1")(lambda: "old")
    mcp.tool("price", version="2", tags={"beta"})(lambda: "new")
    mcp.disable(tags={"beta"})
    assert (await mcp.call_tool("price")).text == "old"
    assert (await mcp.list_tools())[0].meta["fastmcp"]["versions"] == ["1"]
    mcp.tool("price", version="3", tags={"beta"})(lambda: "newest")
    assert (await mcp.call_tool("price")).text == "old"
    async with Client(mcp) as client:
        with pytest.raises(MCPError, match=r"in this version\. Its versions: 1\.$"):  # and not those that are hidden
            await client.request("tools/call", {"name": "price", "_meta": in_version("2")})
    mcp.enable(tags={"beta"})
    assert (await mcp.call_tool("price")).text == "newest"


async def test_a_mounted_server_brings_all_its_versions() -> None:
    mounted, above = shop(), MCPServer("above")
    above.mount(mounted, "shop")
    async with Client(above) as client:
        params = {"name": "shop_price", "arguments": {"item": "tea"}, "_meta": in_version("1")}
        assert (await client.request("tools/call", params))["content"][0]["text"] == "old tea"
        mounted.tool("price", version="11")(lambda item: f"newest {item}")
        assert (await client.call_tool("shop_price", {"item": "tea"})).text == "newest tea"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"version": "1"}, "Duplicate version '1' of the tool 'price'"),
        ({}, "has a version in one place and none in another"),
        ({"name": "Price", "version": "1"}, "which differs from 'price' too little"),
        ({"version": "2", "task": "optional"}, "can't run as a task"),
        ({"version": True}, "must be a string such as '2.1', not bool"),
        ({"version": "a@b"}, "printable characters other than '@'"),
        ({"version": ""}, "printable characters other than '@'"),
    ],
)
def test_a_wrong_version_is_an_error(options: dict[str, Any], text: str) -> None:
    mcp = MCPServer("shop")
    mcp.tool("price", version="1")(lambda: "old")
    with pytest.raises(RegistrationError, match=text):
        mcp.tool(**{"name": "price", **options})(lambda: "new")


def test_a_version_beside_a_tool_without_one_is_an_error() -> None:
    mcp = MCPServer("shop")
    mcp.tool("price")(lambda: "old")
    with pytest.raises(RegistrationError, match="has a version in one place and none in another"):
        mcp.tool("price", version="1")(lambda: "new")


async def test_results_are_cached_for_each_version() -> None:
    mcp = MCPServer("shop", middleware=[cache_results(60, ["price"])])
    mcp.tool("price", version="1")(lambda: "old")
    mcp.tool("price", version="2")(lambda: "new")
    async with Client(mcp) as client:
        assert (await client.call_tool("price")).text == "new"
        result = await client.request("tools/call", {"name": "price", "_meta": in_version("1")})
        assert result["content"][0]["text"] == "old"


def test_a_feature_that_was_removed_while_a_list_is_made_has_no_versions() -> None:
    mcp = shop()
    registry = mcp._server.catalog.tools
    price = registry.get("price")
    assert price is not None
    mcp.remove_tool("price")
    assert registry.describe(price)["_meta"]["fastmcp"]["versions"] == []
