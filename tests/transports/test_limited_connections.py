"""Limits on the transports that are connections: HTTP+SSE, WebSocket and stdio."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._server.limits import Limits
from funcmcp._serving.composition import runtime_of
from funcmcp._state.rates import MemoryRates
from funcmcp._transports import stdio
from tests import rules
from tests.patience import PATIENCE
from tests.transports.http.endpoints.test_http_sse import HOST, JSON, Stream, call, exchange, opened, served
from tests.transports.test_known_callers import accepted, signed
from tests.transports.test_websocket import Opened
from tests.wire.callers import ALICE, BOB, BOBS_NEXT, open_shop
from tests.wire.gates import Gates
from tests.wire.offering import add_held_tools, offer
from tests.wire.peer import ERAS, HANDSHAKE, Peer, Slow, initialize

if TYPE_CHECKING:
    from funcmcp import MCPServer
    from tests.clock import Clock

HOURLY = 1 / 3600


class Counted:
    """Rates that let everything pass at the second attempt, and remember what was asked of them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def take(self, caller: str, count: int = 1) -> float:
        self.asked.append((caller, count))
        return 0.001 if len(self.asked) % 2 else 0.0


# HTTP+SSE


async def test_a_stream_that_comes_too_early_is_429_and_a_message_too(clock: Clock) -> None:
    app = served(rates=MemoryRates(HOURLY, 3, clock=clock)).app
    stream = await opened(app)  # one GET, two POSTs
    refused = await stream.post(call("nothing"))
    assert (refused.status, refused.header("retry-after")) == (429, "3600")
    assert refused.error["data"] == {"retryAfter": 3600}
    assert (await exchange(app, "GET", "/sse", HOST).answer()).status == 429
    await stream.leave()


@rules.verifies(rules.THREAT_27)
async def test_a_batch_on_a_stream_that_comes_too_early_is_429_as_a_whole_and_holds_no_place() -> None:
    """A batch that waits for its rate must not occupy one of the places for requests."""
    app = served(rates=MemoryRates(HOURLY, 8), limits=Limits(requests=1)).app
    stream = await opened(app)  # one GET, two POSTs
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(6)]
    assert (await stream.post(batch)).status == 429
    assert runtime_of(app).server.load.requests.used == 0
    assert (await stream.post(call("add", {"a": 1, "b": 1}))).status == 202
    assert (await stream.hear())["result"]["content"][0]["text"] == "2"
    await stream.leave()


