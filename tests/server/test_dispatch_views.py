"""What changes the features of a server for each request: views, filters of lists, and conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError, MCPServer
from funcmcp._server.catalog.feature_view import FeatureView
from funcmcp._serving.composition import runtime_of
from funcmcp.content import ResourceInfo
from funcmcp.testing import Client
from tests.server.parts import resource, tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.route import RoutedRequest


class Unchanged(FeatureView):
    """Shows what the server has."""

    async def listed(self, method: str, features: Sequence[Any], context: RequestContext) -> list[Any]:
        return list(features)

    async def routed(self, context: RequestContext) -> RoutedRequest:
        return context.routed


class WithoutPrice:
    """Takes the tool price out of lists while it is active."""

    def __init__(self, *, active: bool) -> None:
        self.is_active = lambda: active

    async def shown(self, method: str, features: Sequence[Any], context: RequestContext) -> list[Any]:
        return [feature for feature in features if feature.key != "price"]


async def never(_feature: Any, _request: Any) -> bool:
    return False


def shop(*features: Any) -> MCPServer:
    mcp = MCPServer("shop")
    for feature in features:
        runtime_of(mcp).server.catalog.add(feature)
    return mcp


async def names(client: Client) -> list[str]:
    return [item.name for item in await client.list_tools()]


async def test_a_feature_that_needs_a_capability_does_not_exist_in_a_view_for_a_client_without_it() -> None:
    mcp = shop(tool("a"), tool("b", needs=frozenset({"elicitation"})))
    runtime_of(mcp).server.set_view(Unchanged())
    async with Client(mcp) as client:
        assert (await client.call_tool("a")).text == "a"
        with pytest.raises(MCPError, match="Unknown tool: b"):
            await client.call_tool("b")


@pytest.mark.parametrize("active", [True, False])
async def test_a_filter_decides_about_lists_and_searches_while_it_is_active(active: bool) -> None:
    mcp = shop(tool("add"), tool("price"))
    runtime_of(mcp).server.add_list_filter(WithoutPrice(active=active))
    async with Client(mcp) as client:
        assert await names(client) == (["add"] if active else ["add", "price"])
    mcp.tool_search()
    async with Client(mcp) as client:
        result = await client.call_tool("search_tools", {"query": "price"})
        assert ('"price"' in result.text) is not active


async def test_a_change_of_all_lists_is_told_for_those_that_the_server_offers() -> None:
    mcp = shop(tool("a"))
    server = runtime_of(mcp).server
    published: list[Any] = []
    server.hub.publish = published.append  # type: ignore[method-assign, assignment] # what the server calls
    server.publish_lists()
    assert len(published) == 1


async def test_a_lister_names_no_resource_that_its_caller_does_not_have() -> None:
    mcp = shop(resource("data://a"), resource("data://b", shown_if=never))

    @mcp.resource_lister("data")
    def listed() -> list[ResourceInfo]:
        return [ResourceInfo("data://b", name="b"), ResourceInfo("data://a", name="a")]

    async with Client(mcp) as client:
        assert [item.uri for item in await client.list_resources()] == ["data://a"]
