"""Visibility: which features clients see, by names, tags and kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError, MCPServer, RegistrationError
from funcmcp._server.catalog.visibility import Visibility, visibility_rule
from funcmcp._serving.composition import runtime_of
from funcmcp.client import Client

if TYPE_CHECKING:
    from funcmcp._server.connections.hub import Change


def shop() -> MCPServer:
    mcp = MCPServer("shop")

    @mcp.tool(tags={"admin", "write"})
    def clear() -> str:
        return "cleared"

    @mcp.tool(tags=["read"])
    def count() -> int:
        return 1

    @mcp.tool
    def plain() -> str:
        return "plain"

    @mcp.resource("menu://today", tags={"admin"})
    def menu() -> str:
        return "soup"

    @mcp.resource("menu://days/{day}", tags={"read"})
    def menu_of(day: str) -> str:
        return day

    @mcp.prompt(tags={"admin"}, name="ask")
    def ask() -> str:
        return "?"

    return mcp


async def seen(mcp: MCPServer) -> list[str]:
    """Return the names and URIs in all lists."""
    return [
        *[tool.name for tool in await mcp.list_tools()],
        *[resource.uri for resource in await mcp.list_resources()],
        *[template.uri_template for template in await mcp.list_resource_templates()],
        *[prompt.name for prompt in await mcp.list_prompts()],
    ]


EVERYTHING = ["clear", "count", "plain", "menu://today", "menu://days/{day}", "ask"]


async def test_everything_is_visible_at_first_and_order_does_not_change() -> None:
    mcp = shop()
    assert await seen(mcp) == EVERYTHING
    mcp.disable()
    assert await seen(mcp) == []
    mcp.enable()
    assert await seen(mcp) == EVERYTHING


async def test_tags_hide_features_of_every_kind() -> None:
    mcp = shop()
    mcp.disable(tags={"admin"})
    assert await seen(mcp) == ["count", "plain", "menu://days/{day}"]
    mcp.enable(tags={"admin"}, components={"prompt"})
    assert await seen(mcp) == ["count", "plain", "menu://days/{day}", "ask"]


async def test_names_are_names_and_uris() -> None:
    mcp = shop()
    mcp.disable({"clear", "menu://today", "menu://days/{day}", "unknown"})
    assert await seen(mcp) == ["count", "plain", "ask"]


async def test_a_feature_must_meet_all_conditions() -> None:
    mcp = shop()
    mcp.disable({"clear", "count"}, tags={"admin"})
    assert await seen(mcp) == [name for name in EVERYTHING if name != "clear"]


async def test_only_hides_everything_else_and_forgets_the_previous_rules() -> None:
    mcp = shop()
    mcp.disable({"count"})
    mcp.enable(tags={"read"}, only=True)
    assert await seen(mcp) == ["count", "menu://days/{day}"]
    mcp.enable({"plain"})
    assert await seen(mcp) == ["count", "plain", "menu://days/{day}"]
    mcp.enable({"clear"}, only=True)
    assert await seen(mcp) == ["clear"]


async def test_a_hidden_feature_is_unknown() -> None:
    mcp = shop()
    mcp.disable()
    async with Client(mcp) as client:
        with pytest.raises(MCPError, match="Unknown tool: plain") as unknown:
            await client.call_tool("plain")
        assert unknown.value.code == -32602
        for uri in ("menu://today", "menu://days/x"):
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="Unknown prompt: ask"):
            await client.get_prompt("ask")
    mcp.enable(components=["resource"])
    async with Client(mcp) as client:
        assert (await client.read_resource("menu://today")).text == "soup"
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("menu://days/x")


async def test_rules_apply_to_features_that_are_registered_later() -> None:
    mcp = shop()
    mcp.disable(tags={"beta"})

    @mcp.tool(tags={"beta"})
    def fresh() -> str:
        return ""

    assert await seen(mcp) == EVERYTHING
    with pytest.raises(RegistrationError, match="Duplicate tool name 'fresh'"):
        mcp.tool(fresh)
    mcp.enable(tags={"beta"})
    assert "fresh" in await seen(mcp)


async def test_a_feature_that_is_not_enabled_is_hidden_until_a_rule_shows_it() -> None:
    mcp = shop()
    mcp.tool(name="hidden", enabled=False)(lambda: "")
    assert "hidden" not in await seen(mcp)
    mcp.disable({"plain"})
    assert "hidden" not in await seen(mcp)
    mcp.enable({"hidden"})
    assert "hidden" in await seen(mcp)


async def test_a_hidden_feature_can_be_removed() -> None:
    mcp = shop()
    mcp.disable()
    for remove, key in ((mcp.remove_tool, "plain"), (mcp.remove_resource, "menu://today"), (mcp.remove_prompt, "ask")):
        remove(key)
        with pytest.raises(KeyError):
            remove(key)
    mcp.remove_resource("menu://days/{day}")
    mcp.enable()
    assert await seen(mcp) == ["clear", "count"]


def test_clients_are_notified_of_the_lists_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    mcp, changes = shop(), list["Change"]()
    monkeypatch.setattr(runtime_of(mcp).server.catalog, "_publish", changes.append)
    mcp.disable({"plain"})
    assert [change.method for change in changes] == ["notifications/tools/list_changed"]
    mcp.disable({"plain"})
    assert len(changes) == 1
    mcp.enable(components={"prompt"})
    assert len(changes) == 1


def test_rules_that_can_not_decide_any_more_are_dropped() -> None:
    visibility = Visibility()
    for _ in range(10):
        visibility.add(visibility_rule({"a"}, None, None, shows=False))
        visibility.add(visibility_rule({"a"}, None, None, shows=True))
    assert len(visibility._rules) == 1


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"names": "plain"}, TypeError, r"names must be a set of strings, such as \{\"admin\"\}; got 'plain'\."),
        ({"tags": "admin"}, TypeError, "tags must be a set of strings"),
        ({"tags": [1]}, TypeError, "tags must be a set of strings"),
        ({"components": {"tools"}}, ValueError, "Unknown kind of feature 'tools'. Valid kinds: tool, resource"),
    ],
)
def test_invalid_conditions_are_refused(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        shop().enable(**options)
    with pytest.raises(error, match=text):
        shop().disable(**options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tags": "admin"}, r"tags of lambda must be a set of strings, such as \{\"admin\"\}; got 'admin'\."),
        ({"tags": [1]}, "tags of lambda must be strings that are not empty"),
        ({"tags": [""]}, "tags of lambda must be strings that are not empty"),
        ({"enabled": 0}, "enabled of lambda must be True or False, not int"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(RegistrationError, match=text):
        MCPServer("shop").tool("lambda", **options)(lambda: "")
