"""The GET stream for what a server sends outside of requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from funcmcp._client import standing_stream
from funcmcp._client.standing_stream import delay_seconds
from funcmcp.client import Client
from tests.client.scripted import Exchange, handshake_server, scripted
from tests.patience import PATIENCE

pytestmark = pytest.mark.lowest("httpx2 sends the requests.")

CHANGED = {"method": "notifications/tools/list_changed"}


async def no_call(exchange: Exchange) -> None:
    await exchange.answer({"content": []})


async def stay_open(exchange: Exchange) -> None:
    await exchange.begin_stream()
    await asyncio.Event().wait()


class Calls:
    """A callback that counts its calls, and lets a test wait for them."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._called = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, *values: Any) -> None:
        self.values.append(values)
        task = asyncio.create_task(self._notify())
        self._tasks.add(task)

    async def _notify(self) -> None:
        async with self._called:
            self._called.notify_all()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE), self._called:
            await self._called.wait_for(lambda: len(self.values) >= count)


async def elicit(_params: dict[str, Any]) -> dict[str, Any]:
    return {"action": "decline"}


@pytest.mark.parametrize(
    ("options", "capabilities", "opens"),
    [
        ({}, {}, False),
        ({}, {"tools": {}, "resources": {"listChanged": False}, "prompts": None}, False),
        ({"elicit": elicit}, {}, True),
        ({"roots": []}, {}, True),
        ({"on_notification": print}, {}, True),
        ({"on_resource_updated": print}, {}, True),
        ({}, {"tools": {"listChanged": True}}, True),
        ({}, {"resources": {"subscribe": True}}, True),
    ],
)
async def test_it_is_opened_if_the_client_or_the_server_has_a_use_for_it(
    options: dict[str, Any], capabilities: dict[str, Any], opens: bool
) -> None:
    async with scripted(handshake_server(no_call, stay_open, capabilities)) as server:
        async with Client(server.url, timeout=PATIENCE, **options) as client:
            if opens:
                get = await server.until("GET")
                assert (get.headers["mcp-session-id"], get.headers["mcp-protocol-version"]) == ("s1", "2025-11-25")
                assert get.headers["accept"] == "text/event-stream"
            await client.call_tool("a")
        assert len(server.having("GET")) == opens


async def test_a_server_that_does_not_answer_the_get_delays_nothing() -> None:
    async def silent(_exchange: Exchange) -> None:
        await asyncio.Event().wait()

    async with scripted(handshake_server(no_call, silent)) as server:
        async with Client(server.url, on_notification=print) as client:
            await server.until("GET")
            await client.call_tool("a")
        assert [one.method for one in server.requests][-1] == "DELETE"


async def test_a_server_without_the_stream_is_asked_once() -> None:
    async with scripted(handshake_server(no_call)) as server, Client(server.url, on_notification=print) as client:
        await server.until("GET")
        standing = client._requests._transport._standing  # type: ignore[attr-defined]
        async with asyncio.timeout(PATIENCE):
            await standing
        assert len(server.having("GET")) == 1


