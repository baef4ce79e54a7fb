"""A real Redis Cluster, and a real Redis with a replica and Sentinel."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._adapters.redis import tasks
from funcmcp._adapters.redis.bus import RedisBus
from funcmcp._adapters.redis.link import RedisLink
from funcmcp._adapters.redis.masters import pool_options
from funcmcp._adapters.redis.rates import RedisRates
from funcmcp._adapters.redis.revocations import RedisRevocations
from funcmcp._adapters.redis.sessions import RedisSessions
from funcmcp._adapters.redis.tasks import RedisTasks
from funcmcp._state.sessions.store import Handshake, SessionKey, StoreUnavailableError
from funcmcp.testing import task_store_tests
from funcmcp.testing._task_stores import RESULT, claim_one, new_task
from tests.patience import PATIENCE
from tests.redis_server import redis_cluster, watched_redis

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from funcmcp._state.tasks.store import TaskStore
    from tests.redis_server import RedisCluster, WatchedRedis

pytestmark = pytest.mark.slow("A Redis Cluster and a Sentinel start and change their masters.")

HANDSHAKE = Handshake("2025-11-25", {}, {"name": "client", "version": "1"}, "somebody", "192.0.2.1")
ANONYMOUS = Handshake("2025-11-25", {}, {"name": "client", "version": "1"}, None, "192.0.2.1")


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    with redis_cluster() as running:
        CLUSTERS[:] = [running]
        yield running


@pytest.fixture
def watched() -> Iterator[WatchedRedis]:
    with watched_redis() as running:
        yield running


CLUSTERS: list[RedisCluster] = []


@asynccontextmanager
async def stores() -> AsyncIterator[Callable[..., TaskStore]]:
    (cluster,) = CLUSTERS
    first = RedisLink(cluster.url)
    await first.do(lambda redis: redis.flushall())
    await first.aclose()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "_WAIT", 0.1)
        yield lambda **options: RedisTasks(RedisLink(cluster.url), **options)


@pytest.mark.usefixtures("cluster")
class TestTasksOnACluster(task_store_tests(stores)):  # type: ignore[misc]
    """The tests of every store."""


async def use_every_store(link: RedisLink) -> None:
    """Use what the other stores have."""
    sessions, revocations, rates = RedisSessions(link), RedisRevocations(link), RedisRates(link, 1000, 1000)
    first, second = RedisBus(link), RedisBus(RedisLink(link._url, prefix=link.prefix, timeout=link.timeout))
    for handshake in (HANDSHAKE, ANONYMOUS):
        session_id = await sessions.create(handshake)
        for _ in range(2):
            read = await RedisSessions(link).get(session_id)
            assert read is not None
            assert read.owner == handshake.owner
        await sessions.note_level(SessionKey(session_id), "error")
        await sessions.note_subscription(SessionKey(session_id), "menu://a", subscribe=True)
        notes = await sessions.notes(SessionKey(session_id))
        assert (notes.level, notes.subscribed) == ("error", frozenset({"menu://a"}))
        assert await sessions.end(session_id)
        assert await sessions.get(session_id) is None
    assert await revocations.add("session", 60) != await revocations.add("session", 60)
    assert await revocations.has("session")
    await rates.take("caller")
    received: asyncio.Queue[Any] = asyncio.Queue()
    second.subscribe("topic", received.put_nowait)
    await second.ready()
    assert second.connected
    await first.send("topic", {"a": 1})
    async with asyncio.timeout(PATIENCE):
        assert await received.get() == {"a": 1}
        assert await first.other_instances()
    await second.aclose()
    await first.aclose()


async def run_a_task(store: RedisTasks) -> None:
    task = new_task()
    await store.create(task)
    claim = await claim_one(store)
    assert await store.renew(claim)
    assert await store.finish(claim, RESULT)
    record = await store.read(task.key)
    assert record is not None
    assert record.outcome == RESULT


async def test_every_store_works_on_a_cluster_with_its_keys_in_one_slot(cluster: RedisCluster) -> None:
    link = RedisLink(cluster.url, timeout=PATIENCE)
    await link.do(lambda redis: redis.flushall())
    store = RedisTasks(link)
    await run_a_task(store)
    await use_every_store(link)
    names: list[bytes] = await link.do(lambda redis: redis.keys("*"))
    assert names
    assert {name.partition(b"}")[0] for name in names} == {b"{funcmcp"}
    await store.aclose()


async def test_a_prefix_that_has_a_hash_tag_stays(cluster: RedisCluster) -> None:
    link = RedisLink(cluster.url, prefix="shop:{orders}")
    assert link.prefix == "shop:{orders}"
    assert RedisLink("redis://localhost").prefix == "funcmcp"
    await run_a_task(RedisTasks(link))
    await link.aclose()


async def test_tasks_go_on_when_their_slot_moves_to_another_node(cluster: RedisCluster) -> None:
    link = RedisLink(cluster.url, prefix="moving", timeout=PATIENCE)
    store = RedisTasks(link)
    task = new_task()
    await store.create(task)
    claim = await claim_one(store)
    cluster.move("{moving}")
    assert await store.renew(claim)
    assert await store.finish(claim, RESULT)
    await run_a_task(store)
    await use_every_store(link)
    await store.aclose()


async def test_tasks_go_on_after_a_failover_while_the_old_master_lives(watched: WatchedRedis) -> None:
    store = RedisTasks(RedisLink(watched.url, timeout=PATIENCE))
    task = new_task()
    await store.create(task)
    claim = await claim_one(store)
    await store._link.do(lambda redis: redis.wait(1, int(PATIENCE * 1000)))
    await asyncio.to_thread(watched.fail_over)
    assert await store.renew(claim)
    assert await store.finish(claim, RESULT)
    await run_a_task(store)
    await use_every_store(store._link)
    await store.aclose()


async def test_tasks_go_on_after_a_master_was_killed(watched: WatchedRedis) -> None:
    store = RedisTasks(RedisLink(watched.url))
    task = new_task()
    await store.create(task)
    claim = await claim_one(store)
    await store._link.do(lambda redis: redis.wait(1, 0))
    watched.master.kill()
    with pytest.raises(StoreUnavailableError):
        await store.renew(claim)
    await asyncio.to_thread(watched.await_failover)
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                assert await store.renew(claim)
            except StoreUnavailableError:
                await asyncio.sleep(0.05)
            else:
                break
    assert await store.finish(claim, RESULT)
    await run_a_task(store)
    await store.aclose()


async def test_a_cluster_that_is_away_is_an_unavailable_store() -> None:
    link = RedisLink("redis+cluster://127.0.0.1:1,127.0.0.1:2")
    with pytest.raises(StoreUnavailableError):
        await RedisTasks(link).read(new_task().key)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis+sentinel://host:1", "name of the service"),
        ("redis+sentinel://host:1/a/b", "name of the service"),
        ("redis+sentinel:///main", "at least one host"),
        ("redis+cluster://", "at least one host"),
        ("redis+cluster://host:1/3", "no databases"),
        ("redis+other://host", "scheme"),
        ("http://host", "scheme"),
    ],
)
def test_a_url_that_lacks_a_part_is_refused(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RedisLink(url)


def test_the_login_of_sentinel_is_not_that_of_redis() -> None:
    url = "rediss+sentinel://me:p%40ss@one,[::1]:7/main/3?sentinel_username=it&sentinel_password=x&ssl_ca_certs=ca.pem"
    options = pool_options(url, prefix="", timeout=1)
    search = options.pop("find").__self__
    assert options.pop("connection_class").__name__ == "_FoundTLSConnection"
    assert options == {"username": "me", "password": "p@ss", "db": 3, "ssl_ca_certs": "ca.pem"}
    assert search._servers == [("one", 26379), ("::1", 7)]
    assert search._options == {"username": "it", "password": "x", "ssl_ca_certs": "ca.pem", "ssl": True}


def test_the_login_of_a_cluster_is_that_of_its_nodes() -> None:
    options = pool_options("redis+cluster://:secret@one:7000,two", prefix="", timeout=1)
    search = options["find"].__self__
    assert options["password"] == "secret"
    assert search._servers == [("one", 7000), ("two", 6379)]
    assert search._options == {"username": None, "password": "secret", "ssl": False}
