"""Sessions and revocations in a real Redis, and the bus between instances, without any server around them."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._adapters.redis.bus import RedisBus
from funcmcp._adapters.redis.link import RedisLink
from funcmcp._adapters.redis.revocations import RedisRevocations
from funcmcp._adapters.redis.sessions import RedisSessions
from funcmcp._state.bus import RESUMED
from funcmcp._state.seal import KeyRing
from funcmcp._state.sessions.ended import digest_of
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._state.sessions.store import Handshake, Notes, SessionKey, SessionsFullError, StoreUnavailableError
from tests.patience import PATIENCE
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from redis.asyncio import Redis

    from tests.redis_server import RedisServer

pytestmark = pytest.mark.lowest("redis sends the commands.")
_SLOW = pytest.mark.slow("It takes half a second or longer with a real store.")

HANDSHAKE = Handshake("2025-11-25", {"roots": {}}, {"name": "client", "version": "1"}, "somebody")
ANONYMOUS = Handshake("2025-11-25", {"roots": {}}, {"name": "client", "version": "1"})


@pytest.fixture
async def other(server: RedisServer) -> AsyncIterator[RedisLink]:
    link = RedisLink(server.url)
    yield link
    await link.aclose()


async def in_time(done: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so."""
    begun = monotonic()
    while not await done():
        assert monotonic() < begun + PATIENCE
        await asyncio.sleep(0.01)


@_SLOW
async def test_event_loops_of_several_threads_share_one_store(link: RedisLink) -> None:
    """Each loop has its own connections, and no loop takes calls of another from the queue."""
    sessions = RedisSessions(link)

    async def use() -> None:
        for _ in range(20):
            names = await asyncio.gather(*(sessions.create(HANDSHAKE) for _ in range(10)))
            assert await asyncio.gather(*map(sessions.get, names)) == [HANDSHAKE] * 10
            assert await asyncio.gather(*map(sessions.end, names)) == [True] * 10

    async def use_in_other_loop() -> None:
        await use()
        await link.aclose()

    other_loops = [asyncio.to_thread(asyncio.run, use_in_other_loop()) for _ in range(2)]
    await asyncio.wait_for(asyncio.gather(use(), *other_loops), PATIENCE)


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


@_SLOW
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
    assert await there.notes(SessionKey(session_id)) == Notes()
    await here.note_level(SessionKey(session_id), "error")
    await here.note_subscription(SessionKey(session_id), "menu://ä", subscribe=True)
    await there.note_subscription(SessionKey(session_id), "menu://b", subscribe=True)
    await there.note_subscription(SessionKey(session_id), "menu://c", subscribe=True)
    await here.note_subscription(SessionKey(session_id), "menu://b", subscribe=False)
    assert await there.notes(SessionKey(session_id)) == Notes("error", frozenset({"menu://ä", "menu://c"}))
    assert await there.get(session_id) == HANDSHAKE


async def test_what_principals_choose_in_one_session_is_kept_apart_and_goes_with_it(
    link: RedisLink, other: RedisLink
) -> None:
    here, there = RedisSessions(link), RedisSessions(other)
    session_id = await here.create(Handshake("2025-11-25"))
    alice, bob = SessionKey(session_id, "a" * 32), SessionKey(session_id, "b" * 32)
    await here.note_level(alice, "error")
    await here.note_level(SessionKey(session_id), "debug")
    await here.note_subscription(alice, "menu://a", subscribe=True)
    await here.note_subscription(alice, "menu://both", subscribe=True)
    await here.note_subscription(bob, "menu://both", subscribe=True)
    await here.note_subscription(SessionKey(session_id), f"{'a' * 32}:menu://not-alices", subscribe=True)
    await there.note_subscription(alice, "menu://both", subscribe=False)
    assert await there.notes(alice) == Notes("error", frozenset({"menu://a"}))
    assert await there.notes(bob) == Notes(None, frozenset({"menu://both"}))
    assert await there.notes(SessionKey(session_id)) == Notes("debug", frozenset({f"{'a' * 32}:menu://not-alices"}))
    assert await there.get(alice.to_text()) is None  # the key of a part is no session's id
    assert await there.end(alice.to_text()) is False
    assert await there.end(session_id) is True
    await here.note_level(bob, "error")
    for key in (SessionKey(session_id), alice, bob):
        assert await here.notes(key) == Notes()


