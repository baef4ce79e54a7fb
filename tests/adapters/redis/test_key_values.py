"""Sign-ins and state in a real Redis."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest

from funcmcp._adapters.redis.key_values import RedisSignIns, RedisState
from funcmcp._adapters.redis.link import RedisLink
from funcmcp.state import StoreUnavailableError
from funcmcp.testing import state_store_tests
from tests.patience import PATIENCE
from tests.redis_server import redis_server
from tests.state import sign_in_stores as stores
from tests.state.key_value_stores import check_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from redis.asyncio import Redis

    from funcmcp.state import StateStore
    from tests.redis_server import RedisServer


URLS: list[str] = []
"""The URL of the running Redis."""


@pytest.fixture(scope="module", autouse=True)
def url(server: RedisServer) -> None:
    URLS[:] = [server.url]


@asynccontextmanager
async def state_stores() -> AsyncIterator[Callable[[], StateStore]]:
    (url,) = URLS
    yield lambda: RedisState(RedisLink(url, timeout=PATIENCE))


TestRedisState = state_store_tests(state_stores)


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_a_store_behaves_as_every_store_does(server: RedisServer) -> None:
    pair = [RedisSignIns(RedisLink(server.url, prefix="orders")) for _ in range(2)]
    await stores.check_values(*pair)
    await stores.check_repeated_writes(pair[0])
    await stores.check_races(*pair)
    await stores.check_records_of_version_0_1(pair[0])
    await stores.check_records_of_a_later_version(pair[0])
    await stores.check_expiry(pair[0], asyncio.sleep)
    assert pair[0].shared
    for store in pair:
        await store.aclose()


async def test_state_is_as_in_every_store_and_apart_from_sign_ins(link: RedisLink) -> None:
    await RedisSignIns(link).take(stores.KEYS[0], "c1.first", 60)
    states = [RedisState(link), RedisState(link)]
    await check_state(*states)
    assert await states[0].get(stores.KEYS[0]) is None
    keys = await link.do(lambda redis: redis.keys("*:state:*"))
    assert keys
    for key in keys:
        assert 0 < await link.do(partial(ttl_of, key), int) <= 121
    assert states[0].shared


async def ttl_of(key: bytes, redis: Redis) -> int:
    seconds: int = await redis.ttl(key)
    return seconds


async def test_each_server_with_a_prefix_has_its_own_sign_ins_and_all_of_them_expire(link: RedisLink) -> None:
    store = RedisSignIns(link)
    await store.take(stores.KEYS[0], "c1.first", 60)
    await store.replace(stores.KEYS[0], "c1.first", "c1.second", 60)
    other = RedisSignIns(RedisLink(link._url, prefix="menu"))
    assert await other.get(stores.KEYS[0]) is None
    await other.aclose()
    assert 59_000 < await link.do(lambda redis: redis.pttl(f"funcmcp:sign-in:{stores.KEYS[0]}"), int) <= 60_000


async def test_while_redis_is_away_every_method_raises_and_the_log_has_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    with redis_server() as server:
        store = RedisSignIns(server.url)
        await store.take(stores.KEYS[0], "c1.first", 60)
        server.kill()
        for call in (
            lambda: store.get(stores.KEYS[0]),
            lambda: store.take(stores.KEYS[1], "c1.first", 60),
            lambda: store.replace(stores.KEYS[0], "c1.first", "c1.second", 60),
            lambda: store.remove(stores.KEYS[0]),
        ):
            with pytest.raises(StoreUnavailableError):
                await call()
        assert len(caplog.records) == 1
        server.start()
        while True:
            try:
                assert await store.get(stores.KEYS[0]) == "c1.first"
                break
            except StoreUnavailableError:
                await asyncio.sleep(0.05)
        await store.aclose()
