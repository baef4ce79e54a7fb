"""Limits on the wire, in both eras: status, headers, error, and that the next good request is answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._auth.principal import Principal
from funcmcp._server.limits import Limits
from funcmcp._serving.composition import runtime_of
from funcmcp._state.rates import MemoryRates
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._transports.http.admission import authentication
from tests import rules
from tests.patience import PATIENCE
from tests.wire.callers import ALICE, BOB, BOBS_NEXT, open_shop
from tests.wire.gates import Gates
from tests.wire.offering import add_held_tools, nothing, offer
from tests.wire.peer import (
    BATCHES,
    ERAS,
    HANDSHAKE,
    PER_REQUEST,
    Exchange,
    Peer,
    Slow,
    check,
    connect,
    exchange,
    initialize,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.clock import Clock
    from tests.wire.peer import Answer

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")


def is_refused(answer: Answer, status: int, retry_after: int) -> bool:
    """Tell whether an answer says when to come back, in its header and in its body."""
    seconds = answer.error["data"]["retryAfter"]
    return (*answer.outcome, answer.header("retry-after"), seconds) == (status, -32603, str(retry_after), retry_after)


# What one request may be


@pytest.mark.parametrize("revision", ERAS)
async def test_a_body_may_be_as_large_as_the_limit_and_no_larger(revision: str) -> None:
    peer = await connect(offer(limits=Limits(message_bytes=2000)).app, revision)
    notification = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    like = {"method": "notifications/initialized"}
    assert (await peer.post(notification + b" " * (2000 - len(notification)), like=like)).status == 202
    refused = await peer.post(notification + b" " * (2001 - len(notification)), like=like)
    assert refused.outcome == (413, -32600)
    await peer.works()


@rules.verifies(rules.THREAT_23)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_message_has_so_many_values_and_no_more(revision: str) -> None:
    peer = await connect(offer(limits=Limits(message_values=1000)).app, revision)
    for count, outcome in ((900, (200, None)), (1001, (400, -32700))):
        assert (await peer.call("echo", {"many": [[]] * (count // 2)})).outcome == outcome
    assert (await peer.call("echo", {"text": ",[{" * 1000})).outcome == (200, None)
    await peer.works()


@pytest.mark.parametrize("revision", ERAS)
async def test_nesting_is_refused_beyond_the_limit(revision: str) -> None:
    peer = await connect(offer(limits=Limits(message_depth=10)).app, revision)
    for levels, outcome in ((7, (200, None)), (8, (400, -32700))):
        nested: Any = 1
        for _ in range(levels):
            nested = [nested]
        assert (await peer.call("echo", {"nested": nested})).outcome == outcome
    await peer.works()


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    "added", [{"x-long": "x" * 3000}, {"x" * 3000: "long"}, {f"x-{n}": "y" * 24 for n in range(120)}]
)
async def test_a_header_beyond_the_limit_is_431_and_nothing_is_read(revision: str, added: dict[str, str]) -> None:
    peer = await connect(offer(limits=Limits(header_bytes=3000)).app, revision)
    answer = await peer.call("add", {"a": 1, "b": 2}, headers=added)
    assert (answer.outcome, answer.reads) == ((431, -32600), 0)
    await peer.works()


@pytest.mark.parametrize("revision", ERAS)
async def test_a_body_that_does_not_come_in_time_is_408(revision: str) -> None:
    peer = await connect(offer(limits=Limits(message_seconds=0.02)).app, revision)
    started = exchange(peer.app, "POST", peer.headers(None).items())
    started._task.cancel()
    answer = check(await Slow(peer.app, started.scope, [b'{"jsonrpc"']).answer(), revision)
    assert answer.outcome == (408, -32600)
    await peer.works()


# How many at once


@pytest.mark.parametrize("tool", ["wait", "wait_quietly"])
@pytest.mark.parametrize("revision", ERAS)
async def test_requests_beyond_those_that_may_run_at_once_are_503(revision: str, tool: str) -> None:
    offering = offer(limits=Limits(requests=2, requests_per_principal=2))
    peer = await connect(offering.app, revision)
    held = [peer.start_call(tool, {"key": key}) for key in ("one", "two")]
    for key in ("one", "two"):
        await offering.gates.seen("arrived", key)
    refused = await peer.call("add", {"a": 1, "b": 2})
    assert is_refused(refused, 503, 1)
    offering.gates.open("one")
    assert (await held[0].answer()).text == "one"
    await peer.works()
    offering.gates.open("two")
    assert (await held[1].answer()).text == "two"
    await peer.works()


def half_sent(peer: Peer, address: str = "192.0.2.1", part: bytes = b"{") -> Slow:
    """Begin a POST whose body does not come to its end."""
    started = exchange(peer.app, "POST", peer.headers(None).items())
    started._task.cancel()
    started.scope["client"] = (address, 50_000)
    return Slow(peer.app, started.scope, [part])


async def half_sent_and_read(peer: Peer, address: str = "192.0.2.1", part: bytes = b"{") -> Slow:
    """Begin a POST, and wait until the server waits for the rest of its body."""
    slow = half_sent(peer, address, part)
    await asyncio.wait_for(slow.asked.wait(), PATIENCE)
    return slow


@rules.verifies(rules.THREAT_26)
@pytest.mark.parametrize("revision", ERAS)
async def test_half_sent_bodies_take_no_place_from_requests(revision: str) -> None:
    """A request counts from the last byte of its body."""
    app = offer(limits=Limits(requests=1)).app
    peer = await connect(app, revision)
    slow = [await half_sent_and_read(peer) for _ in range(3)]
    await peer.works()
    for call in slow:
        call.leave()
        await call.ended()
    await peer.works()
    assert runtime_of(app).server.load.bodies.budget.used == 0


@pytest.mark.parametrize("revision", ERAS)
async def test_a_request_whose_body_ends_when_there_is_no_room_is_503(revision: str) -> None:
    offering = offer(limits=Limits(requests=1))
    peer = await connect(offering.app, revision)
    slow = await half_sent_and_read(peer)
    held = peer.start_call("wait", {"key": "it"})
    await offering.gates.seen("arrived", "it")
    slow.finish(b"}")
    assert is_refused(check(await slow.answer(), revision), 503, 1)
    offering.gates.open("it")
    assert (await held.answer()).text == "it"
    await peer.works()


@rules.verifies(rules.THREAT_26)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("limits", "addresses", "status"),
    [
        (Limits(body_bytes=3 * 17_384), ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"], 503),
        (Limits(body_bytes=6 * 17_384, body_bytes_per_principal=1), ["192.0.2.1"] * 4, 429),
    ],
)
async def test_too_many_bytes_of_half_sent_bodies_displace_the_oldest(
    limits: Limits, addresses: list[str], status: int, revision: str
) -> None:
    """The slow request is rejected, and a body that arrives at once is read."""
    app = offer(limits=limits).app
    peer = await connect(app, revision)
    slow = [await half_sent_and_read(peer, address, b"x" * 1000) for address in addresses]
    assert is_refused(check(await slow[0].answer(), revision), status, 1)
    assert not any(call._sent for call in slow[1:])
    await peer.works()
    for call in slow[1:]:
        call.leave()
        await call.ended()
    assert runtime_of(app).server.load.bodies.budget.used == 0


@pytest.mark.parametrize("tool", ["wait", "wait_quietly"])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_principal_has_so_many_requests_and_leaves_the_others_to_the_others(revision: str, tool: str) -> None:
    shop = open_shop(limits=Limits(requests=3, requests_per_principal=2))
    gates = Gates()
    add_held_tools(shop.mcp, gates)
    bob, again, alice = [await shop.connected(key, revision) for key in (BOB, BOBS_NEXT, ALICE)]
    held = [bob.start_call(tool, {"key": key}) for key in ("one", "two")]
    for key in ("one", "two"):
        await gates.seen("arrived", key)
    assert is_refused(await again.request("tools/list"), 429, 1)
    assert (await alice.request("tools/list")).status == 200
    for key, exchanged in zip(("one", "two"), held, strict=True):
        gates.open(key)
        assert (await exchanged.answer()).text == key
    assert (await again.request("tools/list")).status == 200


async def test_runs_that_outlive_their_requests_count_for_their_principal() -> None:
    shop = open_shop(sessions="memory", limits=Limits(requests=3, requests_per_principal=1))
    gates = Gates()
    add_held_tools(shop.mcp, gates)
    bob, alice = [await shop.connected(key, HANDSHAKE) for key in (BOB, ALICE)]
    left = bob.start_call("talk", {"key": "it"})
    await left.begun()
    await gates.seen("arrived", "it")
    left.leave()
    await left.ended()
    assert is_refused(await bob.request("tools/list"), 429, 1)
    assert (await alice.request("tools/list")).status == 200
    gates.open("it")
    await gates.seen("left", "it")


@pytest.mark.parametrize("revision", ERAS)
async def test_calls_with_large_arguments_run_until_the_memory_of_their_caller_is_used_up(revision: str) -> None:
    offering = offer(limits=Limits(memory_bytes_per_principal=200_000))
    peer = await connect(offering.app, revision)
    first, second = ("x" * 100_000, "y" * 100_000)
    held = peer.start_call("wait", {"key": first})
    await offering.gates.seen("arrived", first)
    refused = await peer.call("wait", {"key": second})
    assert is_refused(refused, 429, 1)
    assert refused.error["message"] == "The server holds too much for you; wait for answers, or end a stream."
    await peer.works()
    offering.gates.open(first)
    assert (await held.answer()).text == first
    held = peer.start_call("wait", {"key": second})
    await offering.gates.seen("arrived", second)
    offering.gates.open(second)
    assert (await held.answer()).text == second


async def test_the_arguments_of_a_call_that_outlives_its_request_count_for_its_caller() -> None:
    shop = open_shop(sessions="memory", limits=Limits(memory_bytes_per_principal=200_000))
    gates = Gates()
    add_held_tools(shop.mcp, gates)
    bob, alice = [await shop.connected(key, HANDSHAKE) for key in (BOB, ALICE)]
    first, second, third = ("x" * 100_000, "y" * 100_000, "z" * 100_000)
    left = bob.start_call("talk", {"key": first})
    await left.begun()
    await gates.seen("arrived", first)
    left.leave()
    await left.ended()
    refused = await bob.call("talk", {"key": second})
    assert refused.outcome == (429, -32603)
    gates.open(first)
    await gates.seen("left", first)
    again = alice.start_call("talk", {"key": third})
    await gates.seen("arrived", third)
    gates.open(third)
    assert (await again.answer()).status == 200


async def test_an_address_has_half_of_the_places_and_leaves_the_others_to_the_others() -> None:
    offering = offer(limits=Limits(requests=4, requests_per_principal=1))
    peer = await connect(offering.app, PER_REQUEST)
    held = [at_address(peer, "192.0.2.1", "wait", {"key": key}) for key in ("one", "two")]
    for key in ("one", "two"):
        await offering.gates.seen("arrived", key)
    assert is_refused(check(await at_address(peer, "192.0.2.1").answer(), PER_REQUEST), 429, 1)
    assert (await at_address(peer, "192.0.2.2").answer()).status == 200
    for key, exchanged in zip(("one", "two"), held, strict=True):
        offering.gates.open(key)
        assert (await exchanged.answer()).text == key
    assert (await at_address(peer, "192.0.2.1").answer()).status == 200


async def test_callers_whose_authenticator_waits_share_places_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow authenticator takes no place from requests whose callers are known."""
    monkeypatch.setattr(authentication, "DECISION_TIMEOUT", PATIENCE)
    waiting, going_on = asyncio.Event(), asyncio.Event()

    async def authenticate(headers: Mapping[str, str]) -> Principal | None:
        if headers.get("authorization") != "slow":
            return Principal("Alice")
        waiting.set()
        await going_on.wait()
        return None

    app = MCPServer("Slow", auth=authenticate, limits=Limits(requests=2, requests_per_principal=1))
    app.tool(nothing)
    peer = await connect(app, PER_REQUEST)
    slow = from_slow(peer)
    await asyncio.wait_for(waiting.wait(), PATIENCE)
    assert is_refused(check(await from_slow(peer).answer(), PER_REQUEST), 429, 1)
    assert (await peer.call("nothing")).status == 200
    going_on.set()
    assert (await slow.answer()).status == 401


