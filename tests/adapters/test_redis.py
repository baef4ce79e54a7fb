"""Sessions and revocations in a real Redis, and the bus between instances, without any server around them."""

from __future__ import annotations

import asyncio
import hashlib
import signal
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.adapters.redis import RedisRevocations, RedisSessions
from funcmcp.adapters.redis_bus import RedisBus
from funcmcp.adapters.redis_link import RedisLink
from funcmcp.server.clients import part_of
from funcmcp.sessions.bus import RESUMED
from funcmcp.sessions.seal import KeyRing
from funcmcp.sessions.signed import SignedSessions
from funcmcp.sessions.store import Handshake, Notes, StoreAwayError
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from redis.asyncio import Redis

    from tests.redis_server import RedisServer

HANDSHAKE = Handshake("2025-11-25", {"roots": {}}, {"name": "client", "version": "1"}, "somebody")
PATIENCE = 10.0


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as running:
        yield running


@pytest.fixture
async def link(server: RedisServer) -> AsyncIterator[RedisLink]:
    link = RedisLink(server.url)
    yield link
    await link.aclose()


@pytest.fixture
async def other(server: RedisServer) -> AsyncIterator[RedisLink]:
    link = RedisLink(server.url)
    yield link
    await link.aclose()


async def in_time(done: Callable[[], Awaitable[bool]]) -> float:
    """Wait until something is so; return how many seconds it took."""
    begun = monotonic()
    while not await done():
        assert monotonic() < begun + PATIENCE
        await asyncio.sleep(0.01)
    return monotonic() - begun


async def test_a_session_is_known_to_every_instance_until_one_ends_it(link: RedisLink, other: RedisLink) -> None:
    here, there = RedisSessions(link), RedisSessions(other)
    session_id = await here.create(HANDSHAKE)
    assert await there.get(session_id) == await here.get(session_id) == HANDSHAKE
    assert await there.end(session_id) is True
    assert await here.get(session_id) is None
    assert await here.end(session_id) is False


async def test_ids_are_visible_ascii_and_never_the_same(link: RedisLink) -> None:
    sessions = RedisSessions(link)
    ids = {await sessions.create(HANDSHAKE) for _ in range(50)}
    assert len(ids) == 50
    assert all("!" <= character <= "~" for session_id in ids for character in session_id)


@pytest.mark.parametrize("session_id", ["", "x", "a" * 44, "a" * 43 + "\n", "*", "ä" * 44, "a" * 5000])
async def test_an_id_that_nobody_was_given_is_none(link: RedisLink, session_id: str) -> None:
    sessions = RedisSessions(link)
    assert await sessions.get(session_id) is None
    assert await sessions.end(session_id) is False


async def test_a_session_ends_when_it_is_not_used_and_lives_on_when_it_is(link: RedisLink) -> None:
    sessions = RedisSessions(link, idle=1)
    used, unused = await sessions.create(HANDSHAKE), await sessions.create(HANDSHAKE)

    async def unused_is_gone() -> bool:
        assert await sessions.get(used) == HANDSHAKE
        return not await link.do(lambda redis: redis.exists(f"funcmcp:session:{unused}"))

    await in_time(unused_is_gone)
    assert await sessions.get(used) == HANDSHAKE


async def test_servers_with_other_prefixes_share_nothing(server: RedisServer, link: RedisLink) -> None:
    session_id = await RedisSessions(link).create(HANDSHAKE)
    elsewhere = RedisLink(server.url, prefix="other")
    assert await RedisSessions(elsewhere).get(session_id) is None
    await elsewhere.aclose()


async def test_what_a_session_chooses_is_known_to_every_instance(link: RedisLink, other: RedisLink) -> None:
    here, there = RedisSessions(link), RedisSessions(other)
    session_id = await here.create(HANDSHAKE)
    assert await there.notes(session_id) == Notes()
    await here.note_level(session_id, "error")
    await here.note_subscription(session_id, "menu://ä", wanted=True)
    await there.note_subscription(session_id, "menu://b", wanted=True)
    await there.note_subscription(session_id, "menu://c", wanted=True)
    await here.note_subscription(session_id, "menu://b", wanted=False)
    assert await there.notes(session_id) == Notes("error", frozenset({"menu://ä", "menu://c"}))
    assert await there.get(session_id) == HANDSHAKE


