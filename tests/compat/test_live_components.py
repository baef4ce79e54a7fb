"""Components that a program gets from its server and changes: clients get what it sets, as in FastMCP."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import FastMCP
from funcmcp.testing import Client

pytestmark = pytest.mark.branches("Features take the place of others.")


def shop() -> FastMCP:
    mcp = FastMCP("Shop")
    mcp.tool(lambda: "1", name="first")
    mcp.tool(lambda: "2", name="second")
    mcp.resource("shop://hours", name="hours")(lambda: "9 to 5")
    mcp.resource("shop://{item}", name="item")(lambda item: item)
    mcp.prompt(lambda: "Hello", name="greet")
    return mcp


async def test_clients_get_attributes_that_are_set_later_in_the_same_order() -> None:
    mcp = shop()
    components: list[Any] = [await mcp.get_tool("first"), await mcp.get_resource("shop://hours")]
    components += [await mcp.get_resource_template("shop://{item}"), await mcp.get_prompt("greet")]
    for component in components:
        component.meta = {**(component.meta or {}), "openai/outputTemplate": "ui://a"}
        component.description = "Changed."
        component.tags = {"new"}
    async with Client(mcp) as client:
        tools = await client.list_tools()
        lists = [tools[0], *await client.list_resources(), *await client.list_resource_templates()]
        lists += await client.list_prompts()
        result = await client.call_tool("first")
    assert [item.name for item in tools] == ["first", "second"]
    assert [(item.description, item["_meta"]["openai/outputTemplate"]) for item in lists] == [
        ("Changed.", "ui://a")
    ] * 4
    assert result.text == "1"
    tool: Any = await mcp.get_tool("first")
    assert tool.tags == {"new"}
    mcp.disable(tags={"new"})
    assert [item.name for item in await mcp.list_tools()] == ["second"]


async def test_clients_are_notified_of_a_change() -> None:
    mcp = shop()
    tool: Any = await mcp.get_tool("first")
    before = mcp._server.catalog.tools.version
    tool.title = "First"
    assert mcp._server.catalog.tools.version > before


async def test_a_copy_changes_nothing() -> None:
    mcp = shop()
    tool: Any = await mcp.get_tool("first")
    tool.model_copy(update={"description": "Copied."}).description = "Changed."
    tool = await mcp.get_tool("first")
    assert tool.description is None


async def test_checks_of_authorization_are_not_lost() -> None:
    tool: Any = await shop().get_tool("first")
    with pytest.raises(AttributeError, match="auth of the tool first can't be set"):
        tool.auth = lambda _: False


async def test_a_component_that_was_registered_changes_what_clients_get() -> None:
    mcp = shop()
    (tool,) = [item for item in mcp.local_provider._components.values() if item.name == "first"]
    tool.fn = lambda: "changed"
    tool.description, tool.tags = "Changed.", {"new"}
    async with Client(mcp) as client:
        listed = (await client.list_tools())[0]
        assert (listed.description, listed["_meta"]) == ("Changed.", {"fastmcp": {"tags": ["new"]}})
        assert (await client.call_tool("first")).text == "changed"
        mcp.remove_tool("first")
        tool.description = "Removed."
        assert [item.name for item in await client.list_tools()] == ["second"]
