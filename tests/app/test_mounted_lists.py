"""Lists of a server pass the middleware and the overridden methods of the servers that it mounts, as in FastMCP."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import CallNext, FastMCP, Middleware, MiddlewareContext
from funcmcp.testing import Client

pytestmark = pytest.mark.branches("Filters decide about lists and searches.")


def shop(mcp: FastMCP) -> FastMCP:
    for name in ("shown", "hidden"):
        mcp.tool(name=name, tags={name})(lambda: "x")
        mcp.prompt(name=name)(lambda: "x")
        mcp.resource(f"x://{name}", name=name)(lambda: "x")
        mcp.resource(f"x://{name}/{{a}}", name=name)(lambda a: a)
    return mcp


class Hiding(Middleware):
    async def hide(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        return [item for item in await call_next(context) if item.name != "hidden"]

    on_list_tools = on_list_prompts = on_list_resources = on_list_resource_templates = hide


class Overriding(FastMCP):
    async def list_tools(self, **options: Any) -> Any:
        return [tool for tool in await super().list_tools(**options) if tool.name != "hidden"]


async def names_in(mcp: FastMCP, **options: Any) -> list[list[str]]:
    async with Client(mcp, **options) as client:
        return [
            [item.name for item in items]
            for items in (
                await client.list_tools(),
                await client.list_prompts(),
                await client.list_resources(),
                await client.list_resource_templates(),
            )
        ]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("depth", [1, 2])
async def test_what_the_middleware_of_a_mounted_server_hides_is_hidden_above(depth: int, revision: str) -> None:
    mcp = shop(FastMCP("Shop", middleware=[Hiding()]))
    for number in range(depth):
        above = FastMCP(f"Above {number}")
        above.mount(mcp)
        mcp = above
    mcp.tool(name="hidden_above")(lambda: "x")
    names = await names_in(mcp, revision=revision)
    assert names == [["shown", "hidden_above"], ["shown"], ["shown"], ["shown"]]


@pytest.mark.parametrize("late", [False, True])
async def test_a_prefix_and_middleware_that_comes_later(late: bool) -> None:
    mcp, above = shop(FastMCP("Shop")), FastMCP("Above")
    if not late:
        mcp.add_middleware(Hiding())
    above.mount(mcp, "p")
    if late:
        assert len((await names_in(above))[0]) == 2
        mcp.add_middleware(Hiding())
    assert (await names_in(above))[0] == ["p_shown"]
    assert [tool.name for tool in await above.list_tools()] == ["p_shown"]
    assert await above.get_tool("p_hidden") is not None  # lookups pass no middleware


@pytest.mark.parametrize("always_visible", [[], ["shown", "hidden"]])
async def test_a_search_does_not_find_what_a_mounted_server_hides(always_visible: list[str]) -> None:
    above = FastMCP("Above")
    above.mount(shop(FastMCP("Shop", middleware=[Hiding()])))
    above.tool_search(always_visible=always_visible)
    async with Client(above) as client:
        assert "hidden" not in [tool.name for tool in await client.list_tools()]
        results = await client.call_tool("search_tools", {"query": "shown hidden"})
    assert "hidden" not in str(results.structured_content)


async def test_an_overridden_list_counts_above() -> None:
    above = FastMCP("Above")
    above.mount(shop(Overriding("Shop")), "p")
    assert (await names_in(above))[:2] == [["p_shown"], ["p_shown", "p_hidden"]]


async def test_the_middleware_decides_for_each_request() -> None:
    counts = iter([1, 2, 1])

    class Cutting(Middleware):
        async def on_list_tools(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            return (await call_next(context))[: next(counts)]

    above = FastMCP("Above")
    above.mount(shop(FastMCP("Shop", middleware=[Cutting()])))
    assert [len((await names_in(above))[0]) for _ in range(3)] == [1, 2, 1]


async def test_changes_and_additions_get_the_prefix() -> None:
    class Describing(Middleware):
        async def on_list_tools(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            tools = [tool.model_copy(update={"description": "D"}) for tool in await call_next(context)]
            return [*tools, tools[0].model_copy(update={"name": "added"})]

    above = FastMCP("Above")
    above.mount(shop(FastMCP("Shop", middleware=[Describing()])), "p")
    async with Client(above) as client:
        tools = [(tool.name, tool.description) for tool in await client.list_tools()]
        assert tools == [("p_shown", "D"), ("p_hidden", "D"), ("p_added", "D")]
        assert (await client.call_tool("p_shown")).text == "x"
        assert (await client.call_tool("p_added", raise_on_error=False)).text == "Unknown tool: 'p_added'"


async def test_nothing_is_listed_of_a_server_whose_middleware_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Middleware):
        async def on_list_tools(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            raise RuntimeError("The database is away.")

    above = FastMCP("Above")
    above.tool(name="own")(lambda: "x")
    above.mount(shop(FastMCP("Shop", middleware=[Failing()])))
    assert (await names_in(above))[0] == ["own"]
    assert "tools/list of Shop has failed" in caplog.text
