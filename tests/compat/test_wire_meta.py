"""What FastMCP sends of a component in ``_meta.fastmcp``."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import FastMCP, MCPServer
from funcmcp.testing import Client


@pytest.mark.parametrize(
    ("make", "options", "meta"),
    [
        (FastMCP, {}, {"a": 1, "fastmcp": {"tags": ["x", "y"]}}),
        (FastMCP, {"include_fastmcp_meta": False}, {"a": 1}),
        (MCPServer, {}, {"a": 1}),
    ],
)
async def test_clients_get_the_tags(make: type[FastMCP], options: dict[str, Any], meta: dict[str, Any]) -> None:
    mcp = make("tagged", **options)
    mcp.tool(name="tagged", tags={"y", "x"}, meta={"a": 1})(lambda: 1)
    mcp.resource("a://b", tags={"x"})(lambda: "b")
    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
        (resource,) = await client.list_resources()
    assert tool.meta == meta
    assert ("fastmcp" in resource.meta) == ("fastmcp" in meta)
