"""Sign-ins in a real Redis."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from funcmcp._adapters.redis.link import RedisLink
from funcmcp._adapters.redis.sign_ins import RedisSignIns
from funcmcp.state import StoreUnavailableError
from tests.redis_server import redis_server
from tests.state import sign_in_stores as stores

if TYPE_CHECKING:
    from tests.redis_server import RedisServer


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
