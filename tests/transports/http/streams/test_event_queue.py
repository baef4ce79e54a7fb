"""The messages that wait to be sent on one event stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from funcmcp._transports.http.streams import sse
from funcmcp._transports.http.streams.event_queue import EventQueue
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


async def next_part(queue: EventQueue) -> bytes | None:
    async with asyncio.timeout(PATIENCE):
        return await queue.next_part()


async def test_messages_come_in_order_and_before_the_end() -> None:
    queue = EventQueue()
    await queue.put(b"1")
    await queue.put(b"2")
    queue.end()
    assert [await next_part(queue) for _ in range(3)] == [sse.event(b"1"), sse.event(b"2"), None]
    assert await next_part(queue) is None


@pytest.mark.parametrize(
    ("message", "end", "part"),
    [(True, False, sse.event(b"1")), (False, True, None), (True, True, sse.event(b"1"))],
    ids=["message", "end", "end and message"],
)
async def test_a_reader_waits_for_the_next_message_or_the_end(message: bool, end: bool, part: bytes | None) -> None:
    queue = EventQueue()
    waiting = asyncio.create_task(next_part(queue))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if end:
        queue.end()
    if message:
        await queue.put(b"1")
    assert await waiting == part


async def test_a_silent_stream_sends_comments_and_loses_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.001)
    queue = EventQueue()
    assert [await next_part(queue) for _ in range(3)] == [b": keep-alive\n\n"] * 3
    await queue.put(b"1")
    assert await next_part(queue) == sse.event(b"1")


@pytest.mark.parametrize("make_room", [EventQueue.take, EventQueue.close], ids=["reader", "close"])
async def test_writers_wait_for_room(make_room: Callable[[EventQueue], object]) -> None:
    queue = EventQueue(max_messages=1)
    await queue.put(b"1")
    cancelled, waiting = (asyncio.create_task(queue.put(text)) for text in (b"2", b"3"))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    make_room(queue)
    await asyncio.wait_for(waiting, PATIENCE)


async def test_two_writers_never_fill_the_room_of_one_message_twice() -> None:
    queue = EventQueue(max_messages=1)
    writers = [asyncio.create_task(queue.put(b"%d" % number)) for number in range(4)]
    for number in range(4):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert sum(writer.done() for writer in writers) == number + 1
        assert queue.take() == b"%d" % number
    assert queue.take() is None


async def test_the_reader_that_has_left_gets_nothing_more() -> None:
    queue = EventQueue()
    await queue.put(b"1")
    queue.close()
    await queue.put(b"2")
    assert queue.take() is None