async def test_what_is_chosen_late_does_not_bring_a_session_back(link: RedisLink) -> None:
    sessions = RedisSessions(link)
    session_id = await sessions.create(HANDSHAKE)
    await sessions.end(session_id)
    await sessions.note_level(SessionKey(session_id), "error")
    await sessions.note_subscription(SessionKey(session_id), "menu://a", subscribe=True)
    assert await sessions.get(session_id) is None
    assert await sessions.notes(SessionKey(session_id)) == Notes()


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
    revocations = RedisRevocations(link)
    assert await revocations.add("session", 30)
    [now, _] = await link.do(lambda redis: redis.time())
    expiry = await link.do(lambda redis: redis.zscore("funcmcp:revoked", digest_of("session")))
    assert now + 29 <= expiry <= now + 31


@_SLOW
async def test_revocations_are_bounded_and_none_is_forgotten_before_its_session_expires() -> None:
    with redis_server() as server:
        link = RedisLink(server.url)
        revocations = RedisRevocations(link, limit=3)
        assert [await revocations.add(name, 1.0) for name in ("a", "b")] == [True, True]
        assert await revocations.add("c", 1000.0)
        with pytest.raises(SessionsFullError) as refused:
            await revocations.add("d", 1000.0)
        assert 1 <= refused.value.retry_after <= 3
        assert [await revocations.has(name) for name in "abcd"] == [True, True, True, False]

        async def has_room() -> bool:
            try:
                return await revocations.add("d", 1000.0)
            except SessionsFullError:
                return False

        await in_time(has_room)
        assert [await revocations.has(name) for name in "cd"] == [True, True]
        await link.aclose()


async def test_anonymous_sessions_are_bounded_and_take_nothing_from_those_of_principals() -> None:
    with redis_server() as server:
        link = RedisLink(server.url)
        sessions = RedisSessions(link, anonymous=3)
        ids = [await sessions.create(ANONYMOUS) for _ in range(3)]
        with pytest.raises(SessionsFullError) as refused:
            await sessions.create(ANONYMOUS)
        assert not refused.value.is_owner_limit
        assert 1 <= refused.value.retry_after <= 301
        assert await sessions.get(await sessions.create(HANDSHAKE)) == HANDSHAKE
        assert await sessions.end(ids[0])
        assert await sessions.create(ANONYMOUS)
        with pytest.raises(SessionsFullError):
            await sessions.create(ANONYMOUS)
        await link.aclose()


async def test_an_address_has_half_of_the_anonymous_sessions_at_all_instances(
    link: RedisLink, other: RedisLink
) -> None:
    here, there = (RedisSessions(each, anonymous=6, per_principal=1) for each in (link, other))
    mine, theirs = (ANONYMOUS._replace(address=address) for address in ("a" * 32, "b" * 32))
    ids = [await sessions.create(mine) for sessions in (here, there, here)]
    for sessions in (here, there):
        with pytest.raises(SessionsFullError) as refused:
            await sessions.create(mine)
        assert refused.value.is_owner_limit
        assert 1 <= refused.value.retry_after <= 301
    await here.create(theirs)
    assert await there.get(ids[0]) == ANONYMOUS
    assert await there.end(ids[0])
    await there.create(mine)
    await here.create(theirs)
    await here.create(ANONYMOUS)
    with pytest.raises(SessionsFullError) as refused:
        await here.create(theirs)
    assert not refused.value.is_owner_limit
    await here.create(ANONYMOUS._replace(owner="another", address="a" * 32))


async def test_a_session_that_is_never_used_ends_after_five_minutes_and_used_ones_later(link: RedisLink) -> None:
    sessions = RedisSessions(link)
    handshake = ANONYMOUS._replace(address="a" * 32)
    used, unused = await sessions.create(handshake), await sessions.create(handshake)
    assert await sessions.get(used) == ANONYMOUS

    async def lifetime(key: str) -> float:
        return float(await link.do(lambda redis: redis.pttl(f"funcmcp:{key}"))) / 1000

    assert 290 < await lifetime(f"session:{unused}") <= 300
    for key in (f"session:{used}", f"at:{'a' * 32}"):
        assert 1970 < await lifetime(key) <= 1980
    await sessions.create(handshake)
    assert await lifetime(f"at:{'a' * 32}") > 1970