def from_slow(peer: Peer) -> Exchange:
    """Begin a request with credentials that take long to check."""
    message = peer.call_message("nothing")
    return peer.start(message, {"authorization": "slow"}, client=("192.0.2.1", 50_000))


def at_address(peer: Peer, address: str, tool: str = "nothing", arguments: dict[str, Any] | None = None) -> Exchange:
    """Begin a call from an address."""
    return peer.start(peer.call_message(tool, arguments), client=(address, 50_000))


async def test_a_call_goes_on_counting_when_its_client_has_left() -> None:
    """In the handshake era a call outlives its connection."""
    offering = offer(limits=Limits(requests=1))
    peer = await connect(offering.app, HANDSHAKE)
    left = peer.start_call("talk", {"key": "it"})
    await left.begun()
    await offering.gates.seen("arrived", "it")
    left.leave()
    await left.ended()
    assert is_refused(await peer.call("add", {"a": 1, "b": 2}), 503, 1)
    offering.gates.open("it")
    await offering.gates.seen("left", "it")
    stream = peer.start(peer.call_message("nothing"))
    await stream.answer()  # the run comes to its end meanwhile
    await peer.works()


async def test_of_a_batch_as_many_run_as_there_is_room_for() -> None:
    offering = offer(limits=Limits(requests=2, requests_per_principal=2))
    peer = await connect(offering.app, BATCHES)
    batch = [peer.call_message("wait", {"key": str(number)}, number) for number in range(4)]
    started = peer.start(batch)
    for key in ("0", "1"):
        await offering.gates.seen("arrived", key)
        offering.gates.open(key)
    answers = (await started.answer()).message
    assert [answer["id"] for answer in answers] == [0, 1, 2, 3]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, -32603, -32603]
    await peer.works()


