"""Tokens for tools with `grant=` in a test."""

from __future__ import annotations

from funcmcp import Context, MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp.auth import Grant
from funcmcp.testing import Client, grant_tokens


def server() -> MCPServer:
    mcp = MCPServer("Desk")

    @mcp.tool(grant=Grant("github", ["repo"]))
    async def star(context: Context) -> str:
        return await context.grant_token("github")

    @mcp.tool
    async def refuse(context: Context, refused: str) -> str:
        return await context.grant_token("github", refused=refused)

    @mcp.tool
    async def leave(context: Context) -> bool:
        return await context.end_grant("github")

    return mcp


async def test_tools_get_the_tokens_of_the_test() -> None:
    mcp = server()
    with grant_tokens(mcp, {"github": "token"}):
        runtime_of(mcp).check_grants()
        async with Client(mcp) as client:
            assert (await client.call_tool("star")).text == "token"
            assert (await client.call_tool("refuse", {"refused": "another"})).text == "token"
            assert (await client.call_tool("leave")).text == "true"
            assert (await client.call_tool("leave")).text == "false"
            assert "is not connected" in (await client.call_tool("star")).text
    assert runtime_of(mcp).grants is None


async def test_a_refused_token_is_one_that_has_ended() -> None:
    mcp = server()
    with grant_tokens(mcp, {"github": "token", "files": "other"}):
        async with Client(mcp) as client:
            assert "is not connected" in (await client.call_tool("refuse", {"refused": "token"})).text


async def test_a_mounted_server_gets_the_tokens_of_the_server_above() -> None:
    above = MCPServer("Above")
    above.mount(server(), prefix="desk")
    with grant_tokens(above, {"github": "token"}):
        async with Client(above) as client:
            assert (await client.call_tool("desk_star")).text == "token"
