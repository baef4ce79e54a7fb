"""Two instances of an endpoint in one process, with sessions that they share."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._server.connections.hub import TOOLS, updated
from funcmcp._state.bus import RESUMED
from funcmcp._transports.http.streams import remote_streams, sse
from funcmcp.testing import MemoryRequest
from tests.patience import PATIENCE
from tests.server.parts import resource, text_result, tool
from tests.state.shared import SharedMemory, SharedMemorySessions
from tests.transports.http.endpoint import Endpoint, events, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._server.calls.context import RequestContext

pytestmark = [
    pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio."),
    pytest.mark.branches("Two instances exchange what belongs to a session."),
]

URI = "menu://today"
CALL = request("tools/call", {"name": "plain"})


class Speaker:
    """A tool that says what it is told to, and breaks the connection off after the first word."""

    def __init__(self) -> None:
        self.words: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        while (word := await self.words.get()) != "end":
            await context.notify("notifications/message", {"level": "error", "data": word})
        return text_result("spoken")


class Cluster:
    """Two instances."""

    def __init__(self) -> None:
        self.memory = SharedMemory()
        self.speaker = Speaker()
        self.here, self.there = (
            Endpoint(
                tool("plain"),
                tool("speak", self.speaker, interactive=True),
                resource(URI),
                sessions=SharedMemorySessions(self.memory),
            )
            for _ in range(2)
        )

    async def speak(self, session: dict[str, str]) -> tuple[AsyncIterator[bytes], str]:
        """Begin to speak at one instance; return the stream, and the id of its first event."""
        self.speaker.words.put_nowait("one")
        stream = events(await self.here.open(request("tools/call", {"name": "speak"}), session))
        await part(stream)
        first = await part(stream)
        return stream, first.decode().split("\n")[0].removeprefix("id: ")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(remote_streams, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(remote_streams, "READ_SECONDS", 0.05)
    return Cluster()


async def part(stream: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(PATIENCE):
        return await anext(stream)


def said(part: bytes) -> Any:
    return json.loads(part.partition(b"data: ")[2])


async def resume(served: Endpoint, session: dict[str, str], last: str) -> AsyncIterator[bytes]:
    response = await served.open(b"", {**session, "last-event-id": last}, method="GET")
    assert response.status == 200
    return events(response)


async def test_a_stream_is_read_out_to_another_instance_until_its_end(cluster: Cluster) -> None:
    session = await cluster.here.begin()
    _, last = await cluster.speak(session)
    cluster.speaker.words.put_nowait("two")
    stream = await resume(cluster.there, session, last)
    assert await part(stream) == b"id: %b\nretry: 500\ndata: \n\n" % last.encode()
    assert said(await part(stream))["params"]["data"] == "two"
    cluster.speaker.words.put_nowait("end")
    assert said(await part(stream))["result"] == text_result("spoken")
    async with asyncio.timeout(PATIENCE):
        assert [piece async for piece in stream] == []


async def test_a_reader_says_that_it_is_still_there(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[asyncio.TimerHandle] = []
    renewed = asyncio.Event()

    def start_timer(sender: Any) -> asyncio.TimerHandle:
        timers.append(asyncio.get_running_loop().call_later(10 * PATIENCE, sender.task.cancel))
        if len(timers) >= 5:
            renewed.set()
        return timers[-1]

    monkeypatch.setattr(remote_streams, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(remote_streams._Sender, "_start_timer", start_timer)
    session = await cluster.here.begin()
    _, last = await cluster.speak(session)
    stream = await resume(cluster.there, session, last)
    await part(stream)
    waiting = asyncio.ensure_future(part(stream))
    async with asyncio.timeout(PATIENCE):
        await renewed.wait()
    assert [timer.cancelled() for timer in timers] == [True] * (len(timers) - 1) + [False]
    cluster.speaker.words.put_nowait("two")
    assert said(await waiting)["params"]["data"] == "two"
    cluster.speaker.words.put_nowait("end")


async def until_unread(cluster: Cluster) -> None:
    """Wait until the instance that has the streams reads nothing out any more."""
    era = cluster.here.exchange._handshake
    assert era._remote_streams is not None
    async with asyncio.timeout(PATIENCE):
        while era._remote_streams._senders:
            await asyncio.wait([sender.task for sender in era._remote_streams._senders.values()])
            await asyncio.sleep(0)


async def test_a_reader_that_leaves_is_read_out_to_no_more(cluster: Cluster) -> None:
    session = await cluster.here.begin()
    _, last = await cluster.speak(session)
    stream = await resume(cluster.there, session, last)
    await part(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    await until_unread(cluster)
    cluster.speaker.words.put_nowait("two")
    cluster.speaker.words.put_nowait("end")
    again = await resume(cluster.here, session, last)
    await part(again)
    assert said(await part(again))["params"]["data"] == "two"


async def test_a_reader_whose_instance_has_gone_is_given_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_streams, "RENEW_SECONDS", 0.02)
    session = await cluster.here.begin()
    _, last = await cluster.speak(session)
    stream = await resume(cluster.there, session, last)
    await part(stream)
    cluster.memory.bus._instances.remove(cluster.there.server.bus)  # type: ignore[arg-type]
    await until_unread(cluster)
    cluster.speaker.words.put_nowait("end")


async def test_a_stream_whose_instance_has_gone_ends(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_streams, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(remote_streams, "MAX_SILENCE_SECONDS", 0.1)
    session = await cluster.here.begin()
    _, last = await cluster.speak(session)
    stream = await resume(cluster.there, session, last)
    await part(stream)
    cluster.memory.bus._instances.remove(cluster.here.server.bus)  # type: ignore[arg-type]
    async with asyncio.timeout(PATIENCE):
        assert [piece async for piece in stream] == []
    cluster.speaker.words.put_nowait("end")


async def test_an_instance_that_is_about_to_stop_ends_what_it_reads_elsewhere(cluster: Cluster) -> None:
    session = await cluster.here.begin()
    _, last = await cluster.speak(session)
    stream = await resume(cluster.there, session, last)
    await part(stream)
    cluster.there.server.hub.close()
    async with asyncio.timeout(PATIENCE):
        assert [piece async for piece in stream] == []
    await until_unread(cluster)
    cluster.speaker.words.put_nowait("end")


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_reading_out_ends_when_the_others_can_not_be_reached(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await cluster.here.begin()
    _, last = await cluster.speak(session)
    stream = await resume(cluster.there, session, last)
    await part(stream)

    async def fail(topic: str, message: Any) -> None:
        cluster.memory.away = True
        cluster.memory.check()

    monkeypatch.setattr(cluster.here.server.bus, "send", fail)
    cluster.speaker.words.put_nowait("two")
    await until_unread(cluster)
    cluster.speaker.words.put_nowait("end")


@pytest.mark.parametrize("last", ["i1.1-99", "i9.1-1", "1-1", "x"])
async def test_an_event_that_no_instance_has_opens_the_general_stream(cluster: Cluster, last: str) -> None:
    session = await cluster.here.begin()
    await cluster.speak(session)
    stream = await resume(cluster.there, session, last)
    await part(stream)
    cluster.here.server.hub.publish(TOOLS)
    assert said(await part(stream))["method"] == "notifications/tools/list_changed"
    cluster.speaker.words.put_nowait("end")


async def test_events_of_another_session_are_not_read_out(cluster: Cluster) -> None:
    session = await cluster.here.begin()
    _, last = await cluster.speak(session)
    thief = await cluster.there.begin()
    await cluster.here.send(CALL, thief)
    stream = await resume(cluster.there, thief, last)
    await part(stream)
    cluster.speaker.words.put_nowait("secret")
    cluster.speaker.words.put_nowait("end")
    cluster.here.server.hub.publish(TOOLS)
    assert said(await part(stream))["method"] == "notifications/tools/list_changed"


async def test_a_general_stream_is_read_at_one_instance_only(cluster: Cluster) -> None:
    session = await cluster.here.begin()
    stream = events(await cluster.here.open(b"", session, method="GET"))
    await part(stream)
    assert (await cluster.there.send(b"", session, method="GET")).status == 409
    await stream.aclose()  # type: ignore[attr-defined]
    assert (await cluster.there.open(b"", session, method="GET")).status == 200


async def test_after_a_gap_a_session_hears_what_it_may_have_missed(cluster: Cluster) -> None:
    session = await cluster.here.begin()
    await cluster.there.send(request("resources/subscribe", {"uri": URI}), session)
    stream = events(await cluster.here.open(b"", session, method="GET"))
    await part(stream)
    cluster.here.server.bus.deliver(RESUMED, {})  # type: ignore[attr-defined]
    told = [said(await part(stream)) for _ in range(3)]
    assert [message["method"] for message in told] == [
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ]
    assert told[2]["params"] == {"uri": URI}


async def test_a_change_is_told_once_where_the_session_listens(cluster: Cluster) -> None:
    session = await cluster.here.begin()
    await cluster.there.send(request("resources/subscribe", {"uri": URI}), session)
    stream = events(await cluster.here.open(b"", session, method="GET"))
    await part(stream)
    cluster.there.server.hub.publish(updated(URI))
    assert said(await part(stream))["params"] == {"uri": URI}
    await stream.aclose()  # type: ignore[attr-defined]
    other = events(await cluster.there.open(b"", session, method="GET"))
    await part(other)
    cluster.here.server.hub.publish(TOOLS)
    assert said(await part(other))["method"] == "notifications/tools/list_changed"


async def test_what_needs_the_store_is_503_while_it_is_away(cluster: Cluster) -> None:
    session = await cluster.here.begin()
    cluster.memory.away = True
    answers = [
        await cluster.here.send(CALL, session),
        await cluster.here.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, session),
        await cluster.here.send(request("initialize", {"protocolVersion": "2025-11-25"})),
        await cluster.here.send(b"", session, method="GET"),
        await cluster.here.send(b"", session, method="DELETE"),
    ]
    for got, request_id in zip(answers, (1, None, 1, None, None), strict=True):
        assert (got.status, got.code, got.headers["retry-after"]) == (503, -32603, "1")
        assert got.answer.get("id") == request_id
    cluster.memory.away = False
    assert (await cluster.here.send(CALL, session)).text == "plain"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("logging/setLevel", {"level": "error"}),
        ("resources/subscribe", {"uri": URI}),
        ("resources/unsubscribe", {"uri": URI}),
    ],
)
async def test_a_choice_that_can_not_be_kept_is_503(
    cluster: Cluster, method: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await cluster.here.begin()
    await cluster.here.send(CALL, session)
    found = await cluster.memory.sessions.get(session["mcp-session-id"])

    async def get(_session_id: str) -> Any:
        return found

    monkeypatch.setattr(cluster.here.sessions, "get", get)  # the store goes away between the two
    cluster.memory.away = True
    assert (await cluster.here.send(request(method, params), session)).status == 503


async def test_a_batch_with_a_choice_that_can_not_be_kept_is_503(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await cluster.here.begin("2025-03-26")
    found = await cluster.memory.sessions.get(session["mcp-session-id"])

    async def get(_session_id: str) -> Any:
        return found

    monkeypatch.setattr(cluster.here.sessions, "get", get)
    cluster.memory.away = True
    batch = [CALL, request("logging/setLevel", {"level": "error"}, 2)]
    assert (await cluster.here.send(batch, session)).status == 503


async def test_an_open_stream_stays_while_the_store_is_away(cluster: Cluster) -> None:
    session = await cluster.here.begin()
    async with aclosing(events(await cluster.here.open(b"", session, method="GET"))) as stream:  # type: ignore[type-var]
        await part(stream)
        cluster.memory.away = True
        cluster.here.server.hub.publish(TOOLS)
        assert said(await part(stream))["method"] == "notifications/tools/list_changed"
        cluster.memory.away = False
        await cluster.there.send(b"", session, method="DELETE")
        with pytest.raises(StopAsyncIteration):
            await part(stream)


PING = request("ping")


async def test_without_streams_a_change_is_told_at_one_instance(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryRequest, "can_stream", False)
    session = await cluster.here.begin()
    await cluster.here.send(request("resources/subscribe", {"uri": URI}), session)
    await cluster.there.send(PING, session)
    for change in (updated(URI), TOOLS):
        cluster.here.server.hub.publish(change)
        told, answer = (await cluster.there.send(PING, session)).messages
        assert (told["method"], answer["result"]) == (change.method, {})
        assert not (await cluster.here.send(PING, session)).streamed
    cluster.there.server.hub.publish(TOOLS)
    assert (await cluster.here.send(PING, session)).streamed


async def test_without_streams_a_session_hears_after_a_gap_what_it_may_have_missed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryRequest, "can_stream", False)
    session = await cluster.here.begin()
    await cluster.there.send(request("resources/subscribe", {"uri": URI}), session)
    await cluster.here.send(PING, session)
    cluster.here.server.bus.deliver(RESUMED, {})  # type: ignore[attr-defined]
    got = await cluster.here.send(PING, session)
    assert [message["method"] for message in got.messages[:-1]] == [
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ]


def test_what_a_reader_is_given_is_more_than_the_silence_of_a_stream() -> None:
    assert 3 * remote_streams.RENEW_SECONDS >= sse.KEEP_ALIVE_SECONDS
