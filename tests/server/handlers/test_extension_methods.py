"""Methods of extensions: who may use them, and which clients have them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from funcmcp import Context, MCPError, MCPServer
from funcmcp.auth import APIKeys
from funcmcp.extensions import Extension
from funcmcp.testing import Client

SEARCH = "com.example/search"
QUERY = "com.example/search/query"


def nothing() -> dict[str, Any]:
    return {}


async def error_of(client: Client, method: str) -> MCPError:
    with pytest.raises(MCPError) as caught:
        await client.request(method)
    return caught.value


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_client_without_the_extension_gets_an_error_that_names_it(revision: str) -> None:
    mcp = MCPServer("Shop", extensions=[Extension(SEARCH)])
    mcp.method(QUERY, extension=SEARCH)(nothing)
    async with Client(mcp, revision=revision) as client:
        error = await error_of(client, QUERY)
    assert (error.code, error.data) == (-32021, {"requiredCapabilities": {"extensions": {SEARCH: {}}}})
    async with Client(mcp, revision=revision, extensions=[SEARCH]) as client:
        assert "error" not in await client.request(QUERY)


async def test_a_session_keeps_the_extensions_of_the_server_before_others() -> None:
    mcp = MCPServer("Shop", extensions=[Extension(SEARCH)])
    mcp.method(QUERY, extension=SEARCH)(nothing)
    names = [*(f"com.other/{number}" for number in range(20)), SEARCH]
    async with Client(mcp, revision="2025-11-25", extensions=names) as client:
        assert await client.request(QUERY) == {}


async def test_older_revisions_have_neither_extensions_nor_their_methods() -> None:
    mcp = MCPServer("Shop", extensions=[Extension(SEARCH)])
    mcp.method(QUERY)(nothing)
    async with Client(mcp, revision="2025-06-18") as client:
        assert "extensions" not in client.capabilities
        assert (await error_of(client, QUERY)).code == -32601


async def test_a_method_has_the_access_of_its_options() -> None:
    mcp = MCPServer("Shop", auth=APIKeys({"ann": "the-key-of-ann-0001"}))
    mcp.method("com.example/open", allow_anonymous=True)(nothing)
    mcp.method("com.example/closed")(nothing)
    mcp.method("com.example/admin", scopes=["admin"])(nothing)
    async with Client(mcp) as client:
        assert "error" not in await client.request("com.example/open")
        with pytest.raises(Exception, match="401"):
            await client.request("com.example/closed")
    async with Client(mcp, headers={"x-api-key": "the-key-of-ann-0001"}) as client:
        assert "error" not in await client.request("com.example/closed")
        with pytest.raises(Exception, match="403"):
            await client.request("com.example/admin")


async def test_a_method_can_be_hidden() -> None:
    mcp = MCPServer("Shop")
    mcp.method(QUERY, tags={"beta"}, enabled=False)(nothing)
    async with Client(mcp) as client:
        assert (await error_of(client, QUERY)).code == -32601
        mcp.enable(tags={"beta"})
        assert await client.request(QUERY)
        mcp.disable(components={"method"})
        assert (await error_of(client, QUERY)).code == -32601


async def test_a_method_has_a_time_limit() -> None:
    async def query() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    mcp = MCPServer("Shop")
    mcp.method(QUERY, timeout=0.01)(query)
    async with Client(mcp) as client:
        assert (await error_of(client, QUERY)).code == -32603


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_method_may_ask_the_client(revision: str) -> None:
    async def query(context: Context) -> dict[str, Any]:
        return {"month": str(await context.elicit("Which month?", str))}

    async def elicit(_params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"value": "May"}}

    mcp = MCPServer("Shop")
    mcp.method(QUERY)(query)
    async with Client(mcp, revision=revision, elicit=elicit) as client:
        params: dict[str, Any] = {}
        result = await client.request(QUERY, params)
        if result.get("resultType") == "input_required":  # `request` answers no questions itself
            [key] = result["inputRequests"]
            answer = {"action": "accept", "content": {"value": "May"}}
            params = {"inputResponses": {key: answer}, "requestState": result["requestState"]}
            result = await client.request(QUERY, params)
    assert "May" in result["month"]


async def test_the_rules_of_a_session_leave_methods_as_they_are() -> None:
    mcp = MCPServer("Shop", sessions="memory")
    mcp.method(QUERY)(nothing)

    @mcp.tool
    async def hide(context: Context) -> str:
        await context.disable({"hide"})
        return "hidden"

    async with Client(mcp, revision="2025-11-25") as client:
        await client.call_tool("hide")
        assert await client.request(QUERY) == {}


async def test_an_author_calls_features_beside_methods() -> None:
    mcp = MCPServer("Shop")
    mcp.method(QUERY)(nothing)
    mcp.tool("add")(nothing)
    assert await mcp.call_tool("add")
