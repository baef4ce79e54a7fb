"""`ctx.enable_components`, `disable_components` and `reset_visibility`: what one client sees."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from funcmcp import MCPError, ToolError
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.connection import Connection
from funcmcp.compat import Context, FastMCP, StaticTokenVerifier, VersionSpec
from funcmcp.testing import Client

pytestmark = pytest.mark.branches("Rules of a session decide about lists.")


def shop(**options: Any) -> FastMCP:
    mcp = FastMCP("shop", **options)
    mcp.tool(lambda: "secret tool", name="secret", tags={"secret"}, version="2")
    mcp.resource("shop://secret", tags={"secret"})(secret)
    mcp.prompt(lambda: "secret prompt", name="secret", tags={"secret"})
    mcp.disable(tags={"secret"})

    @mcp.tool
    async def show(ctx: Context) -> str:
        await ctx.enable_components(tags={"secret"})
        return ",".join(tool.name for tool in await mcp.list_tools())

    @mcp.tool
    async def hide(ctx: Context) -> None:
        await ctx.disable_components(match_all=True)
        await ctx.enable_components(names={"show", "reset"}, version=None)

    @mcp.tool
    async def reset(ctx: Context) -> None:
        await ctx.reset_visibility()

    return mcp


def secret() -> str:
    return "secret resource"


async def seen(client: Client) -> list[str]:
    """Return what a client lists and may use. Both must agree."""
    names = [tool.name for tool in await client.list_tools()]
    uses = {
        "secret": client.call_tool("secret", raise_on_error=True),
        "shop://secret": client.read_resource("shop://secret"),
        "prompt": client.get_prompt("secret"),
    }
    names += [str(resource.uri) for resource in await client.list_resources()]
    names += ["prompt" for _ in await client.list_prompts()]
    for name, use in uses.items():
        if name in names:
            assert name.removeprefix("shop://") in str(await use)
        else:
            with pytest.raises((MCPError, ToolError)):
                await use
    return names


async def test_a_client_sees_what_its_rules_show() -> None:
    changes: list[str] = []
    notified = lambda message: changes.append(message["method"])  # noqa: E731
    async with Client(shop(), revision="2025-11-25", on_notification=notified) as client:
        hidden = ["show", "hide", "reset"]
        assert await seen(client) == hidden
        assert (await client.call_tool("show")).text == "secret,show,hide,reset"
        assert await seen(client) == ["secret", *hidden, "shop://secret", "prompt"]
        await client.call_tool("hide")
        assert await seen(client) == ["show", "reset"]
        await client.call_tool("reset")
        assert await seen(client) == hidden
        assert changes[:3] == [f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")]


async def test_other_sessions_see_what_they_saw() -> None:
    mcp = shop()
    async with Client(mcp, revision="2025-11-25") as first, Client(mcp, revision="2025-11-25") as second:
        await first.call_tool("show")
        assert "secret" in await seen(first)
        assert "secret" not in await seen(second)


async def test_without_a_session_rules_are_those_of_the_user() -> None:
    tokens = StaticTokenVerifier({name: {"client_id": name, "scopes": []} for name in ("ann", "bob")})
    mcp = shop(auth=tokens)
    ann, bob = ({"authorization": f"Bearer {name}"} for name in ("ann", "bob"))
    async with Client(mcp, headers=ann) as first, Client(mcp, headers=bob) as second:
        await first.call_tool("show")
        assert "secret" in await seen(first)
        assert "secret" not in await seen(second)
    async with Client(shop()) as client:
        assert "Add authentication to the server" in (await client.call_tool("show")).text
        assert "secret" not in await seen(client)


async def test_on_stdio_rules_without_a_session_are_those_of_the_process() -> None:
    runtime = runtime_of(shop())
    sent: list[dict[str, Any]] = []
    answered = asyncio.Event()

    async def send(message: bytes) -> None:
        sent.append(json.loads(message))
        if "id" in sent[-1]:
            answered.set()

    async def ask(method: str, **params: Any) -> dict[str, Any]:
        meta: dict[str, Any] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        meta |= {"io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"}}
        meta |= {"io.modelcontextprotocol/clientCapabilities": {}}
        answered.clear()
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        await connection.receive(json.dumps(request).encode())
        await answered.wait()
        result: dict[str, Any] = sent[-1]["result"]
        return result

    connection = Connection(runtime.server, send, local=True)
    assert len((await ask("tools/list"))["tools"]) == 3
    await ask("tools/call", name="show", arguments={})
    assert len((await ask("tools/list"))["tools"]) == 4
    assert "secret tool" in str(await ask("tools/call", name="secret", arguments={}))
    await connection.aclose()


async def test_a_rule_names_versions() -> None:
    mcp = shop()

    @mcp.tool
    async def newest(ctx: Context) -> str:
        await ctx.enable_components(version=VersionSpec(gte="2"))
        return str(await ctx._get_visibility_rules())

    async with Client(mcp, revision="2025-11-25") as client:
        assert "'gte': '2'" in (await client.call_tool("newest")).text
        assert await seen(client) == ["secret", "show", "hide", "reset", "newest"]
