"""Calls of tools that do not exist for the client: a result that says so, as in the originals, and no error."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import CallNext, FastMCP, MCPServer, Middleware, MiddlewareContext, NotFoundError
from funcmcp.testing import Client


class Hiding(Middleware):
    async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        if context.message.name == "secret":
            raise NotFoundError("It does not exist.")
        return await call_next(context)


def shop(server_class: type[FastMCP]) -> FastMCP:
    mcp = server_class("Shop")
    mcp.tool(name="off")(lambda: "off")
    mcp.disable({"off"})
    return mcp


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("name", ["nothing", "off", "it's"])
@pytest.mark.parametrize("server_class", [FastMCP, MCPServer])
async def test_a_call_of_an_unknown_tool_has_the_result_of_the_originals(
    server_class: type[FastMCP], name: str, revision: str
) -> None:
    async with Client(shop(server_class), revision=revision) as client:
        result = await client.call_tool(name, raise_on_error=False)
    expected = name if server_class is MCPServer else repr(name)
    assert (result.is_error, result.text) == (True, f"Unknown tool: {expected}")
    assert result.structured_content is None


@pytest.mark.parametrize("prefix", [None, "shop"])
async def test_what_middleware_hides_is_unknown_also_through_a_mount(prefix: str | None) -> None:
    mcp, above = FastMCP("Shop", middleware=[Hiding()]), FastMCP("Above")
    mcp.tool(name="secret")(lambda: "secret")
    above.mount(mcp, prefix)
    name = f"{prefix}_secret" if prefix else "secret"
    async with Client(above) as client:
        result = await client.call_tool(name, raise_on_error=False)
    assert (result.is_error, result.text) == (True, f"Unknown tool: {name!r}")


async def test_the_author_gets_an_exception() -> None:
    with pytest.raises(NotFoundError, match="Unknown tool"):
        await shop(FastMCP).call_tool("nothing")