async def test_messages_on_a_stream_are_counted_once() -> None:
    rates = MemoryRates(HOURLY, 9)
    app = served(rates=rates).app
    stream = Stream(app)
    await stream.begin()
    await stream.post(initialize("2025-03-26"))
    await stream.part()
    await stream.post([{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(5)])
    assert (await stream.part()).count('"result"') == 5
    assert (await stream.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 202
    assert (await stream.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 202  # 1 + 1 + 5 + 1 + 1
    assert (await stream.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 429
    await stream.leave()


async def test_the_header_of_a_stream_is_bounded() -> None:
    app = served(limits=Limits(header_bytes=1000)).app
    assert (await exchange(app, "GET", "/sse", {**HOST, "x-long": "x" * 1000}).answer()).status == 431
    stream = await opened(app)
    assert (await stream.post(call("nothing"), {"x-long": "x" * 1000})).status == 431
    await stream.works()
    await stream.leave()


async def test_a_call_beyond_those_that_may_run_at_once_is_refused_on_the_stream() -> None:
    offering = served(limits=Limits(requests=1))
    stream = await opened(offering.app)
    await stream.post(call("wait", {"key": "it"}))
    await offering.gates.seen("arrived", "it")
    assert (await stream.post(call("nothing"))).status == 202
    assert (await stream.hear())["error"] == {
        "code": -32603,
        "message": "The server is busy; try again later.",
        "data": {"retryAfter": 1},
    }
    offering.gates.open("it")
    assert (await stream.hear())["result"]["content"][0]["text"] == "it"
    await stream.works()
    await stream.leave()


@rules.verifies(rules.THREAT_23)
async def test_a_message_on_a_connection_has_so_many_values_and_no_more() -> None:
    stream = await opened(served(limits=Limits(message_values=100)).app)
    await stream.post(call("echo", {"many": [[]] * 60}))
    assert (await stream.hear())["error"]["code"] == -32700
    await stream.works()
    await stream.leave()
    socket = Opened(offer(websocket="/ws", limits=Limits(message_values=100)).app)
    await socket.next()
    socket.say(call("echo", {"many": [[]] * 60}))
    assert (await socket.hear())["error"]["code"] == -32700
    await socket.leave()


@rules.verifies(rules.THREAT_26)
async def test_a_half_sent_message_takes_no_place_from_others() -> None:
    app = served(limits=Limits(requests=1)).app
    stream = await opened(app)
    half_sent = exchange(app, "POST", stream.endpoint, JSON)
    half_sent._task.cancel()
    slow = Slow(app, half_sent.scope, [b"{"])
    await asyncio.wait_for(slow.asked.wait(), PATIENCE)
    await stream.works()
    slow.leave()
    await slow.ended()
    assert runtime_of(app).server.load.bodies.budget.used == 0
    await stream.leave()


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_a_principal_runs_so_many_calls_and_others_run_theirs(transport: str) -> None:
    shop = open_shop(sse="/sse", websocket="/ws", limits=Limits(requests=3, requests_per_principal=1))
    gates = Gates()
    add_held_tools(shop.mcp, gates)
    begin = _on_stream if transport == "sse" else _on_socket
    bob, alice = await begin(shop.mcp, BOB), await begin(shop.mcp, ALICE)
    await bob.say(call("wait", {"key": "it"}))
    await gates.seen("arrived", "it")
    await bob.say(call("whoami"))
    assert (await bob.hear())["error"] == {
        "code": -32603,
        "message": "Too many of your requests are under way; wait for their answers.",
        "data": {"retryAfter": 1},
    }
    await alice.say(call("whoami"))
    assert (await alice.hear())["result"]["content"][0]["text"] == "alice"
    gates.open("it")
    assert (await bob.hear())["result"]["content"][0]["text"] == "it"
    for stream in (bob, alice):
        await stream.leave()


class _Talk:
    """A principal's connection, of either kind."""

    def __init__(self, connection: Stream | Opened, key: str) -> None:
        self._connection = connection
        self._key = key
        self.leave = connection.leave
        self.hear = connection.hear

    async def say(self, message: object) -> None:
        if isinstance(self._connection, Opened):
            self._connection.say(message)
        else:
            assert (await self._connection.post(message, signed(self._key))).status == 202


async def _on_stream(app: MCPServer, key: str) -> _Talk:
    stream = Stream(app, headers=signed(key))
    await stream.begin()
    assert (await stream.post(initialize("2024-11-05"), signed(key))).status == 202
    await stream.hear()
    return _Talk(stream, key)


async def _on_socket(app: MCPServer, key: str) -> _Talk:
    socket = Opened(app, signed(key))
    await socket.next()
    socket.say(initialize(HANDSHAKE))
    await socket.hear()
    return _Talk(socket, key)


async def test_a_principal_opens_so_many_streams_and_others_open_theirs() -> None:
    shop = open_shop(sse="/sse", limits=Limits(streams_per_principal=1))
    first = exchange(shop.mcp, "GET", "/sse", {**HOST, **signed(BOB)})
    await first.begun()
    await first.part()
    refused = await exchange(shop.mcp, "GET", "/sse", {**HOST, **signed(BOBS_NEXT)}).answer()
    assert (refused.status, refused.header("retry-after")) == (429, "60")
    other = exchange(shop.mcp, "GET", "/sse", {**HOST, **signed(ALICE)})
    await other.begun()
    for one in (first, other):
        one.leave()
        await one.ended()


# WebSocket


async def denied(socket: Opened) -> tuple[int, str | None]:
    """Return the status of a refusal, and when to come back."""
    start = await socket.next()
    assert start["type"] == "websocket.http.response.start"
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert (await socket.next())["body"]
    await socket.ended()
    return start["status"], headers.get("retry-after")


async def test_a_websocket_beyond_those_that_may_be_open_is_503() -> None:
    app = offer(websocket="/ws", limits=Limits(streams=1)).app
    socket = Opened(app)
    assert (await socket.next())["type"] == "websocket.accept"
    assert await denied(Opened(app)) == (503, "60")
    await socket.leave()
    another = Opened(app)
    assert (await another.next())["type"] == "websocket.accept"
    await another.leave()


async def test_a_principal_opens_so_many_websockets_and_others_open_theirs() -> None:
    shop = open_shop(websocket="/ws", limits=Limits(streams_per_principal=1))
    bob = await accepted(shop, BOB)
    assert await denied(Opened(shop.mcp, signed(BOBS_NEXT))) == (429, "60")
    alice = await accepted(shop, ALICE)
    for socket in (bob, alice):
        await socket.leave()


async def test_a_websocket_that_is_opened_too_early_is_429(clock: Clock) -> None:
    app = offer(websocket="/ws", rates=MemoryRates(HOURLY, 1, clock=clock)).app
    socket = Opened(app)
    assert (await socket.next())["type"] == "websocket.accept"
    assert await denied(Opened(app)) == (429, "3600")
    await socket.leave()


async def test_a_websocket_with_a_large_header_is_431() -> None:
    app = offer(websocket="/ws", limits=Limits(header_bytes=1000)).app
    assert (await denied(Opened(app, {"x-long": "x" * 1000})))[0] == 431


async def test_messages_on_a_websocket_wait_until_it_is_time_and_batches_count_one_by_one() -> None:
    rates = Counted()
    rates.asked.append(("the start", 0))  # so that opening passes at once
    socket = Opened(offer(websocket="/ws", rates=rates).app)
    assert (await socket.next())["type"] == "websocket.accept"
    socket.say(initialize("2025-03-26"))
    await socket.hear()
    socket.say([{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(5)])
    assert len(await socket.hear()) == 5
    assert [count for _, count in rates.asked[1:]] == [1, 1, 1, 5, 5]
    assert len({caller for caller, _ in rates.asked[1:]}) == 1
    await socket.leave()


async def test_a_call_on_a_websocket_beyond_those_that_may_run_at_once_is_an_error() -> None:
    offering = offer(websocket="/ws", limits=Limits(requests=1))
    socket = Opened(offering.app)
    assert (await socket.next())["type"] == "websocket.accept"
    socket.say(initialize(HANDSHAKE))
    await socket.hear()
    socket.say(call("wait", {"key": "it"}))
    await offering.gates.seen("arrived", "it")
    socket.say(call("nothing"))
    assert (await socket.hear())["error"]["data"] == {"retryAfter": 1}
    offering.gates.open("it")
    assert "result" in await socket.hear()
    socket.say(call("nothing"))
    assert "result" in await socket.hear()
    await socket.leave()


# stdio


@pytest.mark.parametrize("revision", ERAS)
async def test_stdio_has_bounds_of_size_and_nesting_and_no_rate(revision: str) -> None:
    """Whoever started the process may send as much as it likes."""
    app = offer(limits=Limits(message_bytes=2000, message_depth=10), rates=MemoryRates(HOURLY, 1)).app
    peer = Peer(app, revision)
    lines: list[Any] = [] if peer.per_request else [initialize(revision, id="begin")]
    lines += [b"x" * 2001, b"[" * 11 + b"]" * 11]
    lines += [peer.call_message("add", {"a": 1, "b": 2}, number) for number in range(5)]
    text = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    (source, to_server), (from_server, sink) = os.pipe(), os.pipe()
    heard: list[Any] = []

    def hear() -> None:
        with os.fdopen(from_server, "rb") as answers:
            heard.extend(json.loads(line) for line in answers)

    thread = threading.Thread(target=hear)
    thread.start()
    os.write(to_server, text)
    os.close(to_server)

    async def close() -> None:
        await runtime_of(app).aclose()

    await asyncio.wait_for(
        asyncio.to_thread(stdio.serve, runtime_of(app).server, close, source=source, sink=sink), PATIENCE
    )
    os.close(sink)
    thread.join(PATIENCE)
    os.close(source)
    told = {answer.get("id"): answer for answer in heard}
    assert {number for number in range(5) if "result" in told[number]} == set(range(5))
    faults = sorted(answer["error"]["message"] for answer in heard if "error" in answer)
    assert faults == [
        "The JSON is nested more than 10 levels deep.",
        "The message is too long: a line may have 2000 bytes.",
    ]
