"""FastMCP's middleware that keeps connections open."""

from __future__ import annotations

import pytest

from funcmcp.compat import FastMCP, PingMiddleware
from funcmcp.testing import Client


async def test_it_is_accepted_and_changes_nothing() -> None:
    mcp = FastMCP("ping", middleware=[PingMiddleware(interval_ms=10)])
    mcp.tool(lambda: "pong", name="ping")
    async with Client(mcp) as client:
        assert (await client.call_tool("ping")).text == "pong"


def test_an_interval_is_above_zero() -> None:
    with pytest.raises(ValueError, match="interval_ms must be positive"):
        PingMiddleware(0)
