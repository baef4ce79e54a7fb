"""An endpoint on a platform that sends a response as a whole.

What needs a live stream is refused in plain words; what changed is told with the next answer of the session.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Context, MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp.testing import MemoryRequest
from tests.server.parts import KEYS
from tests.server_options import grouped
from tests.transports.http.endpoint import BOTH, Got, mirrored, per_request, read_all, request

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.branches("Platforms without streams can't be listened on.")

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}}


class Whole(MemoryRequest):
    can_stream = False


def whole_server(**options: Any) -> MCPServer:
    mcp = MCPServer("whole", **grouped(**options))

    @mcp.tool
    async def work(context: Context) -> str:
        await context.report_progress(1, 2)
        return "done"

    @mcp.tool
    async def ask(context: Context) -> str:
        answer = await context.elicit("Who?", FORM)
        return str(answer.content)

    @mcp.tool
    async def touch(context: Context, uris: list[str]) -> str:
        await context.report_progress(1, 2)
        for uri in uris:
            mcp.notify_resource_updated(uri)
        return "touched"

    @mcp.resource("a://b")
    def text() -> str:
        return "text"

    @mcp.resource("n://{number}")
    def numbered(number: int) -> str:
        return str(number)

    return mcp


@pytest.fixture
def mcp() -> MCPServer:
    return whole_server(sessions="memory")


async def send(
    mcp: MCPServer, body: object, headers: Mapping[str, str | None] | None = None, method: str = "POST"
) -> Got:
    usual = {"host": "127.0.0.1", "content-type": "application/json", "accept": BOTH, **(headers or {})}
    lines = [(name.encode(), value.encode()) for name, value in usual.items() if value is not None]
    data = b"" if body is None else json.dumps(body).encode()
    return await read_all(await runtime_of(mcp).exchange(Whole(method, "/mcp", lines, data)))


async def begin(mcp: MCPServer) -> tuple[Got, dict[str, str | None]]:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": CAPABILITIES,
        "clientInfo": {"name": "c", "version": "1"},
    }
    got = await send(mcp, request("initialize", params))
    return got, {"mcp-session-id": got.headers["mcp-session-id"]}


async def subscribed(mcp: MCPServer, *uris: str) -> dict[str, str | None]:
    """Begin a session that wants to hear of changes."""
    _, session = await begin(mcp)
    for uri in uris:
        got = await send(mcp, request("resources/subscribe", {"uri": uri}), session)
        assert got.answer["result"] == {}
    return session


def told(got: Got) -> list[Any]:
    """Return what a client is told before an answer: methods, and URIs where there are any."""
    assert [message.get("id") for message in got.messages] == [None] * (len(got.messages) - 1) + [1]
    return [message["params"].get("uri", message["method"]) for message in got.messages[:-1]]


PING = request("ping")


async def test_subscribing_is_promised_to_the_handshake_era_and_listening_to_nobody(mcp: MCPServer) -> None:
    got, _ = await begin(mcp)
    capabilities = got.answer["result"]["capabilities"]
    assert capabilities["tools"] == {"listChanged": True}
    assert capabilities["resources"] == {"listChanged": True, "subscribe": True}
    discovered = per_request("server/discover")
    found = (await send(mcp, discovered, mirrored(discovered))).answer["result"]["capabilities"]
    assert found["tools"] == {}
    assert found["resources"] == {}


async def test_signed_sessions_promise_nothing_and_are_told_nothing() -> None:
    mcp = whole_server(sessions=SignedSessions(KEYS))
    got, session = await begin(mcp)
    assert got.answer["result"]["capabilities"]["resources"] == {}
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert (await send(mcp, request(method, {"uri": "a://b"}), session)).code == -32601
    mcp.notify_resources_changed()
    assert not (await send(mcp, PING, session)).streamed


async def test_what_changed_is_told_once_before_the_next_answer(mcp: MCPServer) -> None:
    session = await subscribed(mcp, "a://b")
    for _ in range(3):
        mcp.notify_resource_updated("a://b")
        mcp.notify_resource_updated("n://1")
        mcp.notify_resources_changed()
    got = await send(mcp, PING, session)
    assert got.streamed
    assert b"id: " not in got.body
    assert told(got) == ["a://b", "notifications/resources/list_changed"]
    assert got.answer["result"] == {}
    got = await send(mcp, PING, session)
    assert (got.streamed, got.answer["result"]) == (False, {})
    mcp.notify_resource_updated("a://b")
    assert told(await send(mcp, PING, session)) == ["a://b"]


async def test_a_new_tool_is_told_without_any_subscription(mcp: MCPServer) -> None:
    _, session = await begin(mcp)
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await send(mcp, initialized, session)

    @mcp.tool
    def late() -> str:
        return "late"

    assert (await send(mcp, initialized, session)).body == b""
    got = await send(mcp, request("tools/list"), session)
    assert told(got) == ["notifications/tools/list_changed"]
    assert "late" in {tool["name"] for tool in got.answer["result"]["tools"]}


async def test_what_a_call_changes_comes_with_its_own_answer(mcp: MCPServer) -> None:
    session = await subscribed(mcp, "a://b")
    call = request("tools/call", {"name": "touch", "arguments": {"uris": ["a://b"]}})
    got = await send(mcp, call, session)
    assert (told(got), got.text) == (["a://b"], "touched")
    call["params"]["_meta"] = {"progressToken": 7}
    got = await send(mcp, call, session)
    methods = [str(message.get("method")) for message in got.messages]
    assert sorted(methods[:-1]) == ["notifications/progress", "notifications/resources/updated"]
    assert got.text == "touched"
    assert not (await send(mcp, PING, session)).streamed


async def test_an_error_comes_behind_what_changed(mcp: MCPServer) -> None:
    session = await subscribed(mcp, "a://b")
    mcp.notify_resource_updated("a://b")
    got = await send(mcp, request("resources/read", {"uri": "no://thing"}), session)
    assert told(got) == ["a://b"]
    assert got.code == -32002


async def test_news_wait_for_an_answer_that_may_be_a_stream(mcp: MCPServer) -> None:
    session = await subscribed(mcp, "a://b")
    mcp.notify_resource_updated("a://b")
    got = await send(mcp, PING, {**session, "accept": "application/json"})
    assert got.headers["content-type"] == "application/json"
    assert told(await send(mcp, PING, {**session, "accept": "text/event-stream"})) == ["a://b"]


async def test_a_batch_of_answers_comes_behind_what_changed(mcp: MCPServer) -> None:
    params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    begun = await send(mcp, request("initialize", params))
    session = {"mcp-session-id": begun.headers["mcp-session-id"]}
    await send(mcp, [request("resources/subscribe", {"uri": "a://b"})], session)
    mcp.notify_resource_updated("a://b")
    got = await send(mcp, [PING, request("ping", request_id=2)], session)
    news, answers = (json.loads(line[6:]) for line in got.body.splitlines() if line.startswith(b"data: "))
    assert news["params"] == {"uri": "a://b"}
    assert [answer["id"] for answer in answers] == [1, 2]


async def test_what_is_not_wanted_any_more_is_not_told(mcp: MCPServer) -> None:
    session = await subscribed(mcp, "a://b", "n://1")
    mcp.notify_resource_updated("a://b")
    mcp.notify_resource_updated("n://1")
    quiet = {**session, "accept": "application/json"}
    await send(mcp, request("resources/unsubscribe", {"uri": "a://b"}), quiet)
    assert told(await send(mcp, PING, session)) == ["n://1"]


async def test_others_are_told_nothing_of_what_a_session_subscribed_to(mcp: MCPServer) -> None:
    session, other = await subscribed(mcp, "a://b"), await subscribed(mcp, "n://1")
    mcp.notify_resource_updated("a://b")
    assert not (await send(mcp, PING, other)).streamed
    assert told(await send(mcp, PING, session)) == ["a://b"]


async def test_no_more_waits_than_a_session_wants(mcp: MCPServer) -> None:
    uris = [f"n://{number}" for number in range(5)]
    session = await subscribed(mcp, *uris[:2])
    for _ in range(200):
        for uri in uris:
            mcp.notify_resource_updated(uri)
    assert told(await send(mcp, PING, session)) == uris[:2]


async def test_nothing_is_kept_for_a_session_that_has_ended(mcp: MCPServer) -> None:
    session = await subscribed(mcp, "a://b")
    assert len(runtime_of(mcp).server.hub) == 1
    assert (await send(mcp, None, {**session, "content-type": None}, "DELETE")).status == 204
    assert len(runtime_of(mcp).server.hub) == 0
    assert (await send(mcp, PING, session)).status == 404


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
