"""The stream for all that a server sends, and floods of messages on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._client.http_messages import read_messages
from funcmcp._client.messages import MESSAGES_AT_ONCE
from funcmcp._client.shared_stream import MAX_ANSWERING, SharedStream
from funcmcp._client.stdio import StdioTransport
from funcmcp._protocol.codec import encode
from funcmcp._transports.http.messages import HttpResponse
from funcmcp.client import StdioCommand
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def test_a_server_that_asks_without_end_waits_for_answers() -> None:
    asked: list[Any] = []
    may_answer = asyncio.Event()

    async def receive(message: dict[str, Any]) -> None:
        asked.append(message["id"])
        await may_answer.wait()

    stream = SharedStream(receive)

    async def ask() -> None:
        for number in range(3 * MAX_ANSWERING):
            await stream.take({"jsonrpc": "2.0", "id": number, "method": "ping"})

    asking = asyncio.create_task(ask())
    async with asyncio.timeout(PATIENCE):
        while len(asked) < MAX_ANSWERING:  # noqa: ASYNC110 - nothing else happens when the last one is asked
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert (len(asked), asking.done()) == (MAX_ANSWERING, False)
        may_answer.set()
        await asking
        while len(asked) < 3 * MAX_ANSWERING:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
    assert asked == list(range(3 * MAX_ANSWERING))


class Ticks:
    """Counts how often another task has run."""

    count = 0

    async def run(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
FLOOD = 1_000


@pytest.mark.parametrize("line", [encode(CHANGED), b"not a message"])
async def test_a_process_that_writes_without_end_lets_other_tasks_run(line: bytes) -> None:
    ticks = Ticks()
    received = 0

    async def receive(_message: dict[str, Any]) -> None:
        nonlocal received
        received += 1

    stdout = asyncio.StreamReader()
    stdout.feed_data((line + b"\n") * FLOOD)
    transport = StdioTransport(StdioCommand("flood"))
    transport._stream = SharedStream(receive)
    reading = asyncio.create_task(transport._read(None, stdout))  # type: ignore[arg-type]
    other = asyncio.create_task(ticks.run())
    async with asyncio.timeout(PATIENCE):
        while stdout._buffer:  # type: ignore[attr-defined]  # noqa: ASYNC110 - nothing else happens at its end
            await asyncio.sleep(0)
    assert ticks.count >= FLOOD // MESSAGES_AT_ONCE
    assert received == (FLOOD if line.startswith(b"{") else 0)
    for task in (reading, other):
        task.cancel()


@pytest.mark.parametrize("parts", [1, FLOOD])
async def test_an_event_stream_without_end_lets_other_tasks_run(parts: int) -> None:
    ticks = Ticks()

    async def body() -> AsyncIterator[bytes]:
        for _ in range(parts):
            yield b"data: %s\n\n" % encode(CHANGED) * (FLOOD // parts)

    other = asyncio.create_task(ticks.run())
    response = HttpResponse(200, (("content-type", "text/event-stream"),), body())
    assert len([message async for message in read_messages(response)]) == FLOOD
    assert ticks.count >= FLOOD // MESSAGES_AT_ONCE
    other.cancel()