@_SLOW
async def test_under_volatile_lru_the_bus_the_revocations_and_the_count_of_anonymous_sessions_stay() -> None:
    with redis_server() as server:
        link = RedisLink(server.url)
        bus, revocations = RedisBus(link), RedisRevocations(link)
        sessions = RedisSessions(link, anonymous=10)
        await bus.send("topic", {"number": 1})
        assert await revocations.add("session", 1000.0)
        for _ in range(10):
            await sessions.create(ANONYMOUS)
        used: Any = await link.do(lambda redis: redis.info("memory"))
        await link.do(lambda redis: redis.config_set("maxmemory-policy", "volatile-lru"))
        await link.do(lambda redis: redis.config_set("maxmemory", used["used_memory"] + 300_000))
        large = Handshake("2025-11-25", {}, dict.fromkeys(("name", "title", "version"), "ä" * 100), "somebody")
        for _ in range(1000):
            await sessions.create(large)
        evicted: Any = await link.do(lambda redis: redis.info("stats"))
        assert evicted["evicted_keys"] > 100
        assert await revocations.has("session")
        assert await link.do(lambda redis: redis.xlen("funcmcp:bus")) == 1
        with pytest.raises(SessionsFullError):
            await sessions.create(ANONYMOUS)
        await link.aclose()


