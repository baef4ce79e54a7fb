"""FastMCP's tools that call other tools of their server."""

from __future__ import annotations

from typing import Any

from funcmcp.compat import FastMCP, StaticTokenVerifier, ToolError, require_scopes
from funcmcp.compat.fastmcp.contrib.bulk_tool_caller import BulkToolCaller
from funcmcp.testing import Client


def shop(**options: Any) -> FastMCP:
    mcp = FastMCP("shop", **options)

    @mcp.tool
    def buy(item: str) -> dict[str, str]:
        if item == "milk":
            raise ToolError("sold out")
        return {"item": item}

    BulkToolCaller().register_tools(mcp)
    return mcp


async def bulk(client: Client, *calls: tuple[str, dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    arguments = [{"tool": tool, "arguments": arguments} for tool, arguments in calls]
    result = await client.call_tool("call_tools_bulk", {"tool_calls": arguments, **options})
    assert result.structured_content is not None
    results: list[dict[str, Any]] = result.structured_content["result"]
    return results


async def test_several_calls_are_made_in_one_request() -> None:
    async with Client(shop()) as client:
        first, second, third = await bulk(client, ("buy", {"item": "milk"}), ("buy", {"item": "tea"}), ("sell", {}))
        assert (first["tool"], first["arguments"], first["is_error"]) == ("buy", {"item": "milk"}, True)
        assert "sold out" in first["content"][0]["text"]
        assert second["structured_content"] == {"item": "tea"}
        assert "sell" in third["content"][0]["text"]


async def test_calls_stop_at_a_failure_if_asked() -> None:
    async with Client(shop()) as client:
        calls = [("buy", {"item": "milk"}), ("buy", {"item": "tea"})]
        assert len(await bulk(client, *calls, continue_on_error=False)) == 1


async def test_one_tool_is_called_with_several_arguments() -> None:
    async with Client(shop()) as client:
        arguments = {"tool": "buy", "tool_arguments": [{"item": "tea"}, {"item": "bread"}]}
        result = await client.call_tool("call_tool_bulk", arguments)
        assert result.structured_content is not None
        contents = [item["structured_content"] for item in result.structured_content["result"]]
        assert contents == [{"item": "tea"}, {"item": "bread"}]


async def test_the_tools_do_not_call_themselves() -> None:
    async with Client(shop()) as client:
        (result,) = await bulk(client, ("call_tool_bulk", {}))
        assert "cannot call itself" in result["content"][0]["text"]


async def test_calls_are_those_of_the_caller() -> None:
    mcp = shop(auth=StaticTokenVerifier({"a": {"client_id": "ada", "scopes": ["admin"]}, "b": {"client_id": "bob"}}))

    @mcp.tool(auth=require_scopes("admin"))
    def close() -> dict[str, str]:
        return {"shop": "closed"}

    failures = {}
    for token in ("a", "b"):
        async with Client(mcp, headers={"Authorization": f"Bearer {token}"}) as client:
            (result,) = await bulk(client, ("close", {}))
            failures[token] = result["is_error"]
    assert failures == {"a": False, "b": True}
