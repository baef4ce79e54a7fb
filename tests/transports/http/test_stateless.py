"""`MCPServer(sessions=None)`: no session ids, and each request of the handshake era stands alone."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from funcmcp import Context, HTTPOptions, MCPServer
from funcmcp._auth.api_key import APIKeys
from funcmcp._serving.composition import runtime_of
from funcmcp._state.sessions.store import Handshake, NoSessions
from tests.schemas import HANDSHAKE_REVISIONS
from tests.server_options import grouped
from tests.wire.peer import BATCHES, HANDSHAKE, PER_REQUEST, Peer, exchange, initialize

KEY = "key-of-alicealicealice"


def server(**options: Any) -> MCPServer:
    mcp = MCPServer("Sums", sessions=None, **grouped(**options))

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool
    async def count(context: Context) -> str:
        await context.report_progress(1, total=2)
        return "counted"

    @mcp.tool
    async def ask(context: Context) -> str:
        return (await context.elicit("Your name?", {"type": "object", "properties": {}}, key="name")).action

    return mcp


def adding(peer: Peer) -> dict[str, Any]:
    return peer.message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_initialize_gives_no_session_id_and_is_not_needed(revision: str) -> None:
    peer = Peer(server(), revision)
    answer = await peer.post(adding(peer))
    assert (answer.status, answer.text) == (200, "3")
    initialized = await peer.post(initialize(revision))
    assert (initialized.status, initialized.result["protocolVersion"]) == (200, revision)
    assert initialized.header("mcp-session-id") is None
    accepted = await peer.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (accepted.status, accepted.body) == (202, b"")


@pytest.mark.parametrize("revision", [*HANDSHAKE_REVISIONS, PER_REQUEST])
@pytest.mark.parametrize("session_id", [None, "of-another-server"])
async def test_a_call_without_a_session_has_no_session_id(revision: str, session_id: str | None) -> None:
    mcp = server()

    @mcp.tool
    def session(context: Context) -> str:
        return repr(context.session_id)

    assert (await Peer(mcp, revision, session_id=session_id).call("session")).text == "None"


async def test_a_session_id_that_a_client_sends_means_nothing() -> None:
    peer = Peer(server(), session_id="of-another-server")
    assert (await peer.post(adding(peer))).text == "3"


async def test_without_a_version_header_it_is_the_revision_that_the_specification_assumes() -> None:
    peer = Peer(server(), BATCHES)
    batch = [adding(peer), {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    answer = await peer.post(batch, {"mcp-protocol-version": None})
    assert answer.status == 200
    assert [message["result"]["content"][0]["text"] for message in answer.message] == ["3"]
    only_notifications = await peer.post(batch[1:], {"mcp-protocol-version": None})
    assert only_notifications.status == 202


async def test_without_a_version_header_it_is_the_newest_where_the_assumed_one_is_not_served() -> None:
    peer = Peer(server(revisions=["2025-06-18", HANDSHAKE]), HANDSHAKE)
    refused = await peer.post([adding(peer)], {"mcp-protocol-version": None})  # neither revision has batches
    assert refused.status == 400
    answer = await peer.post(adding(peer), {"mcp-protocol-version": None})
    assert answer.result["structuredContent"] == {"result": 3}


@pytest.mark.parametrize(
    ("served", "version"), [([HANDSHAKE], "2025-06-18"), ([PER_REQUEST], HANDSHAKE), ([PER_REQUEST], None)]
)
async def test_a_revision_that_is_not_served_is_400(served: list[str], version: str | None) -> None:
    peer = Peer(server(revisions=served), HANDSHAKE)
    answer = await peer.post(adding(peer), {"mcp-protocol-version": version})
    assert answer.status == 400
    assert answer.error["message"] == f"Use a revision of {served[0]}."
    assert answer.message["id"] == 1
    notified = await peer.post({"jsonrpc": "2.0", "method": "notifications/x"}, {"mcp-protocol-version": version})
    assert (notified.status, "id" in notified.message) == (400, False)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_get_and_delete_are_405(method: str) -> None:
    headers = [("host", "127.0.0.1:8000"), ("accept", "text/event-stream"), ("mcp-protocol-version", HANDSHAKE)]
    answer = await exchange(server(), method, headers).answer()
    assert (answer.status, answer.header("allow")) == (405, "POST")


async def test_progress_comes_on_the_requests_own_stream() -> None:
    peer = Peer(server())
    call = peer.message("tools/call", {"name": "count", "_meta": {"progressToken": 7}})
    progress, result = (await peer.post(call)).messages
    assert progress["params"]["progressToken"] == 7
    assert result["result"]["content"][0]["text"] == "counted"


async def test_a_question_fails_in_words_because_the_client_has_declared_nothing() -> None:
    peer = Peer(server())
    answer = await peer.post(peer.message("tools/call", {"name": "ask"}))
    assert (answer.status, answer.result["isError"]) == (200, True)


async def test_callers_are_asked_for_credentials_with_each_request() -> None:
    peer = Peer(server(auth=APIKeys({"alice": KEY}, header="authorization")))
    assert (await peer.post(adding(peer))).status == 401
    assert (await peer.post(adding(peer), {"authorization": f"Bearer {KEY}"})).text == "3"


async def test_the_new_era_is_as_ever() -> None:
    peer = Peer(server(), PER_REQUEST)
    assert (await peer.post(adding(peer))).text == "3"


async def test_nothing_is_lost_with_a_random_key_where_no_session_is_sealed(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("Sums", sessions=None)
    runtime_of(mcp).begin()
    assert caplog.records == []


async def test_the_store_has_no_sessions() -> None:
    store = NoSessions()
    assert await store.create(Handshake(HANDSHAKE)) == ""
    assert await store.get("any") is None
    assert await store.end("any") is False


@pytest.mark.parametrize("sessions", ["signed", "memory"])
async def test_a_server_that_requires_no_session_serves_requests_with_and_without_one(
    sessions: Literal["signed", "memory"],
) -> None:
    mcp = MCPServer("Sums", sessions=sessions, http=HTTPOptions(require_session=False))

    @mcp.tool
    def session(context: Context) -> str:
        return "none" if context.session_id is None else context.session_id

    alone = Peer(mcp, BATCHES)
    call = alone.message("tools/call", {"name": "session"})
    assert (await alone.post(call)).text == "none"
    assert (await alone.post([call, {"jsonrpc": "2.0", "method": "notifications/initialized"}])).status == 200
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        [{"jsonrpc": "2.0", "method": "notifications/initialized"}],
    ):
        assert (await alone.post(message)).status == 202
    session_id = (await alone.post(initialize(BATCHES))).header("mcp-session-id")
    assert session_id
    assert (await Peer(mcp, BATCHES, session_id=session_id).post(call)).text == session_id
    assert (await Peer(mcp, BATCHES, session_id="unknown").post(call)).status == 404


@pytest.mark.parametrize(
    ("required", "revision", "has_structure"), [(False, "2025-06-18", True), (True, "2025-03-26", False)]
)
async def test_a_request_without_a_revision_and_a_session(required: bool, revision: str, has_structure: bool) -> None:
    sessions: Literal["signed"] | None = None if required else "signed"
    mcp = MCPServer("Sums", sessions=sessions, http=HTTPOptions(require_session=required))

    @mcp.tool
    def double(number: int) -> int:
        return 2 * number

    peer = Peer(mcp, revision)
    answer = await peer.call("double", {"number": 2}, headers={"mcp-protocol-version": None})
    assert ("structuredContent" in answer.result) is has_structure