async def test_what_principals_choose_in_one_session_is_kept_apart_and_goes_with_it(
    link: RedisLink, other: RedisLink
) -> None:
    here, there = RedisSessions(link), RedisSessions(other)
    session_id = await here.create(Handshake("2025-11-25"))
    alice, bob = part_of(session_id, "a" * 32), part_of(session_id, "b" * 32)
    await here.note_level(alice, "error")
    await here.note_level(session_id, "debug")
    await here.note_subscription(alice, "menu://a", wanted=True)
    await here.note_subscription(alice, "menu://both", wanted=True)
    await here.note_subscription(bob, "menu://both", wanted=True)
    await here.note_subscription(session_id, f"{'a' * 32}:menu://not-alices", wanted=True)
    await there.note_subscription(alice, "menu://both", wanted=False)
    assert await there.notes(alice) == Notes("error", frozenset({"menu://a"}))
    assert await there.notes(bob) == Notes(None, frozenset({"menu://both"}))
    assert await there.notes(session_id) == Notes("debug", frozenset({f"{'a' * 32}:menu://not-alices"}))
    assert await there.get(alice) is None  # the key of a part is no session's id
    assert await there.end(alice) is False
    assert await there.end(session_id) is True
    await here.note_level(bob, "error")
    for key in (session_id, alice, bob):
        assert await here.notes(key) == Notes()


async def test_what_is_chosen_late_does_not_bring_a_session_back(link: RedisLink) -> None:
    sessions = RedisSessions(link)
    session_id = await sessions.create(HANDSHAKE)
    await sessions.end(session_id)
    await sessions.note_level(session_id, "error")
    await sessions.note_subscription(session_id, "menu://a", wanted=True)
    assert await sessions.get(session_id) is None
    assert await sessions.notes(session_id) == Notes()


async def test_a_signed_session_that_one_instance_ends_is_over_everywhere(link: RedisLink, other: RedisLink) -> None:
    keys = KeyRing([b"k" * 32])
    here, there = (SignedSessions(keys, revoked=RedisRevocations(way)) for way in (link, other))
    session_id, living = await here.create(HANDSHAKE), await here.create(HANDSHAKE)
    assert await there.get(session_id) == HANDSHAKE
    assert await here.end(session_id) is True
    assert await there.get(session_id) is None
    assert await there.end(session_id) is False
    assert await there.get(living) == HANDSHAKE


async def test_a_revocation_lasts_as_long_as_the_session_would_have(link: RedisLink) -> None:
    assert await RedisRevocations(link).add("session", 30)
    key = f"funcmcp:ended:{hashlib.sha256(b'session').hexdigest()}"
    assert 30 <= await link.do(lambda redis: redis.ttl(key)) <= 31


def test_a_url_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="redis://"):
        RedisSessions("http://127.0.0.1/")


class Heard:
    """What an instance hears."""

    def __init__(self, bus: RedisBus) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        for topic in ("topic", RESUMED):
            bus.subscribe(topic, self.messages.put_nowait)

    async def next(self) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.messages.get()


@pytest.fixture
async def buses(server: RedisServer) -> AsyncIterator[list[RedisBus]]:
    buses = [RedisBus(server.url) for _ in range(3)]
    yield buses
    for bus in buses:
        await bus.aclose()


async def test_what_one_instance_tells_every_other_one_hears(buses: list[RedisBus]) -> None:
    heard = [Heard(bus) for bus in buses]
    for bus in buses:
        await bus.ready()
    await buses[0].send("topic", {"number": 1})
    await buses[0].send("other topic", {"number": 2})
    await buses[1].send("topic", {"number": 3})
    await buses[0].send("topic", {"number": 4})
    assert [await heard[2].next() for _ in range(3)] == [{"number": 1}, {"number": 3}, {"number": 4}]
    assert [await heard[1].next() for _ in range(2)] == [{"number": 1}, {"number": 4}]
    assert await heard[0].next() == {"number": 3}
    assert len({bus.instance for bus in buses}) == 3


