"""FastMCP's transforms with a search."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import compat
from funcmcp.compat import BM25SearchTransform, FastMCP, RegexSearchTransform
from funcmcp.testing import Client
from funcmcp.transforms import Hide, Rename


def add(a: int, b: int) -> int:
    """Add numbers."""
    return a + b


async def listed(mcp: FastMCP) -> list[str]:
    async with Client(mcp) as client:
        return [tool.name for tool in await client.list_tools()]


@pytest.mark.parametrize("by_option", [True, False])
async def test_the_transform_is_the_search_of_the_server(by_option: bool) -> None:
    transform = BM25SearchTransform(max_results=3, always_visible=["help"], search_tool_name="find")
    mcp = FastMCP("Shop", transforms=[transform] if by_option else None)
    if not by_option:
        mcp.add_transform(transform)
    mcp.tool(add)
    mcp.tool(name="help")(lambda: "help")
    assert await listed(mcp) == ["help", "find", "call_tool"]
    async with Client(mcp) as client:
        found = await client.call_tool("find", {"query": "adding"})
        assert [tool["name"] for tool in found.structured_content["tools"]] == ["add"]
        assert (await client.call_tool("call_tool", {"name": "add", "arguments": {"a": 1, "b": 2}})).text == "3"


def test_other_searches_and_transforms_are_errors_that_say_what_to_use() -> None:
    with pytest.raises(TypeError, match="Use BM25SearchTransform"):
        RegexSearchTransform(max_results=3)
    with pytest.raises(TypeError, match="no option 'search_result_serializer'"):
        BM25SearchTransform(search_result_serializer=str)
    for transform in (object(), Any):
        with pytest.raises(TypeError, match=r"is not a transform of funcmcp\. Use one of funcmcp\.transforms"):
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
        ("ToolTransformConfig", r"funcmcp\.transforms\.ToolChange"),
        ("FileSystemProvider", r"funcmcp\.providers\.FileSystemProvider"),
        ("Approval", "confirm="),
        ("SessionId", r"funcmcp\.state\.StateHandle"),
    ],
)
def test_a_name_of_fastmcp_leads_to_that_of_funcmcp(name: str, advice: str) -> None:
    with pytest.raises(ImportError, match=f"funcmcp.compat has no {name}. .*{advice}"):
        getattr(compat, name)
