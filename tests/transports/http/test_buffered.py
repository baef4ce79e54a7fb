"""An endpoint on a platform that sends a response as a whole: what needs a live stream is refused in plain words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer, ToolContext
from funcmcp.testing import MemoryRequest
from tests.transports.http.endpoint import BOTH, Got, mirrored, per_request, read_all, request

if TYPE_CHECKING:
    from collections.abc import Mapping

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}}


class Whole(MemoryRequest):
    streams = False


@pytest.fixture
def mcp() -> MCPServer:
    mcp = MCPServer("whole", sessions="memory")

    @mcp.tool
    async def work(context: ToolContext) -> str:
        await context.progress(1, 2)
        return "done"

    @mcp.tool
    async def ask(context: ToolContext) -> str:
        answer = await context.elicit("Who?", FORM)
        return str(answer.content)

    @mcp.resource("a://b")
    def text() -> str:
        return "text"

    return mcp


async def send(
    mcp: MCPServer, body: dict[str, Any] | None, headers: Mapping[str, str | None] | None = None, method: str = "POST"
) -> Got:
    usual = {"host": "127.0.0.1", "content-type": "application/json", "accept": BOTH, **(headers or {})}
    lines = [(name.encode(), value.encode()) for name, value in usual.items() if value is not None]
    data = b"" if body is None else json.dumps(body).encode()
    return await read_all(await mcp.exchange(Whole(method, "/mcp", lines, data)))


async def begin(mcp: MCPServer) -> tuple[Got, dict[str, str | None]]:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": CAPABILITIES,
        "clientInfo": {"name": "c", "version": "1"},
    }
    got = await send(mcp, request("initialize", params))
    return got, {"mcp-session-id": got.headers["mcp-session-id"]}


async def test_nothing_is_promised_that_needs_a_live_stream(mcp: MCPServer) -> None:
    got, session = await begin(mcp)
    capabilities = got.answer["result"]["capabilities"]
    assert capabilities["tools"] == {}
    assert capabilities["resources"] == {}
    discovered = per_request("server/discover")
    found = (await send(mcp, discovered, mirrored(discovered))).answer["result"]["capabilities"]
    assert found["tools"] == {}
    assert found["resources"] == {}
    subscribed = await send(mcp, request("resources/subscribe", {"uri": "a://b"}), session)
    assert subscribed.code == -32601


async def test_a_get_is_not_allowed(mcp: MCPServer) -> None:
    _, session = await begin(mcp)
    got = await send(mcp, None, {**session, "content-type": None}, "GET")
    assert (got.status, got.headers["allow"]) == (405, "POST, DELETE")


async def test_progress_and_the_answer_come_in_one_complete_stream_that_can_not_be_taken_up(mcp: MCPServer) -> None:
    _, session = await begin(mcp)
    call = request("tools/call", {"name": "work", "arguments": {}, "_meta": {"progressToken": 7}})
    got = await send(mcp, call, session)
    assert got.streamed
    assert b"id:" not in got.body
    assert [message.get("method") for message in got.messages] == ["notifications/progress", None]
    assert got.text == "done"


async def test_a_question_is_refused_in_the_handshake_era_and_ends_the_round_in_the_other(mcp: MCPServer) -> None:
    _, session = await begin(mcp)
    got = await send(mcp, request("tools/call", {"name": "ask", "arguments": {}}), session)
    assert got.answer["result"]["isError"] is True
    assert got.text.startswith("The client can't be asked here")
    call = per_request("tools/call", {"name": "ask", "arguments": {}}, CAPABILITIES)
    got = await send(mcp, call, mirrored(call))
    assert got.answer["result"]["resultType"] == "input_required"


async def test_a_subscription_is_refused(mcp: MCPServer) -> None:
    listen = per_request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    got = await send(mcp, listen, mirrored(listen))
    assert (got.status, got.code) == (404, -32601)
    assert "live event stream" in got.answer["error"]["message"]
