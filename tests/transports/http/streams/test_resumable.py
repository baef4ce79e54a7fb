"""Streams of a session that can be taken up again, and the stream of what belongs to no request."""

from __future__ import annotations

import asyncio
import json
import re
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._server.connections.hub import TOOLS, updated
from funcmcp._server.limits import Limits
from funcmcp._server.load import Load
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._state.sessions.store import Notes, SessionKey
from funcmcp._transports.http.streams import resumable, sse
from tests import rules
from tests.patience import PATIENCE
from tests.server.parts import resource, text_result, tool
from tests.state.shared import SharedMemory, SharedMemorySessions
from tests.transports.http.endpoint import Endpoint, events, parts_until_cancelled, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._server.calls.context import RequestContext

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

URI = "menu://today"
EVENT = re.compile(rb"id: (\d+-\d+)\nevent: message\ndata: (.*)\n\n")


async def three_steps(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    for step in (1, 2, 3):
        await context.notify("notifications/progress", {"progressToken": 1, "progress": step})
    return text_result("done")


class Steps:
    """A tool that sends when it is told to."""

    def __init__(self) -> None:
        self.go: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        while (word := await self.go.get()) != "end":
            if word == "close":
                context.channel.close_stream()
            else:
                await context.notify("notifications/message", {"level": "error", "data": word})
        return text_result("done")


def endpoint(*tools: Any) -> Endpoint:
    return Endpoint(*tools, resource(URI), sessions=MemorySessions())


async def part(stream: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(PATIENCE):
        return await anext(stream)


async def message(stream: AsyncIterator[bytes]) -> tuple[str, dict[str, Any]]:
    """Return the id and the message of the next event."""
    found = EVENT.fullmatch(await part(stream))
    assert found is not None
    return found[1].decode(), json.loads(found[2])


async def rest(stream: AsyncIterator[bytes]) -> list[tuple[str, dict[str, Any]]]:
    async with asyncio.timeout(PATIENCE):
        parts = [piece async for piece in stream]
    found = [EVENT.fullmatch(piece) for piece in parts if not piece.startswith((b":", b"id: 1-0", b"retry"))]
    return [(one[1].decode(), json.loads(one[2])) for one in found if one is not None]


async def resume(served: Endpoint, session: dict[str, str], last: str) -> AsyncIterator[bytes]:
    response = await served.open(b"", {**session, "last-event-id": last}, method="GET")
    assert (response.status, dict(response.headers)["content-type"]) == (200, "text/event-stream")
    return events(response)


async def test_every_event_of_a_stream_has_an_id_and_the_first_one_is_empty() -> None:
    served = endpoint(tool("steps", three_steps, interactive=True))
    session = await served.begin()
    stream = events(await served.open(request("tools/call", {"name": "steps"}), session))
    assert await part(stream) == b"id: 1-0\nretry: 500\ndata: \n\n"
    assert [name for name, _ in await rest(stream)] == ["1-1", "1-2", "1-3", "1-4"]


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_before_2025_11_25_no_event_is_empty(revision: str) -> None:
    served = endpoint(tool("steps", three_steps, interactive=True))
    session = await served.begin(revision)
    stream = events(await served.open(request("tools/call", {"name": "steps"}), session))
    assert (await message(stream))[0] == "1-1"
    assert len(await rest(stream)) == 3


async def test_a_call_that_sends_nothing_before_its_answer_is_plain_json() -> None:
    async def quiet(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return text_result("quiet")

    served = endpoint(tool("quiet", quiet, interactive=True))
    got = await served.send(request("tools/call", {"name": "quiet"}), await served.begin())
    assert (got.streamed, got.text) == (False, "quiet")


async def test_a_broken_stream_is_taken_up_where_it_broke_off() -> None:
    steps = Steps()
    served = endpoint(tool("steps", steps, interactive=True))
    session = await served.begin()
    opening = asyncio.create_task(served.open(request("tools/call", {"name": "steps"}, 9), session))
    steps.go.put_nowait("one")
    stream = events(await opening)
    await part(stream)
    last, first = await message(stream)
    assert first["params"]["data"] == "one"
    await stream.aclose()  # type: ignore[attr-defined]
    for word in ("two", "three", "end"):
        steps.go.put_nowait(word)
    again = await resume(served, session, last)
    await part(again)
    found = await rest(again)
    assert [one["params"]["data"] for _, one in found[:-1]] == ["two", "three"]
    assert found[-1][1]["id"] == 9
    assert found[-1][1]["result"]["content"][0]["text"] == "done"
    once_more = await resume(served, session, "1-3")
    await part(once_more)
    assert [name for name, _ in await rest(once_more)] == ["1-4"]


async def test_a_tool_can_send_its_client_away_to_fetch_the_rest_later() -> None:
    steps = Steps()
    served = endpoint(tool("steps", steps, interactive=True))
    session = await served.begin()
    opening = asyncio.create_task(served.open(request("tools/call", {"name": "steps"}), session))
    steps.go.put_nowait("close")
    stream = events(await opening)
    steps.go.put_nowait("later")
    steps.go.put_nowait("end")
    assert await rest(stream) == []
    again = await resume(served, session, "1-0")
    await part(again)
    assert len(await rest(again)) == 2


async def test_nobody_takes_up_a_stream_of_another_session() -> None:
    served = endpoint(tool("steps", three_steps, interactive=True))
    mine, other = await served.begin(), await served.begin()
    await served.send(request("tools/call", {"name": "steps"}), mine)
    stream = await resume(served, other, "1-0")
    assert await part(stream) == b"id: 0-0\nretry: 500\ndata: \n\n"


async def test_an_event_that_was_never_sent_does_not_make_a_client_deaf() -> None:
    for last in ("0-0", "0-999999"):
        served = endpoint()
        session = await served.begin()
        stream = await resume(served, session, last)
        assert (await part(stream)).startswith(b"id: 0-0\n")
        served.server.hub.publish(TOOLS)
        assert (await message(stream))[0] == "0-1"


async def test_what_a_session_had_goes_with_it_when_it_is_too_old() -> None:
    now = 1000.0
    served = Endpoint(resource(URI), sessions=MemorySessions(idle=100, clock=lambda: now))
    for _ in range(5):
        await served.send(request("resources/subscribe", {"uri": URI}), await served.begin())
    assert len(served.server.hub) == 5
    now += 200
    await served.begin()
    assert len(served.server.hub) == 0


async def test_finished_streams_of_all_sessions_are_bounded_together() -> None:
    finished_streams = resumable.FinishedStreams(10_000)
    owners = [resumable.SessionStreams(priming=False, finished_streams=finished_streams) for _ in range(3)]
    streams = []
    for owner in owners:
        stream = owner.open()
        stream.append(b"x" * 2000)
        stream.finish()
        owner.keep(stream)
        streams.append(stream)
    assert [owner.find("1-0") is None for owner in owners] == [True, False, False]


def test_events_beyond_the_memory_of_their_caller_displace_its_finished_streams_and_then_their_own_older_ones() -> None:
    memory = Load(Limits(memory_bytes_per_principal=40_000)).memory
    finished_streams = resumable.FinishedStreams(memory=memory)
    mine, other = (
        resumable.SessionStreams(priming=False, finished_streams=finished_streams, caller=caller)
        for caller in ("address:192.0.2.1", "address:192.0.2.2")
    )
    for owner in (other, mine, mine):
        stream = owner.open()
        stream.append(b"x" * 10_000)
        stream.finish()
        owner.keep(stream)
    growing = mine.open()
    growing.append(b"y" * 10_000)
    assert [mine.find(event) is None for event in ("1-0", "2-0")] == [True, False]
    for _ in range(4):
        growing.append(b"y" * 10_000)
    assert [mine.find(event) is None for event in ("1-0", "2-0")] == [True, True]
    assert [number for number, _ in growing._events] == [3, 4, 5]
    growing.append(b"z" * 50_000)
    assert [number for number, _ in growing._events] == [6]
    assert other.find("1-0") is not None
    other.close()
    mine.close()
    assert memory.used == 0
    growing.append(b"late")
    assert memory.used == 0


@rules.verifies(rules.THREAT_27)
@pytest.mark.parametrize("length", [20, 5000])
def test_finished_streams_take_up_no_more_memory_than_their_limit(length: int) -> None:
    """The overhead of small events counts too."""
    limit = 2_000_000
    finished_streams = resumable.FinishedStreams(limit)
    sessions = [resumable.SessionStreams(priming=True, finished_streams=finished_streams) for _ in range(600)]
    tracemalloc.start()
    try:
        for number, streams in enumerate(sessions):
            for _ in range(2):
                stream = streams.open()
                for _ in range(10):
                    stream.append(b"%d" % number + b"x" * length)
                stream.finish()
                streams.keep(stream)
        assert finished_streams.size <= limit
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < limit * 1.05, held


async def test_a_session_that_ends_frees_its_finished_streams_and_those_still_to_finish() -> None:
    steps = Steps()
    served = endpoint(tool("steps", three_steps, interactive=True), tool("later", steps, interactive=True))
    finished_streams = served.exchange._handshake._finished_streams
    session = await served.begin()
    for _ in range(3):
        await rest(events(await served.open(request("tools/call", {"name": "steps"}), session)))
    assert finished_streams.size > 3 * 4 * 160
    steps.go.put_nowait("one")
    second = events(await served.open(request("tools/call", {"name": "later"}), session))
    assert (await served.send(b"", session, method="DELETE")).status == 204
    assert finished_streams.size == 0
    steps.go.put_nowait("end")
    assert len([part async for part in second]) == 3
    assert finished_streams.size == 0


async def test_streams_that_a_session_forgets_are_not_kept_for_all_sessions() -> None:
    served = endpoint(tool("steps", three_steps, interactive=True))
    session = await served.begin()
    sizes = []
    for _ in range(30):
        await rest(events(await served.open(request("tools/call", {"name": "steps"}), session)))
        sizes.append(served.exchange._handshake._finished_streams.size)
    assert sizes[-1] == sizes[-2] == sizes[16]


async def test_nothing_is_kept_of_a_stream_on_which_nothing_was_sent() -> None:
    steps = Steps()
    served = endpoint(tool("steps", steps, interactive=True))
    session = await served.begin()
    for _ in range(3):
        steps.go.put_nowait("end")
        assert not (await served.send(request("tools/call", {"name": "steps"}), session)).streamed
    waiting = asyncio.create_task(served.open(request("tools/call", {"name": "steps"}), session))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    client = served.exchange._handshake._clients.get(SessionKey(session["mcp-session-id"]))
    assert client is not None
    assert client.streams._streams == {}


@pytest.mark.parametrize("last", ["", "nonsense", "1-x", "99-1", "0-", "-1", "1-" + "9" * 50])
async def test_an_event_id_that_means_nothing_opens_the_general_stream(last: str) -> None:
    served = endpoint()
    stream = await resume(served, await served.begin(), last)
    assert (await part(stream)).startswith(b"id: 0-0\n")


async def test_the_general_stream_tells_what_changes_and_what_was_subscribed_to() -> None:
    served = endpoint()
    session = await served.begin()
    stream = events(await served.open(b"", session, method="GET"))
    await part(stream)
    await asyncio.sleep(0)
    served.server.hub.publish(updated(URI))
    got = await served.send(request("resources/subscribe", {"uri": URI}), session)
    assert got.answer["result"] == {}
    served.server.hub.publish(updated(URI))
    served.server.catalog.add(tool("new"))
    told = [await message(stream) for _ in range(2)]
    assert [(name, one["method"], one["params"]) for name, one in told] == [
        ("0-1", "notifications/resources/updated", {"uri": URI}),
        ("0-2", "notifications/tools/list_changed", {}),
    ]
    await served.send(request("resources/unsubscribe", {"uri": URI}), session)
    served.server.hub.publish(updated(URI))
    served.server.hub.publish(TOOLS)
    assert (await message(stream))[1]["method"] == "notifications/tools/list_changed"
    again = await resume(served, session, "0-1")
    await part(again)
    assert (await message(again))[0] == "0-2"
    with pytest.raises(StopAsyncIteration):
        await part(stream)


async def test_what_was_subscribed_to_before_the_first_stream_is_told_on_it() -> None:
    served = endpoint()
    session = await served.begin()
    await served.send(request("resources/subscribe", {"uri": URI}), session)
    served.server.hub.publish(updated(URI))
    await asyncio.sleep(0)
    stream = events(await served.open(b"", session, method="GET"))
    await part(stream)
    assert (await message(stream))[1]["params"] == {"uri": URI}


async def test_before_2025_11_25_a_client_is_sent_away_only_with_an_event_to_come_back_with() -> None:
    steps = Steps()
    served = endpoint(tool("steps", steps, interactive=True))
    session = await served.begin("2025-06-18")
    opening = asyncio.create_task(served.open(request("tools/call", {"name": "steps"}), session))
    for word in ("close", "one", "close", "two", "end"):
        steps.go.put_nowait(word)
    stream = events(await opening)
    while not (found := await rest(stream)):
        pytest.fail("nothing was sent")
    again = await resume(served, session, found[-1][0])
    assert [one for _, one in [*found, *await rest(again)]][-1]["result"]["content"][0]["text"] == "done"


async def test_a_second_general_stream_is_refused_and_the_first_one_goes_on() -> None:
    served = endpoint()
    session = await served.begin()
    stream = events(await served.open(b"", session, method="GET"))
    await part(stream)
    assert (await served.send(b"", session, method="GET")).status == 409
    served.server.hub.publish(TOOLS)
    assert (await message(stream))[1]["method"] == "notifications/tools/list_changed"
    await stream.aclose()  # type: ignore[attr-defined]
    assert (await served.open(b"", session, method="GET")).status == 200


async def test_the_general_stream_ends_with_its_session() -> None:
    served = endpoint()
    session = await served.begin()
    stream = events(await served.open(b"", session, method="GET"))
    await part(stream)
    assert (await served.send(b"", session, method="DELETE")).status == 204
    assert await rest(stream) == []
    assert (await served.send(b"", session, method="GET")).status == 404
    await asyncio.sleep(0)
    assert len(served.server.hub) == 0


async def test_a_session_that_ends_while_its_general_stream_is_opened_leaves_nothing_behind() -> None:
    class EndingSessions(SharedMemorySessions):
        async def notes(self, key: SessionKey) -> Notes:
            assert (await served.send(b"", session, method="DELETE")).status == 204
            return await super().notes(key)

    served = Endpoint(sessions=EndingSessions(SharedMemory()))
    session = await served.begin()
    stream = await resume(served, session, "")
    assert await rest(stream) == []
    assert len(served.server.hub) == 0
    assert served.server.load.memory.used == 0


async def test_the_general_stream_ends_when_the_server_is_about_to_stop() -> None:
    served = endpoint()
    stream = events(await served.open(b"", await served.begin(), method="GET"))
    await part(stream)
    await asyncio.sleep(0)
    served.server.hub.close()
    assert await rest(stream) == []


async def test_a_silent_stream_sends_comments_and_keeps_its_session_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.001)
    served = endpoint()
    session = await served.begin()
    stream = events(await served.open(b"", session, method="GET"))
    await part(stream)
    assert await part(stream) == b": keep-alive\n\n"
    await served.sessions.end(session["mcp-session-id"])
    assert await rest(stream) == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 400), ({"mcp-session-id": "gone"}, 404), ({"accept": "application/json"}, 406), ({"accept": None}, 406)],
)
async def test_the_general_stream_needs_a_session_and_a_client_that_takes_events(
    headers: dict[str, str | None], status: int
) -> None:
    assert (await endpoint().send(b"", headers, method="GET")).status == status


