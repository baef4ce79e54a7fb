"""FastMCP's searches for tools, and names of it that lead to those of funcmcp."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import compat
from funcmcp.compat import (
    BaseSearchTransform,
    BM25SearchTransform,
    FastMCP,
    RegexSearchTransform,
    StaticTokenVerifier,
    require_scopes,
)
from funcmcp.testing import Client
from funcmcp.transforms import Hide, Rename


def add(a: int, b: int) -> int:
    """Add numbers."""
    return a + b


async def listed(mcp: FastMCP) -> list[str]:
    async with Client(mcp) as client:
        return [tool.name for tool in await client.list_tools()]


@pytest.mark.parametrize("by_option", [True, False])
@pytest.mark.parametrize(
    ("kind", "queries", "misses"),
    [
        (BM25SearchTransform, ["numbers", "add numbers"], ["weather", ""]),
        (RegexSearchTransform, ["^ADD", "num.*ers"], ["(", "x" * 2_000, "(?=a)", "weather"]),
    ],
)
async def test_a_search_replaces_the_list(
    kind: type[BaseSearchTransform], queries: list[str], misses: list[str], by_option: bool
) -> None:
    transform = kind(max_results=3, always_visible=["help"], search_tool_name="find")
    mcp = FastMCP("Shop", transforms=[transform] if by_option else None)
    if not by_option:
        mcp.add_transform(transform)
    mcp.tool(add)
    mcp.tool(name="help")(lambda: "help")
    mcp.tool(name="page", meta={"ui": {"visibility": ["app"]}})(lambda: "numbers for the page")
    assert await listed(mcp) == ["help", "find", "call_tool"]
    argument = "pattern" if kind is RegexSearchTransform else "query"
    async with Client(mcp) as client:
        for query in queries:
            assert "'add'" in str((await client.call_tool("find", {argument: query})).structured_content)
        for query in misses:
            assert (await client.call_tool("find", {argument: query})).structured_content == {"result": []}
        call = {"name": "add", "arguments": {"a": 1, "b": 2}}
        assert (await client.call_tool("call_tool", call)).text == "3"
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        for name in ("page", "find", "nothing"):
            assert (await client.call_tool("call_tool", {"name": name})).is_error


async def test_a_search_finds_and_calls_what_its_caller_may_use() -> None:
    tokens = {name: {"client_id": name, "scopes": [name]} for name in ("user", "admin")}
    mcp = FastMCP("Shop", auth=StaticTokenVerifier(tokens), transforms=[BM25SearchTransform()])
    mcp.tool(name="erase", auth=require_scopes("admin"))(lambda: "erased")
    for name, may_use in (("user", False), ("admin", True)):
        async with Client(mcp, headers={"authorization": f"Bearer {name}"}) as client:
            found = await client.call_tool("search_tools", {"query": "erase"})
            assert ("erase" in str(found.structured_content)) is may_use
            answer = await client.call_tool("call_tool", {"name": "erase", "arguments": {}})
            assert (answer.text == "erased") is may_use


async def test_a_serializer_writes_the_result() -> None:
    async def names(tools: Any) -> str:
        return ", ".join(tool.name for tool in tools)

    mcp = FastMCP("Shop", transforms=[BM25SearchTransform(search_result_serializer=names)])
    mcp.tool(add)
    async with Client(mcp) as client:
        assert (await client.call_tool("search_tools", {"query": "numbers"})).text == "add"


@pytest.mark.parametrize("transform", [object(), Any])
def test_what_is_not_a_transform_is_refused(transform: Any) -> None:
    with pytest.raises(TypeError, match=r"is not a transform\. Use one of funcmcp\.compat"):
        FastMCP("Shop", transforms=[transform])


async def test_transforms_of_funcmcp_work_in_place_of_those_of_fastmcp() -> None:
    mcp = FastMCP("Shop", transforms=[Hide({"help"})])
    mcp.tool(add)
    mcp.tool(name="help")(lambda: "help")
    mcp.add_transform(lambda feature: feature)
    assert await listed(mcp) == ["add"]
    above = FastMCP("Mall")
    above.mount(mcp, namespace="shop", transforms=[Rename({"add": "sum"})])
    assert await listed(above) == ["shop_sum"]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("Approval", "confirm="),
        ("EventStore", r"MCPServer\(sessions="),
    ],
)
def test_a_name_of_fastmcp_leads_to_that_of_funcmcp(name: str, advice: str) -> None:
    with pytest.raises(ImportError, match=f"funcmcp.compat has no {name}. .*{advice}"):
        getattr(compat, name)
