"""Lone surrogates in what the server sends: each becomes U+FFFD, in both eras, in results, errors and notifications."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import Context, MCPError, MCPServer, ToolError
from funcmcp.testing import Client

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

LONE, SENT = "a\ud800b", "a\ufffdb"


def make_server() -> MCPServer:
    mcp = MCPServer("Surrogates")

    @mcp.tool
    async def notify(context: Context) -> str:
        await context.report_progress(1, 2, LONE)
        await context.log("info", {"text": LONE})
        return LONE

    @mcp.tool
    async def fail() -> str:
        raise ToolError(LONE)

    @mcp.tool
    async def refuse() -> str:
        raise MCPError(-32050, LONE, {LONE: [LONE]})

    @mcp.tool
    async def structured() -> dict[str, Any]:
        return {LONE: {"list": [LONE]}}

    return mcp


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_lone_surrogate_is_sent_as_the_replacement_character(revision: str) -> None:
    progress: list[str | None] = []
    logged: list[Any] = []
    async with Client(
        make_server(),
        revision=revision,
        on_progress=lambda update: progress.append(update.message),
        on_log=lambda message: logged.append(message.data),
    ) as client:
        assert (await client.call_tool("notify")).text == SENT
        assert (await client.call_tool("fail", raise_on_error=False)).text == SENT
        assert (await client.call_tool("structured")).structured_content == {SENT: {"list": [SENT]}}
        with pytest.raises(MCPError) as caught:
            await client.call_tool("refuse")
    assert (caught.value.code, caught.value.message, caught.value.data) == (-32050, SENT, {SENT: [SENT]})
    assert progress == [SENT]
    assert logged == [{"text": SENT}]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "structured", "arguments": None}),
        ("tools/list", {"cursor": None}),
        ("tools/list", {"cursor": ""}),
        ("prompts/list", {"_meta": None}),
        ("ping", None),
    ],
)
async def test_members_that_are_null_or_empty_count_as_absent(method: str, params: dict[str, Any] | None) -> None:
    mcp = make_server()
    mcp.prompt("say")(lambda: "Hi")
    async with Client(mcp, revision="2025-11-25") as client:
        result = await client.request(method, params)
    assert "error" not in result
