"""Rates that instances share, in a real Redis."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

from funcmcp._adapters.redis.link import RedisLink
from funcmcp._adapters.redis.rates import RedisRates
from funcmcp._adapters.redis.sessions import RedisSessions
from funcmcp._state.sessions.store import Handshake, SessionsFullError
from tests import rules
from tests.patience import PATIENCE
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.redis_server import RedisServer

pytestmark = pytest.mark.lowest("redis sends the commands.")

HOURLY = 1 / 3600
"""So slow that nothing comes back while a test runs."""


@pytest.fixture
async def links(server: RedisServer) -> AsyncIterator[list[RedisLink]]:
    links = [RedisLink(server.url), RedisLink(server.url)]
    await links[0].do(lambda redis: redis.flushall())
    yield links
    for link in links:
        await link.aclose()


async def test_instances_count_together(links: list[RedisLink]) -> None:
    here, there = (RedisRates(link, HOURLY, 4) for link in links)
    waits = [await (here, there)[turn % 2].take("a") for turn in range(6)]
    assert waits[:4] == [0.0] * 4
    assert all(3590 < wait <= 3600 for wait in waits[4:])
    assert await there.take("b") == 0.0


@rules.verifies(rules.THREAT_34)
async def test_a_full_redis_is_one_line_in_the_log_however_many_requests_come(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Redis still accepts reads while it rejects writes."""
    with redis_server() as server:
        link = RedisLink(server.url)
        rates, sessions = RedisRates(link, HOURLY, 4), RedisSessions(link)
        session_id = await sessions.create(Handshake("2025-11-25", {}, {}, "somebody"))
        await link.do(lambda redis: redis.config_set("maxmemory", "1"))
        waits = []
        for _ in range(6):
            waits.append(await rates.take("a"))
            assert await sessions.get(session_id) is not None
        assert [wait > 0 for wait in waits] == [False] * 4 + [True] * 2
        assert [record.message for record in caplog.records] == [
            "Redis refuses a command (OutOfMemoryError). Requests that need Redis are answered with 503."
        ]
        await link.aclose()


async def test_of_many_at_the_same_moment_no_more_pass_than_may(links: list[RedisLink]) -> None:
    instances = [RedisRates(link, HOURLY, 10) for link in links]
    waits = await asyncio.gather(*(instances[turn % 2].take("a") for turn in range(50)))
    assert waits.count(0.0) == 10


async def test_several_at_once_pass_together_or_not_at_all(links: list[RedisLink]) -> None:
    rates = RedisRates(links[0], HOURLY, 5)
    assert await rates.take("a", 3) == 0.0
    assert await rates.take("a", 3) > 0
    assert await rates.take("a", 2) == 0.0
    assert await rates.take("all", 1000) == 0.0
    assert await rates.take("all") > 0


async def test_a_bucket_is_gone_from_redis_when_it_is_full(links: list[RedisLink]) -> None:
    rates = RedisRates(links[0], HOURLY, 5)
    await rates.take("a", 2)
    left = await links[0].do(lambda redis: redis.ttl("funcmcp:rate:a"))
    assert 7190 <= left <= 7200
    await RedisRates(links[0], 1000, 1).take("b")
    assert await links[0].do(lambda redis: redis.pttl("funcmcp:rate:b")) <= 1


async def test_while_redis_is_away_each_process_holds_callers_to_the_rate_by_itself() -> None:
    with redis_server() as server:
        link = RedisLink(server.url)
        rates = RedisRates(link, HOURLY, 2)
        assert await rates.take("a", 2) == 0.0
        server.stop(signal.SIGKILL)
        waits = [await rates.take("a") for _ in range(4)]
        assert [wait == 0.0 for wait in waits] == [True, True, False, False]
        await link.aclose()


OURS, THEIRS = (Handshake("2025-11-25", {}, {}, owner) for owner in ("us", "them"))


async def test_a_principal_has_so_many_sessions_and_no_more_on_all_instances_together(links: list[RedisLink]) -> None:
    here, there = (RedisSessions(link, per_principal=2) for link in links)
    first = await here.create(OURS)
    await there.create(OURS)
    for sessions in (here, there):
        with pytest.raises(SessionsFullError) as refused:
            await sessions.create(OURS)
        assert refused.value.is_owner_limit
        assert refused.value.retry_after == pytest.approx(300, abs=PATIENCE)  # they end earlier if nobody uses them
    await there.create(THEIRS)
    for _ in range(5):
        await there.create(Handshake("2025-11-25"))
    assert await there.end(first)
    assert await here.get(await here.create(OURS)) == OURS


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_a_session_that_is_over_makes_room_and_one_in_use_does_not(links: list[RedisLink]) -> None:
    sessions = RedisSessions(links[0], idle=0.5, per_principal=2)
    used = await sessions.create(OURS)
    await sessions.create(OURS)
    async with asyncio.timeout(PATIENCE):
        while True:
            assert await sessions.get(used) == OURS
            try:
                await sessions.create(OURS)
                break
            except SessionsFullError:
                await asyncio.sleep(0.01)
    with pytest.raises(SessionsFullError):
        await sessions.create(OURS)
    assert await sessions.get(used) == OURS