async def test_without_memory_there_is_no_stream_and_no_subscription() -> None:
    served = Endpoint(resource(URI))
    session = await served.begin()
    got = await served.send(b"", session, method="GET")
    assert (got.status, got.headers["allow"]) == (405, "POST, DELETE")
    assert (await served.send(request("resources/subscribe", {"uri": URI}), session)).code == -32601


def test_what_is_kept_of_a_stream_is_bounded() -> None:
    stream = resumable.ResumableStream("1", priming=False, max_bytes=10 * (10 + 160))
    for _ in range(50):
        stream.append(b"x" * 10)
    assert len(stream._events) == 10
    stream.append(b"y" * 5000)
    assert [data for _, data in stream._events] == [b"y" * 5000]
    few = resumable.ResumableStream("2", priming=False, max_events=3)
    for _ in range(5):
        few.append(b"")
    assert len(few._events) == 3


def test_finished_streams_of_a_session_are_forgotten_beyond_a_number() -> None:
    streams = resumable.SessionStreams(priming=False)
    first = streams.open()
    second = streams.open()
    second.finish()
    for _ in range(15):
        streams.open()
    assert streams.find("1-0") == (first, 0)
    assert streams.find("2-0") is None


async def test_a_question_on_a_resumable_stream_is_answered_by_another_post() -> None:
    async def ask(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        params = {"messages": [], "maxTokens": 1}
        answers = await context.ask({"q": {"method": "sampling/createMessage", "params": params}})
        return text_result(answers["q"]["content"]["text"])

    served = endpoint(tool("ask", ask, interactive=True))
    session = await served.begin()
    stream = events(await served.open(request("tools/call", {"name": "ask"}), session))
    await part(stream)
    _, question = await message(stream)
    result = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": result}
    assert (await served.send(answer, session)).status == 202
    assert (await message(stream))[1]["result"]["content"][0]["text"] == "Paris"


async def test_a_stream_ends_with_an_error_if_the_server_ends_before_the_answer() -> None:
    steps = Steps()
    served = endpoint(tool("steps", steps, interactive=True))
    session = await served.begin()
    steps.go.put_nowait("one")
    stream = events(await served.open(request("tools/call", {"name": "steps"}, 7), session))
    await part(stream)
    assert (await message(stream))[0] == "1-1"
    parts = await parts_until_cancelled(stream)
    assert json.loads(parts.split(b"data: ")[1])["id"] == 7
    assert b"The server ended before the request was answered." in parts
    client = served.exchange._handshake._clients.get(SessionKey(session["mcp-session-id"]))
    assert client is not None
    assert not client.streams.are_read
    assert client.streams.find("1-2") is None  # the run may still answer
    steps.go.put_nowait("end")


async def test_a_cancelled_call_ends_its_stream_without_an_answer() -> None:
    steps = Steps()
    served = endpoint(tool("steps", steps, interactive=True))
    session = await served.begin()
    opening = asyncio.create_task(served.open(request("tools/call", {"name": "steps"}, "c"), session))
    steps.go.put_nowait("one")
    stream = events(await opening)
    await part(stream)
    await message(stream)
    await served.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}, session)
    assert await rest(stream) == []