RECORDS = {
    "garbage": b"\xff\x00",
    "no JSON": b"{",
    "repeated": b'{"a":1,"a":2}',
    "an object": b'{"revision":"2025-11-25"}',
    "older": b'["2025-11-25",{},{}]',
    "newer": b'["2025-11-25",{},{},null,["read"]]',
    "newer version": b'{"v":2,"revision":"2025-11-25","capabilities":{},"info":{},"owner":null}',
    "a missing name": b'{"v":1,"revision":"2025-11-25","capabilities":{},"info":{}}',
    "empty": b"[]",
    "revision": b"[1,{},{},null]",
    "capabilities": b'["2025-11-25",[],{},null]',
    "info": b'["2025-11-25",{},"client",null]',
    "owner": b'["2025-11-25",{},{},1]',
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
async def test_a_record_of_another_version_is_no_session_and_stays_for_that_version(
    link: RedisLink, record: bytes
) -> None:
    sessions = RedisSessions(link)
    session_id = await sessions.create(HANDSHAKE)
    assert await sessions.get(session_id) == HANDSHAKE
    key = f"funcmcp:session:{session_id}"
    await link.do(lambda redis: redis.hset(key, "handshake", record))
    assert await sessions.get(session_id) is None
    assert await RedisSessions(link).get(session_id) is None
    assert await link.do(lambda redis: redis.hget(key, "handshake")) == record


async def test_a_record_with_names_of_a_later_version_is_a_session(link: RedisLink) -> None:
    session_id = await RedisSessions(link).create(HANDSHAKE)
    record = b'{"v":1,"revision":"2025-06-18","capabilities":{},"info":{},"owner":"ada","added":[1]}'
    await link.do(lambda redis: redis.hset(f"funcmcp:session:{session_id}", "handshake", record))
    assert await RedisSessions(link).get(session_id) == Handshake("2025-06-18", {}, {}, "ada")


async def test_a_key_of_another_type_is_no_session(link: RedisLink) -> None:
    await link.do(lambda redis: redis.set(f"funcmcp:session:{'a' * 44}", "{}"))
    assert await RedisSessions(link).get("a" * 44) is None
    assert await RedisSessions(link).get("a" * 44) is None


async def test_a_session_whose_key_gets_another_type_has_ended(link: RedisLink) -> None:
    sessions = RedisSessions(link)
    session_id = await sessions.create(HANDSHAKE)
    assert await sessions.get(session_id) == HANDSHAKE
    await link.do(lambda redis: redis.set(f"funcmcp:session:{session_id}", "{}"))
    assert await sessions.get(session_id) is None


async def test_sessions_that_are_read_at_once_are_not_mixed_up(link: RedisLink) -> None:
    sessions = RedisSessions(link)
    handshakes = [Handshake("2025-11-25", {}, {"name": f"client {n}", "version": "1"}) for n in range(20)]
    ids = [await sessions.create(handshake) for handshake in handshakes]
    for ended in (3, 11):
        await sessions.end(ids[ended])
    await link.do(lambda redis: redis.set(f"funcmcp:session:{'a' * 44}", "{}"))
    expected = [None if n in {3, 11} else handshake for n, handshake in enumerate(handshakes)]
    for _ in range(2):  # with and without a renewal of their expiry
        read = await asyncio.gather(*(sessions.get(session_id) for session_id in [*ids, "a" * 44, "b" * 44]))
        assert read == [*expected, None, None]


async def test_notes_that_are_not_understood_are_left_out(link: RedisLink) -> None:
    sessions = RedisSessions(link)
    session_id = await sessions.create(HANDSHAKE)
    fields: Any = {b"level:": b"loud", b"uri::menu://a": b"", b"\xff": b"\xff", b"more": b"1"}
    await link.do(lambda redis: redis.hset(f"funcmcp:session:{session_id}", mapping=fields))
    assert await sessions.notes(SessionKey(session_id)) == Notes(None, frozenset({"menu://a"}))


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
    await asyncio.to_thread(buses[0].publish, "topic", {"number": 1})
    assert await heard.next() == {"number": 1}


async def test_one_that_does_not_serve_yet_or_no_more_tells_nobody(buses: list[RedisBus]) -> None:
    heard = Heard(buses[1])
    await buses[1].ready()
    await asyncio.to_thread(buses[0].publish, "topic", {"number": 1})
    await buses[0].ready()
    buses[0].publish("topic", {"number": 2})
    assert await heard.next() == {"number": 2}
    await buses[0].aclose()
    await asyncio.to_thread(buses[0].publish, "topic", {"number": 3})
    await buses[2].send("topic", {"number": 4})
    assert await heard.next() == {"number": 4}


async def test_one_that_was_never_told_of_its_start_tells_all_the_same(buses: list[RedisBus]) -> None:
    heard = Heard(buses[1])
    await buses[1].ready()
    buses[0].publish("topic", {"number": 1})
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
    assert [record.message for record in caplog.records] == [
        "A message on the Redis stream funcmcp:bus is of another version. It is ignored."
    ]


async def test_a_message_of_another_version_is_one_line_in_the_log_and_the_next_one_is_heard(
    buses: list[RedisBus], caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard(buses[0])
    buses[0].subscribe("kinds", lambda message: message["missing"])
    await buses[0].ready()
    for _ in range(5):
        await buses[1].send("kinds", {"kind": "new"})
    await buses[1].send("topic", {"number": 1})
    assert await heard.next() == {"number": 1}
    [record] = caplog.records
    assert record.message == "A message about kinds can't be handled (KeyError). It is ignored."
    assert record.exc_info is None


async def publish(redis: Redis, *, data: bytes) -> None:
    await redis.xadd("funcmcp:bus", {b"m": data})


async def test_a_message_that_was_sent_again_is_heard_once(link: RedisLink, buses: list[RedisBus]) -> None:
    heard = Heard(buses[0])
    await buses[0].ready()
    for number in (1, 1, 2, 1, 2, 3):
        data = b'{"from":"other.","number":%d,"topic":"topic","message":{"number":%d}}' % (number, number)
        await link.do(partial(publish, data=data))
    assert [await heard.next() for _ in range(3)] == [{"number": 1}, {"number": 2}, {"number": 3}]
    for _ in range(2):
        await link.do(partial(publish, data=b'{"from":"other.","topic":"topic","message":{"number":4}}'))
    assert [await heard.next() for _ in range(2)] == [{"number": 4}] * 2
    assert heard.messages.empty()


@_SLOW
async def test_what_an_instance_can_not_send_at_once_is_heard_by_others_that_were_never_cut_off() -> None:
    with redis_server() as server:
        here, there = RedisBus(RedisLink(server.url, timeout=0.2)), RedisBus(RedisLink(server.url, timeout=30))
        heard = Heard(there)
        await here.ready()
        await there.ready()
        server.pause()
        here.publish("topic", {"number": 1})

        async def is_noticed() -> bool:
            return not here.connected

        await in_time(is_noticed)
        await asyncio.sleep(0.5)  # longer than a step may take
        server.resume()
        assert await heard.next() == {"number": 1}
        here.publish("topic", {"number": 2})
        assert await heard.next() == {"number": 2}
        assert heard.messages.empty()
        await here.aclose()
        await there.aclose()


@_SLOW
async def test_what_is_too_much_to_be_sent_later_is_a_gap_that_the_others_hear_of() -> None:
    with redis_server() as server:
        here, there = RedisBus(RedisLink(server.url, timeout=0.5)), RedisBus(RedisLink(server.url, timeout=30))
        heard = Heard(there)
        await here.ready()
        await there.ready()
        server.pause()
        for number in range(1500):
            here.publish("topic", {"number": number})
        await asyncio.sleep(1)
        server.resume()
        messages = [await heard.next() for _ in range(1001)]
        assert messages.count({}) == 1  # RESUMED
        assert {message["number"] for message in messages if message} == set(range(1000))
        assert heard.messages.empty()
        await here.aclose()
        await there.aclose()


@_SLOW
async def test_an_instance_knows_which_others_hear() -> None:
    with redis_server() as server:
        buses = [RedisBus(server.url) for _ in range(3)]
        for bus in buses:
            await bus.ready()
        names = {bus.instance for bus in buses}
        for bus in buses:
            assert await bus.other_instances() == names - {bus.instance}
        await buses[2].aclose()

        async def is_gone() -> bool:
            return await buses[0].other_instances() == {buses[1].instance}

        await in_time(is_gone)
        for bus in buses:
            await bus.aclose()


@_SLOW
async def test_an_instance_that_can_not_announce_itself_does_not_take_itself_for_the_only_one() -> None:
    with redis_server() as server:
        buses = [RedisBus(server.url) for _ in range(2)]
        admin = RedisLink(server.url)
        for bus in buses:
            await bus.ready()
        assert await buses[0].other_instances() == {buses[1].instance}
        await admin.do(lambda redis: redis.config_set("maxmemory", "1"))
        await admin.do(lambda redis: redis.delete("funcmcp:instances"))
        with pytest.raises(StoreUnavailableError):
            await buses[0].other_instances()
        await admin.do(lambda redis: redis.config_set("maxmemory", "0"))

        async def is_back() -> bool:
            try:
                return await buses[0].other_instances() == {buses[1].instance}
            except StoreUnavailableError:
                return False

        await in_time(is_back)
        await asyncio.gather(*(bus.aclose() for bus in buses), admin.aclose())


@_SLOW
@pytest.mark.parametrize("fault", ["stop", "kill", "pause"])
async def test_redis_away_is_told_in_time_and_it_comes_back_by_itself(fault: str) -> None:
    with redis_server() as server:
        links = [RedisLink(server.url) for _ in range(2)]
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
            lambda: sessions.notes(SessionKey(session_id)),
            lambda: sessions.note_level(SessionKey(session_id), "error"),
            lambda: sessions.note_subscription(SessionKey(session_id), "menu://a", subscribe=True),
            lambda: sessions.note_subscription(SessionKey(session_id), "menu://a", subscribe=False),
            lambda: bus.send("topic", {}),
            lambda: RedisRevocations(links[1]).has(session_id),
        ):
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(StoreUnavailableError):
                    await work()

        async def is_noticed() -> bool:
            return not bus.connected

        await in_time(is_noticed)
        for link in links:
            link.timeout = PATIENCE
        if fault == "pause":
            server.resume()
        else:
            server.start()

        async def is_back() -> bool:
            try:
                return await sessions.get(session_id) == HANDSHAKE
            except StoreUnavailableError:
                return False

        await in_time(is_back)
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
        with pytest.raises(StoreUnavailableError):
            await sessions.create(HANDSHAKE)
        assert await sessions.get(session_id) == HANDSHAKE
        await link.do(lambda redis: redis.config_set("maxmemory", "0"))
        assert await sessions.create(HANDSHAKE)
        await link.aclose()
