"""One request's answer as server-sent events."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.errors import ToolError
from funcmcp._protocol.jsonrpc import Response
from funcmcp._protocol.replies import Reply
from funcmcp._server.calls.alarms import Alarms
from funcmcp._server.connections.conversation import Conversation
from funcmcp._server.run import Run, RunCancelledError
from funcmcp._transports.http.status import handshake_response
from funcmcp._transports.http.streams import sse
from funcmcp._transports.http.streams.disconnect import DisconnectWatch
from funcmcp._transports.http.streams.request_stream import BufferedChannel, StreamChannel, stream_response
from tests import rules, schemas
from tests.patience import PATIENCE
from tests.server.parts import ASK_CAPITAL, ASK_NAME, NEWEST
from tests.transports.http.endpoint import Got, events, next_message, parts_until_cancelled, read_all

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from funcmcp._transports.http.messages import HttpResponse

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


ANSWER = Reply(b'{"jsonrpc":"2.0","id":1,"result":{}}')
ADA = {"action": "accept", "content": {"name": "Ada"}}


async def respond(
    work: Coroutine[object, object, Reply], channel: StreamChannel, watch: DisconnectWatch | None = None
) -> HttpResponse:
    async with asyncio.timeout(PATIENCE):
        return await stream_response(work, channel, request_id=1, respond=handshake_response, watch=watch)


async def send(channel: StreamChannel, *numbers: int) -> Reply:
    for number in numbers:
        await channel.notify("notifications/progress", {"progressToken": "t", "progress": number})
    return ANSWER


async def taken(channel: StreamChannel) -> dict[str, Any]:
    assert await channel.messages.ready(PATIENCE)
    message: dict[str, Any] = json.loads(channel.messages.take() or b"")
    schemas.validate(message, NEWEST)
    return message


async def test_a_run_that_sends_nothing_is_answered_plainly() -> None:
    channel = StreamChannel(None)
    response = await respond(send(channel), channel)
    assert response.body == ANSWER.body
    assert dict(response.headers)["content-type"] == "application/json"


async def test_a_run_that_sends_something_is_answered_by_events_in_order_and_the_answer_last() -> None:
    channel = StreamChannel(None)
    got = await read_all(await respond(send(channel, 1, 2, 3), channel))
    assert got.headers == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
    }
    assert [one["params"]["progress"] for one in got.messages[:-1]] == [1, 2, 3]
    assert got.body.endswith(sse.event(ANSWER.body))


async def test_an_event_is_there_as_soon_as_it_was_sent() -> None:
    channel, let_go = StreamChannel(None), asyncio.Event()

    async def work() -> Reply:
        await send(channel, 1)
        await let_go.wait()
        return await send(channel, 2)

    parts = events(await respond(work(), channel))
    assert (await next_message(parts))["params"]["progress"] == 1
    waiting = asyncio.create_task(next_message(parts))
    await asyncio.sleep(0)
    let_go.set()
    assert (await asyncio.wait_for(waiting, PATIENCE))["params"]["progress"] == 2
    assert (await next_message(parts))["id"] == 1


async def test_a_run_that_fails_before_it_sent_anything_fails_for_the_caller() -> None:
    async def work() -> Reply:
        await asyncio.sleep(0)
        raise RunCancelledError

    with pytest.raises(RunCancelledError):
        await respond(work(), StreamChannel(None))


async def test_a_cancelled_run_ends_its_stream_without_an_answer() -> None:
    channel = StreamChannel(None)

    async def work() -> Reply:
        await send(channel, 1)
        raise RunCancelledError

    got = await read_all(await respond(work(), channel))
    assert len(got.messages) == 1


async def test_a_caller_that_is_cancelled_takes_the_run_with_it() -> None:
    channel, stopped, running = StreamChannel(None), asyncio.Event(), asyncio.Event()

    async def work() -> Reply:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ANSWER

    caller = asyncio.create_task(respond(work(), channel))
    await asyncio.wait_for(running.wait(), PATIENCE)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await asyncio.wait_for(stopped.wait(), PATIENCE)


@pytest.mark.parametrize("begun", [False, True])
async def test_silence_is_filled_with_comments(monkeypatch: pytest.MonkeyPatch, begun: bool) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.001)
    channel, let_go = StreamChannel(None), asyncio.Event()

    async def work() -> Reply:
        await send(channel, *([1, 2] if begun else [1]))
        await let_go.wait()
        return ANSWER

    parts = events(await respond(work(), channel))
    for _ in range(2 if begun else 1):
        await next_message(parts)
    async with asyncio.timeout(PATIENCE):
        assert await anext(parts) == b": keep-alive\n\n"
        assert await anext(parts) == b": keep-alive\n\n"
        let_go.set()
        rest = b"".join([part async for part in parts])
    assert rest.replace(b": keep-alive\n\n", b"") == sse.event(ANSWER.body)


async def stay() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("disconnected", [None, stay])
async def test_a_client_that_leaves_its_stream_cancels_the_run(disconnected: Any) -> None:
    channel, run, stopped = StreamChannel(None), Run(), asyncio.Event()

    async def work() -> Reply:
        await send(channel, 1)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ANSWER

    parts = events(await respond(run.wait(work()), channel, DisconnectWatch(run, disconnected, Alarms())))
    await next_message(parts)
    assert not run.cancelled
    await parts.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(stopped.wait(), PATIENCE)
    assert run.cancelled


async def test_a_client_that_leaves_before_anything_was_sent_cancels_the_run() -> None:
    channel, run, left = StreamChannel(None), Run(), asyncio.Event()

    async def disconnected() -> None:
        await left.wait()

    async def work() -> Reply:
        left.set()
        await asyncio.Event().wait()
        return ANSWER

    with pytest.raises(RunCancelledError):
        await respond(run.wait(work()), channel, DisconnectWatch(run, disconnected, Alarms()))


async def test_a_client_that_leaves_after_the_run_is_done_cancels_nothing() -> None:
    channel, run = StreamChannel(None), Run()
    parts = events(await respond(run.wait(send(channel, 1)), channel, DisconnectWatch(run, stay, Alarms())))
    await next_message(parts)
    await asyncio.sleep(0)
    await parts.aclose()  # type: ignore[attr-defined]
    assert not run.cancelled


async def test_a_run_whose_client_has_left_is_not_held_up_by_what_nobody_reads() -> None:
    channel, finished = StreamChannel(None), asyncio.Event()

    async def work() -> Reply:
        await send(channel, *range(5000))
        finished.set()
        return ANSWER

    parts = events(await respond(work(), channel))
    await next_message(parts)
    assert not finished.is_set()
    await parts.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(finished.wait(), PATIENCE)


async def test_a_run_waits_for_a_reader_that_has_many_bytes_to_read_and_nothing_is_lost() -> None:
    channel = StreamChannel(None)
    sent: list[int] = []

    async def talk() -> Reply:
        for number in range(200):
            await channel.notify("notifications/message", {"level": "info", "data": str(number) + "x" * 20_000})
            sent.append(number)
        return ANSWER

    response = await respond(talk(), channel)
    for _ in range(1000):
        await asyncio.sleep(0)
    held = len(sent)
    assert 50 <= held <= 55  # a little more than a mebibyte
    got = await read_all(response)
    assert [int(message["params"]["data"].rstrip("x")) for message in got.messages[:-1]] == list(range(200))


async def test_one_message_that_is_larger_than_all_that_may_wait_is_sent() -> None:
    channel = StreamChannel(None)

    async def talk() -> Reply:
        for _ in range(3):
            await channel.notify("notifications/message", {"level": "info", "data": "x" * 2_000_000})
        return ANSWER

    got = await read_all(await respond(talk(), channel))
    assert len(got.messages) == 4


async def test_a_slow_reader_loses_nothing() -> None:
    channel = StreamChannel(None)
    got = await read_all(await respond(send(channel, *range(3000)), channel))
    assert [one["params"]["progress"] for one in got.messages[:-1]] == list(range(3000))


async def test_a_closed_channel_drops_notifications_and_refuses_questions() -> None:
    channel = StreamChannel(Conversation())
    channel.close()
    await channel.notify("notifications/progress", {"progressToken": "t", "progress": 1})
    assert channel.messages.take() is None
    with pytest.raises(ToolError, match="can't be asked"):
        await channel.ask({"name": ASK_NAME})


async def test_a_channel_without_a_conversation_refuses_questions() -> None:
    with pytest.raises(ToolError, match="can't be asked"):
        await StreamChannel(None).ask({"name": ASK_NAME})


async def test_questions_go_out_as_requests_and_their_answers_come_back_by_key() -> None:
    conversation = Conversation()
    channel = StreamChannel(conversation)
    asking = asyncio.create_task(channel.ask({"name": ASK_NAME, "capital": ASK_CAPITAL}))
    first, second = await taken(channel), await taken(channel)
    assert (first["method"], second["method"]) == ("elicitation/create", "sampling/createMessage")
    paris = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
    conversation.answer(Response(second["id"], paris, None))
    conversation.answer(Response(first["id"], ADA, None))
    assert await asyncio.wait_for(asking, PATIENCE) == {"name": ADA, "capital": paris}
    assert conversation.idle


@pytest.mark.parametrize(
    ("result", "error", "why"),
    [
        (None, {"code": -1, "message": "secret"}, "with an error"),
        ({}, None, "not valid"),
        ({"action": "accept", "content": {}}, None, "not valid"),
    ],
)
async def test_an_answer_that_is_none_is_told_to_the_model(result: Any, error: Any, why: str) -> None:
    conversation = Conversation()
    channel = StreamChannel(conversation)
    asking = asyncio.create_task(channel.ask({"name": ASK_NAME}))
    question = await taken(channel)
    conversation.answer(Response(question["id"], result, error))
    with pytest.raises(ToolError, match=why) as caught:
        await asyncio.wait_for(asking, PATIENCE)
    assert "secret" not in str(caught.value)


async def test_questions_that_are_given_up_are_forgotten() -> None:
    conversation = Conversation()
    channel = StreamChannel(conversation)
    asking = asyncio.create_task(channel.ask({"name": ASK_NAME, "capital": ASK_CAPITAL}))
    await taken(channel)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.sleep(0)
    assert conversation.idle


@rules.verifies(rules.THREAT_48)
async def test_a_stream_that_waits_keeps_nothing_of_what_it_has_sent() -> None:
    """Thousands of open streams may each have started with a long message."""
    channel, go_on = StreamChannel(None), asyncio.Event()

    async def work() -> Reply:
        await channel.notify("notifications/message", {"data": "x" * 3_000_000})
        await channel.notify("notifications/message", {"data": "y" * 3_000_000})
        await go_on.wait()
        return ANSWER

    tracemalloc.start()
    try:
        stream = events(await respond(work(), channel))
        for _ in range(2):
            assert len(await anext(stream)) > 3_000_000
        waiting = asyncio.ensure_future(anext(stream))
        for _ in range(5):
            await asyncio.sleep(0)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 1_000_000
    go_on.set()
    assert b"result" in await waiting


async def test_a_run_that_is_silent_for_long_is_answered_by_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.001)
    channel, let_go = StreamChannel(None), asyncio.Event()

    async def work() -> Reply:
        await let_go.wait()
        return await send(channel, 1)

    parts = events(await respond(work(), channel))
    assert await anext(parts) == sse.KEEP_ALIVE
    let_go.set()
    remaining = [part async for part in parts if part != sse.KEEP_ALIVE]
    assert remaining[-1] == sse.event(ANSWER.body)
    assert len(remaining) == 2


async def test_a_stream_that_is_sent_only_when_complete_never_begins_because_of_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.001)

    async def work() -> Reply:
        await asyncio.sleep(0.01)
        return ANSWER

    assert (await respond(work(), BufferedChannel())).body == ANSWER.body


async def test_a_stream_ends_with_an_error_if_the_server_ends_before_the_answer() -> None:
    channel = StreamChannel(None)

    async def work() -> Reply:
        await send(channel, 1)
        await asyncio.Event().wait()
        return ANSWER

    stream = events(await respond(work(), channel))
    await anext(stream)
    [error] = Got(200, {"content-type": "text/event-stream"}, await parts_until_cancelled(stream)).messages
    assert error == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32603, "message": "The server ended before the request was answered."},
    }