# How many streams


def listen(peer: Peer) -> Exchange:
    """Begin to listen in the way of the era."""
    if peer.per_request:
        return peer.start(peer.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
    return exchange(peer.app, "GET", {**peer.headers(None), "accept": "text/event-stream"}.items())


@pytest.mark.parametrize("revision", ERAS)
async def test_streams_beyond_those_that_may_be_open_are_503(revision: str) -> None:
    app = offer(live=True, limits=Limits(streams=2, streams_per_principal=2)).app
    peers = [await connect(app, revision) for _ in range(3)]
    streams = [listen(peer) for peer in peers[:2]]
    for stream in streams:
        await stream.begun()
        await stream.part()
    assert is_refused(check(await listen(peers[2]).answer(), revision), 503, 60)
    for peer in peers:
        await peer.works()
    streams[0].leave()
    await streams[0].ended()
    another = listen(peers[2])
    await another.begun()
    for stream in (streams[1], another):
        stream.leave()
        await stream.ended()


@pytest.mark.parametrize("revision", ERAS)
async def test_a_principal_has_so_many_streams_and_leaves_the_others_to_the_others(revision: str) -> None:
    shop = open_shop(sessions="memory", limits=Limits(streams_per_principal=1))
    bob, again, alice = [await shop.connected(key, revision) for key in (BOB, BOBS_NEXT, ALICE)]
    stream = listen(bob)
    await stream.begun()
    await stream.part()
    assert is_refused(check(await listen(again).answer(), revision), 429, 60)
    other = listen(alice)
    await other.begun()
    for listener in (stream, other):
        listener.leave()
        await listener.ended()


async def test_listening_takes_no_place_from_calls() -> None:
    app = offer(live=True, limits=Limits(requests=1)).app
    peer = await connect(app, PER_REQUEST)
    streams = [listen(peer) for _ in range(3)]
    for stream in streams:
        await stream.begun()
    await peer.works()
    for stream in streams:
        stream.leave()
        await stream.ended()
    await peer.works()


# How many sessions


async def test_a_principal_with_all_its_sessions_gets_429_and_others_get_theirs() -> None:
    shop = open_shop(sessions=MemorySessions(per_principal=2))
    first = await shop.connected(BOB)
    await shop.connected(BOBS_NEXT)
    refused = await shop.caller(BOB).post(initialize(HANDSHAKE))
    assert (refused.outcome, refused.header("mcp-session-id")) == ((429, -32603), None)
    assert int(refused.header("retry-after") or "") >= 1
    await shop.connected(ALICE)
    assert (await first.request("tools/list")).status == 200
    await first.delete()
    await shop.connected(BOB)


async def test_an_address_begins_half_of_all_sessions_and_leaves_the_others_to_the_others() -> None:
    mcp = MCPServer("Sessions", sessions=MemorySessions(limit=4, per_principal=1))
    peers = [Peer(mcp, HANDSHAKE) for _ in range(6)]
    begun = [
        await peer.start(initialize(HANDSHAKE), client=(address, 50_000)).answer()
        for peer, address in zip(peers, ["192.0.2.1"] * 3 + ["192.0.2.2"] * 2 + ["192.0.2.3"], strict=True)
    ]
    assert [answer.status for answer in begun] == [200, 200, 429, 200, 200, 200]
    assert 1 <= int(begun[2].header("retry-after") or "") <= 301


# How many in a time


async def from_address(app: MCPServer, address: str | None, headers: Mapping[str, str] | None = None) -> Answer:
    """Send a good request of the per-request era from an address."""
    peer = Peer(app, PER_REQUEST)
    message = peer.message("tools/list")
    started = peer.start(message, headers, client=None if address is None else (address, 50_000))
    return check(await started.answer(), PER_REQUEST, "tools/list")


@pytest.mark.parametrize("revision", ERAS)
async def test_requests_that_come_too_fast_are_429_until_it_is_time(revision: str, clock: Clock) -> None:
    app = offer(rates=MemoryRates(0.5, 3, clock=clock)).app
    peer = await connect(app, revision)
    for _ in range(3 if peer.per_request else 1):  # two were the handshake
        await peer.works()
    refused = await peer.call("add", {"a": 1, "b": 2})
    assert (is_refused(refused, 429, 2), refused.reads) == (True, 0)
    clock.now += 1.0
    assert is_refused(await peer.call("add", {"a": 1, "b": 2}), 429, 1)
    clock.now += 1.0
    await peer.works()


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_requests_without_a_body_count_too(method: str, clock: Clock) -> None:
    app = offer(live=True, rates=MemoryRates(1, 3, clock=clock)).app
    peer = await connect(app, HANDSHAKE)
    headers = {**peer.headers(None), "accept": "text/event-stream", "mcp-session-id": "none"}
    statuses = [(await exchange(app, method, headers.items()).answer()).status for _ in range(2)]
    assert statuses == [404, 429]


async def test_the_messages_of_a_batch_count_one_by_one(clock: Clock) -> None:
    app = offer(rates=MemoryRates(1, 10, clock=clock)).app
    peer = await connect(app, BATCHES)
    batch = [peer.call_message("add", {"a": 1, "b": 2}, number) for number in range(6)]
    assert (await peer.post(batch)).status == 200
    assert is_refused(await peer.post(batch), 429, 4)
    await peer.works()


async def test_an_address_is_held_to_the_rate_and_another_one_is_not(clock: Clock) -> None:
    app = offer(rates=MemoryRates(1, 1, clock=clock)).app
    for address in ("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:0:1::1", None):
        assert (await from_address(app, address)).status == 200
    for address in ("192.0.2.1", "::ffff:192.0.2.2", "2001:db8::ffff", "2001:db8:0:1:a:b:c:d", None):
        assert (await from_address(app, address)).status == 429


async def test_a_forwarded_address_means_nothing_unless_proxies_are_configured(clock: Clock) -> None:
    app = offer(rates=MemoryRates(1, 1, clock=clock)).app
    statuses = [
        (await from_address(app, "192.0.2.1", {"x-forwarded-for": f"198.51.100.{number}"})).status for number in (1, 2)
    ]
    assert statuses == [200, 429]


async def test_behind_proxies_the_address_is_the_one_that_the_first_of_them_saw(clock: Clock) -> None:
    app = offer(rates=MemoryRates(1, 1, clock=clock), http=HTTPOptions(proxies=2)).app
    for forwarded, status in (
        ("198.51.100.1, 10.0.0.1", 200),
        ("made-up, 198.51.100.1, 10.0.0.2", 429),
        ("203.0.113.9, 198.51.100.1:4711, 10.0.0.1", 429),
        ("198.51.100.2, 10.0.0.1", 200),
        ("[2001:db8::1]:80, 10.0.0.1", 200),
        ("2001:db8::2, 10.0.0.1", 429),
        ("198.51.100.3", 200),  # it came past a proxy, so that it counts for the peer
        ("nonsense, 10.0.0.1", 429),
        (f"2001:db8:0:1::1%{'x' * 1000}, 10.0.0.1", 429),  # nothing so long is remembered as an address
        ("", 429),
    ):
        answer = await from_address(app, "192.0.2.1", {"x-forwarded-for": forwarded})
        assert (forwarded, answer.status) == (forwarded, status)


@pytest.mark.parametrize("revision", ERAS)
async def test_principals_are_held_to_the_rate_wherever_they_call_from(revision: str, clock: Clock) -> None:
    shop = open_shop(rates=MemoryRates(1, 2, clock=clock))
    bob, next_bob, alice = (shop.caller(key, revision) for key in (BOB, BOBS_NEXT, ALICE))
    good = [initialize(HANDSHAKE)] if revision == HANDSHAKE else [bob.message("tools/list")]
    statuses = [(await caller.post(good[0])).status for caller in (bob, next_bob, bob, alice)]
    assert statuses == [200, 200, 429, 200]


async def test_bad_credentials_count_for_the_address_and_not_for_a_principal(clock: Clock) -> None:
    shop = open_shop(rates=MemoryRates(1, 2, clock=clock))
    stranger, bob = shop.caller("nobodys-key-at-all", PER_REQUEST), shop.caller(BOB, PER_REQUEST)
    statuses = [(await stranger.request("tools/list")).status for _ in range(3)]
    assert statuses == [401, 401, 429]
    assert (await bob.request("tools/list")).status == 200


async def test_without_rates_nobody_is_held_to_any() -> None:
    peer = await connect(offer().app, PER_REQUEST)
    for _ in range(300):
        await peer.works()
