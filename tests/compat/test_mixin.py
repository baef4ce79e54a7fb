"""FastMCP's mixin for objects with tools, resources and prompts."""

from __future__ import annotations

import pytest

from funcmcp.compat import FastMCP
from funcmcp.compat.fastmcp.contrib.mcp_mixin import MCPMixin, mcp_prompt, mcp_resource, mcp_tool
from funcmcp.testing import Client


class Shop(MCPMixin):
    @property
    def stock(self) -> int:
        raise AssertionError("Registration reads no properties.")

    @mcp_tool(description="Buy something", tags={"orders"})
    def buy(self, item: str) -> str:
        return f"{item} bought"

    @mcp_tool("pay_now", enabled=False)
    def pay(self) -> str:
        return "paid"

    @mcp_resource("shop://menu", mime_type="text/plain")
    def menu(self) -> str:
        return "tea"

    @mcp_resource("shop://items/{name}", name="item")
    def item_page(self, name: str) -> str:
        return name

    @mcp_prompt(title="Greet")
    def greet(self, name: str) -> str:
        return f"Hello {name}"


@pytest.mark.parametrize(
    ("prefix", "tool", "uri", "template", "prompt"),
    [
        (None, "buy", "shop://menu", "shop://items/{name}", "greet"),
        ("my", "my_buy", "my+shop://menu", "my+shop://items/{name}", "my_greet"),
    ],
)
async def test_marked_methods_are_registered(
    prefix: str | None, tool: str, uri: str, template: str, prompt: str
) -> None:
    mcp = FastMCP("shop")
    Shop().register_all(mcp, prefix=prefix)
    async with Client(mcp) as client:
        assert [(item.name, item.description) for item in await client.list_tools()] == [(tool, "Buy something")]
        assert (await client.call_tool(tool, {"item": "tea"})).text == "tea bought"
        assert [item.uri for item in await client.list_resources()] == [uri]
        assert (await client.read_resource(uri)).text == "tea"
        assert [item.uri_template for item in await client.list_resource_templates()] == [template]
        assert [(item.name, item.title) for item in await client.list_prompts()] == [(prompt, "Greet")]


@pytest.mark.parametrize("decorator", [mcp_tool, mcp_prompt, lambda **options: mcp_resource("shop://a", **options)])
def test_an_unknown_option_is_refused_at_the_method(decorator: object) -> None:
    assert callable(decorator)
    with pytest.raises(TypeError, match=r"unexpected keyword argument\(s\): \['colour'\]. Valid options: \["):
        decorator(colour="red")
