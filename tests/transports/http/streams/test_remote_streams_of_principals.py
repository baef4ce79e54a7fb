"""A session that nobody in particular began, at two instances: each principal has a part of it for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Context, MCPServer
from funcmcp._auth.policy import Auth
from funcmcp._server.connections.hub import TOOLS
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.messages import HttpRequest
from funcmcp._transports.http.streams import remote_streams
from tests.state.shared import SharedMemory, SharedMemorySessions
from tests.wire.callers import ALICE, BOB, KEYS, Caller
from tests.wire.peer import HANDSHAKE, exchange, initialize

if TYPE_CHECKING:
    from tests.wire.peer import Exchange

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

MENU = "menu://today"
ASKING: dict[str, Any] = {"elicitation": {}}


def shop(memory: SharedMemory) -> MCPServer:
    """Return an instance."""
    mcp = MCPServer("Shop", auth=Auth(KEYS, lists="open"), sessions=SharedMemorySessions(memory))

    @mcp.tool
    async def ask(context: Context) -> str:
        answer = await context.elicit("Well?", {"type": "object", "properties": {}})
        caller = context.principal
        return f"{caller.subject if caller else 'nobody'} {answer.action}"

    @mcp.tool
    async def log(context: Context) -> str:
        await context.info("a word")
        await context.error("a worry")
        return "logged"

    @mcp.tool
    async def break_off(context: Context) -> str:
        await context.error("before")
        await context.close_stream()
        await context.error("after")
        return "all said"

    @mcp.resource(MENU, allow_anonymous=True)
    async def menu() -> str:
        return "soup"

    return mcp


class Shared:
    """One session at two instances."""

    def __init__(self, here: MCPServer, there: MCPServer, session_id: str) -> None:
        self.here = here
        self.there = there
        self.session_id = session_id

    def at(self, instance: MCPServer, key: str | None) -> Caller:
        """Return a caller in the session."""
        return Caller(instance, HANDSHAKE, ASKING, self.session_id, key=key)


@pytest.fixture
async def shared(monkeypatch: pytest.MonkeyPatch) -> Shared:
    monkeypatch.setattr(remote_streams, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(remote_streams, "READ_SECONDS", 0.05)
    memory = SharedMemory()
    here, there = shop(memory), shop(memory)
    begun = await Caller(here).post(initialize(HANDSHAKE, ASKING))
    session_id = begun.header("mcp-session-id")
    assert session_id is not None
    return Shared(here, there, session_id)


def listen(caller: Caller, last: str | None = None) -> Exchange:
    """Open a stream with GET: the general one, or another one again."""
    headers = {**caller.headers(None), "accept": "text/event-stream"}
    if last is not None:
        headers["last-event-id"] = last
    return exchange(caller.app, "GET", headers.items())


async def opened(caller: Caller) -> Exchange:
    """Open the general stream, and wait until it is there."""
    stream = listen(caller)
    await stream.begun()
    assert (await stream.part())["body"]
    return stream


async def rest(stream: Exchange) -> list[Any]:
    """Read a stream to its end."""
    return (await stream.answer()).messages


def data(messages: list[Any]) -> list[Any]:
    """Return what log messages say, and None for each other one."""
    return [message.get("params", {}).get("data") for message in messages]


@pytest.mark.parametrize("at", ["here", "there"])
async def test_an_answer_counts_from_the_principal_who_was_asked_and_from_nobody_else(shared: Shared, at: str) -> None:
    stream = shared.at(shared.here, ALICE).start_call("ask")
    question = await stream.event()
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}}
    refusal = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
    for instance in (shared.here, shared.there):
        for key in (None, BOB):
            assert (await shared.at(instance, key).post(refusal)).status == 202
    assert (await shared.at(getattr(shared, at), ALICE).post(answer)).status == 202
    [*_, ended] = await rest(stream)
    assert ended["result"]["content"][0]["text"] == "alice accept"


@pytest.mark.parametrize("at", ["here", "there"])
async def test_a_call_is_cancelled_by_its_principal(shared: Shared, at: str) -> None:
    stream = shared.at(shared.here, ALICE).start_call("ask", id=7)
    question = await stream.event()
    await shared.at(getattr(shared, at), ALICE).notify("notifications/cancelled", {"requestId": 7})
    assert await rest(stream) == [question]


async def test_a_call_is_cancelled_by_nobody_else(shared: Shared) -> None:
    stream = shared.at(shared.here, ALICE).start_call("ask", id=7)
    question = await stream.event()
    for instance in (shared.here, shared.there):
        for key in (None, BOB):
            await shared.at(instance, key).notify("notifications/cancelled", {"requestId": 7})
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}}
    await shared.at(shared.here, ALICE).post(answer)
    [*_, ended] = await rest(stream)
    assert ended["result"]["content"][0]["text"] == "alice accept"


async def test_a_log_level_is_a_principals_own_at_every_instance(shared: Shared) -> None:
    assert (await shared.at(shared.here, ALICE).request("logging/setLevel", {"level": "error"})).status == 200
    assert (await shared.at(shared.here, None).request("logging/setLevel", {"level": "emergency"})).status == 200
    for instance in (shared.here, shared.there):
        assert data((await shared.at(instance, ALICE).call("log")).messages) == ["a worry", None]
        assert data((await shared.at(instance, BOB).call("log")).messages) == ["a word", "a worry", None]


async def test_subscriptions_and_streams_are_a_principals_own_and_end_with_the_session(shared: Shared) -> None:
    await shared.at(shared.here, ALICE).request("resources/subscribe", {"uri": MENU})
    hers = await opened(shared.at(shared.there, ALICE))
    assert (await shared.at(shared.here, ALICE).get()).status == 409
    his = await opened(shared.at(shared.there, BOB))
    nobodys = await opened(shared.at(shared.here, None))
    shared.here.notify_resource_updated(MENU)
    assert (await hers.event())["params"] == {"uri": MENU}
    assert (await shared.at(shared.here, None).delete()).status == 204
    assert await rest(his) == await rest(nobodys) == []
    assert [message["method"] for message in await rest(hers)] == ["notifications/resources/updated"]
    for instance in (shared.here, shared.there):
        for key in (None, ALICE, BOB):
            assert (await shared.at(instance, key).request("ping")).status == 404


async def test_without_streams_a_principal_hears_of_its_own_subscriptions_only(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HttpRequest, "can_stream", False)
    await shared.at(shared.here, ALICE).request("resources/subscribe", {"uri": MENU})
    for key in (BOB, None):
        await shared.at(shared.here, key).request("ping")
    shared.here.notify_resource_updated(MENU)
    for key in (BOB, None):
        assert (await shared.at(shared.here, key).request("ping")).messages[0]["result"] == {}
    told, answer = (await shared.at(shared.here, ALICE).request("ping")).messages
    assert (told["params"], answer["result"]) == ({"uri": MENU}, {})


async def test_a_stream_is_taken_up_again_at_another_instance_by_its_principal_and_by_nobody_else(
    shared: Shared,
) -> None:
    broken = await shared.at(shared.here, ALICE).start_call("break_off").answer()
    last = next(line[4:] for line in reversed(broken.body.decode().split("\n")) if line.startswith("id: "))
    for instance in (shared.here, shared.there):
        for key in (None, BOB):
            stream = listen(shared.at(instance, key), last)  # the general stream, of its own
            await stream.begun()
            assert last.partition("-")[0] not in str(await stream.part())
            runtime_of(shared.here).server.hub.publish(TOOLS)
            assert (await stream.event())["method"] == "notifications/tools/list_changed"
            stream.leave()
            await stream.ended()
    again = await rest(listen(shared.at(shared.there, ALICE), last))
    assert data([*broken.messages, *again]) == ["before", "after", None]
