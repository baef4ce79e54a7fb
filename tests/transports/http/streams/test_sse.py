"""Server-sent events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import JSON_HEADERS
from funcmcp.transports.http.streams import sse
from tests.server.parts import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable


def test_an_event_has_one_line_of_data_and_ends_with_an_empty_line() -> None:
    assert sse.event(b'{"a":1}') == b'event: message\ndata: {"a":1}\n\n'
    assert sse.event(b"/sse", name=b"endpoint") == b"event: endpoint\ndata: /sse\n\n"
    assert sse.event(b"{}", event_id=b"a.1-2") == b"id: a.1-2\nevent: message\ndata: {}\n\n"
    assert sse.priming_event(b"a.1-0", 500) == b"id: a.1-0\nretry: 500\ndata: \n\n"


def test_a_json_answer_becomes_a_stream_with_one_event_and_keeps_its_other_headers() -> None:
    session = ("mcp-session-id", "s")
    answer = sse.as_stream(HttpResponse(200, (*JSON_HEADERS, session), b"{}"))
    assert (answer.status, answer.headers) == (200, (*sse.HEADERS, session))
    assert answer.body == b"event: message\ndata: {}\n\n"


@pytest.mark.parametrize(
    "response",
    [HttpResponse(202, ()), HttpResponse(400, JSON_HEADERS, b"{}"), HttpResponse(200, sse.HEADERS, b"")],
    ids=["accepted", "error", "stream"],
)
def test_other_responses_do_not_become_streams(response: HttpResponse) -> None:
    assert sse.as_stream(response) is response


@pytest.fixture
def messages() -> asyncio.Queue[bytes]:
    return asyncio.Queue()


async def next_part(messages: asyncio.Queue[bytes], ended: asyncio.Future[Any]) -> bytes | None:
    async with asyncio.timeout(PATIENCE):
        return await sse.next_part(messages, ended)


async def test_messages_come_in_order_and_before_the_end(messages: asyncio.Queue[bytes]) -> None:
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    for message in (b"1", b"2"):
        messages.put_nowait(message)
    ended.set_result(None)
    parts = [await next_part(messages, ended) for _ in range(3)]
    assert parts == [sse.event(b"1"), sse.event(b"2"), None]


@pytest.mark.parametrize(
    ("happen", "part"),
    [
        (lambda messages, _: messages.put_nowait(b"1"), sse.event(b"1")),
        (lambda _, ended: ended.set_result(None), None),
        (lambda messages, ended: (ended.set_result(None), messages.put_nowait(b"1")), sse.event(b"1")),
    ],
    ids=["message", "end", "end and message"],
)
async def test_a_stream_waits_for_the_next_message_or_its_end(
    messages: asyncio.Queue[bytes], happen: Callable[[asyncio.Queue[bytes], asyncio.Future[Any]], None], part: Any
) -> None:
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(next_part(messages, ended))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    happen(messages, ended)
    assert await waiting == part


async def test_a_silent_stream_sends_comments_and_loses_no_message(
    messages: asyncio.Queue[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.001)
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    assert [await next_part(messages, ended) for _ in range(3)] == [b": keep-alive\n\n"] * 3
    messages.put_nowait(b"1")
    assert await next_part(messages, ended) == sse.event(b"1")