async def test_another_thread_can_tell(buses: list[RedisBus]) -> None:
    heard = Heard(buses[1])
    for bus in buses:
        await bus.ready()
    await asyncio.to_thread(buses[0].tell, "topic", {"number": 1})
    assert await heard.next() == {"number": 1}


async def test_one_that_does_not_serve_yet_or_no_more_tells_nobody(buses: list[RedisBus]) -> None:
    heard = Heard(buses[1])
    await buses[1].ready()
    await asyncio.to_thread(buses[0].tell, "topic", {"number": 1})
    await buses[0].ready()
    buses[0].tell("topic", {"number": 2})
    assert await heard.next() == {"number": 2}
    await buses[0].aclose()
    await asyncio.to_thread(buses[0].tell, "topic", {"number": 3})
    await buses[2].send("topic", {"number": 4})
    assert await heard.next() == {"number": 4}


async def test_one_that_was_never_told_of_its_start_tells_all_the_same(buses: list[RedisBus]) -> None:
    heard = Heard(buses[1])
    await buses[1].ready()
    buses[0].tell("topic", {"number": 1})
    assert await heard.next() == {"number": 1}


async def test_what_is_none_of_ours_on_the_stream_is_ignored(
    link: RedisLink, buses: list[RedisBus], caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard(buses[0])
    await buses[0].ready()
    for data in (b"", b"{", b"[]", b"{}", b'{"from":"a","topic":"topic"}', b'{"from":1,"from":2}'):
        await link.do(partial(publish, data=data))
    await buses[1].send("topic", {"number": 1})
    assert await heard.next() == {"number": 1}
    assert len(caplog.records) == 6


async def publish(redis: Redis, *, data: bytes) -> None:
    await redis.xadd("funcmcp:bus", {b"m": data})


@pytest.mark.parametrize("fault", ["stop", "kill", "pause"])
async def test_redis_away_is_told_in_time_and_it_comes_back_by_itself(fault: str) -> None:
    with redis_server() as server:
        links = [RedisLink(server.url, timeout=0.5) for _ in range(2)]
        sessions, bus = RedisSessions(links[0]), RedisBus(links[1])
        heard = Heard(bus)
        await bus.ready()
        session_id = await sessions.create(HANDSHAKE)
        if fault == "pause":
            server.pause()
        else:
            server.stop(signal.SIGKILL if fault == "kill" else signal.SIGTERM)
        for work in (
            lambda: sessions.get(session_id),
            lambda: sessions.create(HANDSHAKE),
            lambda: sessions.end("a" * 44),
            lambda: sessions.notes(session_id),
            lambda: sessions.note_level(session_id, "error"),
            lambda: sessions.note_subscription(session_id, "menu://a", wanted=True),
            lambda: sessions.note_subscription(session_id, "menu://a", wanted=False),
            lambda: bus.send("topic", {}),
            lambda: RedisRevocations(links[1]).has(session_id),
        ):
            async with asyncio.timeout(2):
                with pytest.raises(StoreAwayError):
                    await work()

        async def is_noticed() -> bool:
            return not bus.connected

        await in_time(is_noticed)
        if fault == "pause":
            server.resume()
        else:
            server.start()

        async def is_back() -> bool:
            try:
                return await sessions.get(session_id) == HANDSHAKE
            except StoreAwayError:
                return False

        assert await in_time(is_back) < 5
        assert await heard.next() == {}  # RESUMED
        await sessions.bus.send("topic", {"number": 1})
        assert await heard.next() == {"number": 1}
        await bus.aclose()
        await sessions.bus.aclose()


async def test_a_full_or_read_only_redis_refuses_what_it_can_not_do_and_does_the_rest() -> None:
    with redis_server() as server:
        link = RedisLink(server.url)
        sessions = RedisSessions(link)
        session_id = await sessions.create(HANDSHAKE)
        await link.do(lambda redis: redis.config_set("maxmemory", "1"))
        with pytest.raises(StoreAwayError):
            await sessions.create(HANDSHAKE)
        assert await sessions.get(session_id) == HANDSHAKE
        await link.do(lambda redis: redis.config_set("maxmemory", "0"))
        assert await sessions.create(HANDSHAKE)
        await link.aclose()