async def test_a_change_reaches_its_callback() -> None:
    async def stream(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.send_message(CHANGED)
        await asyncio.Event().wait()

    changed = Calls()
    async with (
        scripted(handshake_server(no_call, stream)) as server,
        Client(server.url, on_tool_list_changed=changed, timeout=PATIENCE),
    ):
        await changed.until(1)
    assert changed.values == [()]


async def test_a_question_on_the_stream_is_answered_while_other_messages_arrive() -> None:
    asked, may_answer, changed = asyncio.Event(), asyncio.Event(), Calls()

    async def slow_answer(_params: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        await may_answer.wait()
        return {"action": "decline"}

    async def stream(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.send_message({"id": "q1", "method": "elicitation/create", "params": {"message": "Who?"}})
        await exchange.send_message(CHANGED)
        await asyncio.Event().wait()

    async with (
        scripted(handshake_server(no_call, stream)) as server,
        Client(server.url, elicit=slow_answer, on_tool_list_changed=changed, timeout=PATIENCE),
    ):
        await asyncio.wait_for(asked.wait(), PATIENCE)
        await changed.until(1)
        may_answer.set()
        posts = len(server.having("POST"))
        await server.until("POST", posts + 1)
        answer = server.having("POST")[-1].message
        assert answer == {"jsonrpc": "2.0", "id": "q1", "result": {"action": "decline"}}


@pytest.mark.parametrize(
    ("id_line", "expected", "count"), [("id: e{}\n", [None, "e1", "e2"], 1), ("", [None, None, None], 3)]
)
async def test_a_stream_with_ids_is_continued_and_one_without_reports_a_gap(
    id_line: str, expected: list[str | None], count: int
) -> None:
    async def stream(exchange: Exchange) -> None:
        number = len(server.having("GET"))
        await exchange.begin_stream()
        if number < 3:
            await exchange.send(f"retry: 0\n{id_line.format(number)}data: \n\n")
            exchange.close()
        else:
            await exchange.send_message(CHANGED)
            await asyncio.Event().wait()

    changed = Calls()
    capabilities = {"tools": {"listChanged": True}}
    async with (
        scripted(handshake_server(no_call, stream, capabilities)) as server,
        Client(server.url, on_tool_list_changed=changed, timeout=PATIENCE),
    ):
        await changed.until(count)
        await server.until("GET", 3)
        assert [get.headers.get("last-event-id") for get in server.having("GET")] == expected
    assert len(changed.values) == count


async def test_a_stream_with_ids_reports_a_gap_if_the_server_was_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_stream, "delay_seconds", lambda *_: 0.0)

    async def stream(exchange: Exchange) -> None:
        number = len(server.having("GET"))
        if number == 2:
            await exchange.respond(503)
        elif number == 3:
            exchange.reset()
        else:
            await exchange.begin_stream()
            await exchange.send(f"id: e{number}\ndata: \n\n")
            if number == 1:
                exchange.close()
            await asyncio.Event().wait()

    changed = Calls()
    capabilities = {"tools": {"listChanged": True}}
    async with (
        scripted(handshake_server(no_call, stream, capabilities)) as server,
        Client(server.url, on_tool_list_changed=changed, timeout=PATIENCE),
    ):
        await changed.until(1)
        assert [get.headers.get("last-event-id") for get in server.having("GET")] == [None, "e1", "e1", "e1"]


@pytest.mark.parametrize(("statuses", "sessions"), [([404], 1), ([200, 404], 2)])
async def test_a_path_without_a_stream_ends_no_session(
    statuses: list[int], sessions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing_stream, "delay_seconds", lambda *_: 0.0)
    ends: asyncio.Queue[bool] = asyncio.Queue()

    async def stream(exchange: Exchange) -> None:
        status = statuses[min(len(server.having("GET")), len(statuses)) - 1]
        if status == 200:
            await exchange.begin_stream()
            exchange.close()
        else:
            await exchange.respond(status)

    async with (
        scripted(handshake_server(no_call, stream, {"tools": {"listChanged": True}})) as server,
        Client(server.url, timeout=PATIENCE) as client,
    ):
        client._requests.open_stream(None, ends.put_nowait)
        assert await ends.get() is (200 in statuses)
        await client.call_tool("a")
        assert len(server.having("initialize")) == sessions


async def test_an_id_that_the_server_no_longer_knows_begins_anew() -> None:
    async def stream(exchange: Exchange) -> None:
        if len(server.having("GET")) == 1:
            await exchange.begin_stream()
            await exchange.send("retry: 0\nid: e1\ndata: \n\n")
            exchange.close()
        elif "last-event-id" in exchange.headers:
            await exchange.respond(400)
        else:
            await stay_open(exchange)

    changed = Calls()
    async with (
        scripted(handshake_server(no_call, stream)) as server,
        Client(server.url, on_tool_list_changed=changed, timeout=PATIENCE),
    ):
        await changed.until(1)
        assert len(server.having("GET")) == 3


async def test_what_a_callback_raises_on_the_stream_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def stream(exchange: Exchange) -> None:
        await exchange.begin_stream()
        for _ in range(2):
            await exchange.send_message(CHANGED)
        await asyncio.Event().wait()

    changed = Calls()

    def fail() -> None:
        changed()
        raise ValueError("broken")

    async with (
        scripted(handshake_server(no_call, stream)) as server,
        Client(server.url, on_tool_list_changed=fail, timeout=PATIENCE) as client,
    ):
        await changed.until(2)  # the first failure does not end the stream
        await client.call_tool("a")
    assert "A callback for notifications/tools/list_changed of the server failed." in caplog.text


@pytest.mark.parametrize(
    ("retry", "failures", "ends", "least", "most"),
    [
        (0.5, 0, 0, 0.5, 0.5),
        (0.5, 0, 9, 0.5, 0.5),
        (0.0, 0, 0, 0.05, 0.05),
        (0.5, 2, 0, 2.0, 2.5),
        (None, 0, 0, 1.0, 1.0),
        (None, 1, 1, 4.0, 5.0),
        (None, 99, 0, 60.0, 75.0),
        (120.0, 5, 0, 120.0, 150.0),
    ],
)
def test_the_time_before_the_next_request(
    retry: float | None, failures: int, ends: int, least: float, most: float
) -> None:
    assert least <= delay_seconds(retry, failures, ends) <= most
