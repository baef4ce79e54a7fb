"""Event streams that end or break before the answer: continued with Last-Event-ID, or failed at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.client import Client, ConnectionFailedError, InvalidResponseError, ProgressUpdate
from tests.client.scripted import Exchange, handshake_server, scripted
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.lowest("httpx2 sends the requests.")

DONE = {"content": [{"type": "text", "text": "done"}]}
PRIMING = "id: e1\nretry: 0\ndata: \n\n"


async def answer_later(exchange: Exchange, server: Any) -> None:
    """Send the answer to the call that waits, on a stream that continues its stream."""
    await exchange.begin_stream()
    call = server.having("tools/call")[0].message
    await exchange.send_message({"id": call["id"], "result": DONE}, "id: e9")


def ending(how: str) -> Callable[[Exchange], Awaitable[None]]:
    async def call(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.send(PRIMING)
        getattr(exchange, how)()

    return call


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_stream_that_ends_after_an_id_is_continued(how: str) -> None:
    async def stream(exchange: Exchange) -> None:
        await answer_later(exchange, server)

    async with (
        scripted(handshake_server(ending(how), stream)) as server,
        Client(server.url, timeout=PATIENCE) as client,
    ):
        assert (await client.call_tool("slow")).text == "done"
        [get] = server.having("GET")
        assert get.headers["last-event-id"] == "e1"
        assert (get.headers["mcp-session-id"], get.headers["mcp-protocol-version"]) == ("s1", "2025-11-25")
        assert get.headers["accept"] == "text/event-stream"
        assert len(server.having("tools/call")) == 1


async def test_a_server_may_end_the_stream_again_and_again() -> None:
    async def stream(exchange: Exchange) -> None:
        number = len(server.having("GET"))
        if number == 4:
            await answer_later(exchange, server)
            return
        await exchange.begin_stream()
        await exchange.send(f"id: p{number}\ndata: \n\n" if number < 3 else ": nothing new\n\n")
        exchange.close()

    async with (
        scripted(handshake_server(ending("close"), stream)) as server,
        Client(server.url, timeout=PATIENCE) as client,
    ):
        assert (await client.call_tool("slow")).text == "done"
        assert [get.headers["last-event-id"] for get in server.having("GET")] == ["e1", "p1", "p2", "p2"]


async def test_messages_before_the_break_arrive_once_and_in_order() -> None:
    async def call(exchange: Exchange) -> None:
        token = exchange.message["params"]["_meta"]["progressToken"]
        await exchange.begin_stream()
        await exchange.send(PRIMING)
        params = {"progressToken": token, "progress": 1}
        await exchange.send_message({"method": "notifications/progress", "params": params}, "id: e2")
        await exchange.send("id: e3\ndata: {")  # an incomplete event has not been received
        exchange.reset()

    async def stream(exchange: Exchange) -> None:
        token = server.having("tools/call")[0].message["params"]["_meta"]["progressToken"]
        await exchange.begin_stream()
        params = {"progressToken": token, "progress": 2}
        await exchange.send_message({"method": "notifications/progress", "params": params}, "id: e3")
        call = server.having("tools/call")[0].message
        await exchange.send_message({"id": call["id"], "result": DONE})

    updates: list[ProgressUpdate] = []
    async with scripted(handshake_server(call, stream)) as server, Client(server.url, timeout=PATIENCE) as client:
        assert (await client.call_tool("slow", on_progress=updates.append)).text == "done"
        assert server.having("GET")[0].headers["last-event-id"] == "e2"
    assert [update.progress for update in updates] == [1, 2]


async def test_a_stream_is_requested_again_while_the_server_is_away() -> None:
    async def stream(exchange: Exchange) -> None:
        number = len(server.having("GET"))
        if number == 1:
            await exchange.respond(503)
        elif number == 2:
            exchange.reset()
        else:
            await answer_later(exchange, server)

    async with (
        scripted(handshake_server(ending("close"), stream)) as server,
        Client(server.url, timeout=PATIENCE) as client,
    ):
        assert (await client.call_tool("slow")).text == "done"
        assert len(server.having("GET")) == 3


@pytest.mark.parametrize(("status", "reason"), [(405, "HTTP status 405"), (404, "ended the session"), (200, "200")])
async def test_a_server_that_does_not_continue_the_stream_is_one_error(status: int, reason: str) -> None:
    async def stream(exchange: Exchange) -> None:
        await exchange.respond(status)

    async with (
        scripted(handshake_server(ending("close"), stream)) as server,
        Client(server.url, timeout=PATIENCE) as client,
    ):
        with pytest.raises(ConnectionFailedError, match=f"tools/call, and is not resumed: .*{reason}"):
            await client.call_tool("slow")
        assert (len(server.having("GET")), len(server.having("tools/call"))) == (1, 1)  # the call may have run


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_stream_without_ids_fails_at_once(how: str) -> None:
    async def call(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.send("retry: 0\ndata: \n\n")
        getattr(exchange, how)()

    async with scripted(handshake_server(call)) as server, Client(server.url, timeout=PATIENCE) as client:
        with pytest.raises((ConnectionFailedError, InvalidResponseError)):
            await client.call_tool("slow")
        assert server.having("GET") == []


@pytest.mark.parametrize("event_id", ["e\x01", "é", "x" * 2000])
async def test_an_id_that_no_header_can_have_does_not_resume(event_id: str) -> None:
    async def call(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.send(f"id: {event_id}\ndata: \n\n")
        exchange.close()

    async with scripted(handshake_server(call)) as server, Client(server.url, timeout=PATIENCE) as client:
        with pytest.raises(InvalidResponseError, match="ended without an answer"):
            await client.call_tool("slow")
        assert server.having("GET") == []


async def test_a_stream_of_2026_is_not_resumed() -> None:
    async def handle(exchange: Exchange) -> None:
        if exchange.message["method"] == "server/discover":
            await exchange.answer({"supportedVersions": ["2026-07-28"], "capabilities": {}})
        elif exchange.message["method"] == "tools/list":
            await exchange.answer({"tools": []})
        else:
            await ending("close")(exchange)

    async with scripted(handle) as server, Client(server.url, timeout=PATIENCE) as client:
        with pytest.raises(InvalidResponseError, match="ended without an answer"):
            await client.call_tool("slow")
        assert server.having("GET") == []
