"""The store of tasks in a real Redis."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from funcmcp import MCPServer
from funcmcp._adapters.redis import task_records, tasks
from funcmcp._adapters.redis.link import RedisLink
from funcmcp._adapters.redis.task_scripts import CLAIM, CREATE, Script
from funcmcp._adapters.redis.tasks import RedisTasks
from funcmcp._protocol.codec import decode, encode
from funcmcp._serving.composition import runtime_of
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.store import TaskLimits, UnreadableTaskError
from funcmcp._state.tasks.task_filter import ANY_TASK, TaskFilter
from funcmcp.client import Client
from funcmcp.testing import task_store_tests
from funcmcp.testing._task_stores import CALL, OWNER, RESULT, claim_one, new_task
from tests.patience import PATIENCE
from tests.redis_forwarder import forwarder
from tests.redis_server import redis_server
from tests.state.tasks.machine import TaskStoreMachine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from redis.asyncio import Redis

    from funcmcp._state.tasks.record import Claim, NewTask, TaskKey, TaskRecord
    from funcmcp._state.tasks.store import TaskStore
    from tests.redis_forwarder import Forwarder
    from tests.redis_server import RedisServer


_SLOW = pytest.mark.slow("It takes half a second or longer with a real store.")


async def empty(store: RedisTasks) -> None:
    """Remove everything from Redis, which does not wait for the disk from now on."""
    await store._link.do(lambda redis: redis.config_set("appendonly", "no"))
    await store._link.do(lambda redis: redis.flushall())


@pytest.fixture
async def store(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RedisTasks]:
    monkeypatch.setattr(tasks, "_WAIT", 0.1)
    store = RedisTasks(RedisLink(server.url))
    await empty(store)
    yield store
    await store.aclose()


@_SLOW
async def test_event_loops_of_several_threads_start_no_task_twice(server: RedisServer) -> None:
    store = RedisTasks(server.url, lease=1.0)
    mcp = MCPServer("Loops", tasks=store)
    starts: list[int] = []

    @mcp.tool(task="required")
    async def note(number: int) -> int:
        starts.append(number)
        await asyncio.sleep(0.05)
        return number

    async def call(first: int) -> None:
        async with Client(mcp) as client:
            for batch in range(first, first + 30, 10):
                called = [await client.start_tool("note", {"number": number}) for number in range(batch, batch + 10)]
                for number, task in enumerate(called, batch):
                    assert (await task.result()).structured_content == {"result": number}
        if first:  # the worker runs on the loop of the test
            await store._link.aclose()

    others = [asyncio.to_thread(asyncio.run, call(first)) for first in (100, 200)]
    await asyncio.wait_for(asyncio.gather(call(0), *others), PATIENCE)
    assert sorted(starts) == [*range(30), *range(100, 130), *range(200, 230)]
    await runtime_of(mcp).aclose()
    await store.aclose()


URLS: list[str] = []
"""The URL of the running Redis."""


@pytest.fixture(scope="module", autouse=True)
def url(server: RedisServer) -> None:
    URLS[:] = [server.url]


@asynccontextmanager
async def stores() -> AsyncIterator[Callable[..., TaskStore]]:
    (url,) = URLS
    first = RedisTasks(RedisLink(url))
    await empty(first)
    await first.aclose()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "_WAIT", 0.1)
        yield lambda **options: RedisTasks(RedisLink(url), **options)


TestRedisTasks = task_store_tests(stores)


@_SLOW
def test_any_sequence_of_steps_does_what_the_model_does(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_WAIT", 0.002)

    class Machine(TaskStoreMachine):
        """Two processes' stores with one Redis."""

        async def make(self) -> list[TaskStore]:
            stores = [RedisTasks(RedisLink(server.url), lease=PATIENCE) for _ in range(2)]
            await empty(stores[0])
            return list(stores)

    run_state_machine_as_test(Machine, settings=settings(max_examples=8, stateful_step_count=40))


async def test_a_scan_of_many_tasks_reads_them_in_parts(store: RedisTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_records, "_SCANNED", 10)
    created = {(await store.create(new_task(None))).key for _ in range(150)}  # Redis returns up to 128 at once
    assert {record.key async for record in store.scan()} == created


async def begin_claim(store: RedisTasks, count: int, only: TaskFilter = ANY_TASK) -> asyncio.Task[Sequence[Claim]]:
    """Return a claim that waits for a task."""
    claiming = asyncio.ensure_future(store.claim(count, only))
    while not store._handover.is_waiting:
        assert not claiming.done()
        await asyncio.sleep(0)
    return claiming


async def entries_in(store: RedisTasks) -> int:
    """Return the number of tasks in the stream."""
    return int(await store._link.do(lambda redis: redis.xlen("funcmcp::tasks:due")))


@pytest.fixture
async def other(server: RedisServer, store: RedisTasks) -> AsyncIterator[RedisTasks]:
    """The store of another process."""
    other = RedisTasks(RedisLink(server.url), lease=store.lease)
    yield other
    await other.aclose()


SLOW, DEFAULT = TaskFilter(frozenset({"slow"})), TaskFilter(frozenset({"default"}))


async def claim_within(store: RedisTasks, only: TaskFilter = ANY_TASK) -> Claim:
    """Return the claim of the next task that is due."""
    async with asyncio.timeout(PATIENCE):
        while not (claims := await store.claim(1, only)):
            pass
    (claim,) = claims
    return claim


@_SLOW
async def test_a_worker_of_all_queues_finds_those_that_another_process_adds(
    store: RedisTasks, other: RedisTasks
) -> None:
    assert list(await store.claim(1)) == []
    created = [await other.create(new_task(queue="slow")), await other.create(new_task(queue="Slow", limited=True))]
    claims = [await claim_within(store) for _ in created]
    assert {claim.key for claim in claims} == {record.key for record in created}
    assert await store._link.do(lambda redis: redis.smembers("funcmcp::tasks:lanes")) == {b"slow", b"Slow/add"}


async def test_workers_of_several_queues_read_them_in_turn(store: RedisTasks) -> None:
    for queue in ("slow", "default") * 20:
        await store.create(new_task(None, queue=queue))
    claims = [claim for _ in range(10) for claim in await store.claim(1)]
    assert {claim.record.queue for claim in claims} == {"slow", "default"}


@_SLOW
async def test_a_task_is_handed_over_to_a_worker_of_its_queue_alone(
    store: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_WAIT", 0.5)
    claiming = await begin_claim(store, 5, DEFAULT)
    slow = await store.create(new_task(queue="slow"))
    limited = await store.create(new_task(limited=True))
    assert list(await claiming) == []
    assert (await claim_within(store, DEFAULT)).key == limited.key
    assert (await claim_within(store, SLOW)).key == slow.key


async def test_the_lane_of_a_tool_without_a_place_is_not_read(store: RedisTasks) -> None:
    created = await store.create(new_task(limited=True))
    for _ in range(3):
        assert list(await store.claim(1, TaskFilter(places={"add": 0}))) == []
    claim = await claim_within(store, TaskFilter(places={"add": 1}))
    assert (claim.key, claim.attempt) == (created.key, 1)


async def test_a_lane_that_a_worker_can_read_again_is_read_while_it_waits_for_others(
    store: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_WAIT", 10 * PATIENCE)
    created = await store.create(new_task(limited=True))
    claiming = await begin_claim(store, 1, TaskFilter(places={"add": 0}))
    store.wake()
    assert list(await claiming) == []
    (claim,) = await store.claim(1, TaskFilter(places={"add": 1}))
    assert claim.key == created.key


async def test_the_backlog_has_the_tasks_of_all_lanes(store: RedisTasks, other: RedisTasks) -> None:
    for queue in ("slow", "default", "other"):
        await other.create(new_task(queue=queue, limited=queue == "other"))
    backlog = await store.backlog()
    assert backlog.waiting == 3


async def test_a_task_in_the_lane_of_another_version_moves_to_its_own(store: RedisTasks, other: RedisTasks) -> None:
    record = await store.create(new_task(queue="slow", attempts=2))
    member, task = task_records.member_of(record.key), store._hash(record.key)

    async def answer_as_an_earlier_version(redis: Redis) -> int:
        await redis.delete("funcmcp::tasks:due:slow")
        entry = await redis.xadd("funcmcp::tasks:due", {"k": member})
        await redis.hset(task, "e", entry)
        return 1

    await store._link.do(answer_as_an_earlier_version)
    assert list(await other.claim(1, DEFAULT)) == []
    assert await entries_in(store) == 0
    claim = await claim_within(store, SLOW)
    assert (claim.key, claim.record.queue, claim.record.starts) == (record.key, "slow", 1)
    assert await store.renew(claim)
    assert await store.finish(claim, RESULT)
    assert list(await store.claim(1)) == []


async def test_a_failure_in_one_lane_leaves_the_claims_of_another(
    store: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await store.create(new_task(queue="slow"))
    take_from = store._take_from

    async def fail_default(lane: task_records.Lane, count: int) -> list[Claim]:
        if lane.queue == "default":
            raise StoreUnavailableError
        return await take_from(lane, count)

    monkeypatch.setattr(store, "_take_from", fail_default)
    store._turn = 0  # that of the lane "slow", which is the second one
    (claim,) = await store.claim(10)
    assert claim.key == created.key
    with pytest.raises(StoreUnavailableError):
        await store.claim(10)


async def test_a_process_with_room_claims_its_new_task_without_the_stream(
    store: RedisTasks, other: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_WAIT", 10 * PATIENCE)
    claiming = await begin_claim(store, 2)
    task = new_task(attempts=2)
    record = await store.create(task)
    (claim,) = await claiming
    assert (claim.key, claim.call, claim.attempt, claim.record) == (task.key, CALL, 1, record)
    assert await entries_in(store) == 0
    assert await other.read(task.key) == record
    assert await other.renew(claim)
    assert await other.report(claim, "half")
    assert await store.renew(claim)
    finished = await store.finish(claim, RESULT)
    assert finished is not None
    assert finished.message is None
    assert await store.renew(claim) is False
    for reader in (store, other):
        ended = await reader.read(task.key)
        assert ended is not None
        assert (ended.status, ended.message, ended.updated) == ("completed", None, finished.updated)
        assert ended.outcome is not None
        assert ended.outcome.text == RESULT.text
    assert await store._link.do(lambda redis: redis.zcard("funcmcp::tasks:delayed")) == 0


async def test_a_new_task_of_a_process_that_dies_is_due_for_others_after_the_lease(
    store: RedisTasks, other: RedisTasks
) -> None:
    store.lease = other.lease = 0.3
    claiming = await begin_claim(store, 2)
    again, once = new_task(attempts=2), new_task()
    await asyncio.gather(store.create(again), store.create(once))
    first = {claim.key: claim for claim in await claiming}
    second: dict[TaskKey, Claim] = {}
    assert await store.renew(first[again.key])
    assert list(await other.claim(5)) == []
    while len(second) < 2:
        second |= {claim.key: claim for claim in await other.claim(5)}
    assert (second[again.key].attempt, second[again.key].record.status) == (2, "working")
    assert second[once.key].record.status == "failed"
    assert await store.renew(first[again.key]) is False
    assert await store.finish(first[again.key], RESULT) is None
    assert await other.finish(second[again.key], RESULT)


async def test_a_process_claims_no_more_new_tasks_than_it_has_room_for(store: RedisTasks, other: RedisTasks) -> None:
    claiming = await begin_claim(store, 3)
    new = [new_task() for _ in range(10)]
    await asyncio.gather(*(store.create(task) for task in new))
    assert await entries_in(store) == 7
    claims = list(await claiming)
    while len(claims) < 3:
        claims += await store.claim(3 - len(claims))
    assert len(claims) == 3
    while len(claims) < 10:
        claims += await other.claim(10)
    assert {claim.key for claim in claims} == {task.key for task in new}


async def test_a_task_that_is_created_while_the_worker_stops_is_due_for_others(
    store: RedisTasks, other: RedisTasks
) -> None:
    claiming = await begin_claim(store, 3)
    task = new_task()
    creating = asyncio.ensure_future(store.create(task))
    await asyncio.sleep(0)
    assert store._handover.creating == 1
    store.wake()
    assert list(await claiming) == []
    await creating
    claim = await claim_one(other)
    assert (claim.key, claim.record.status, claim.record.starts) == (task.key, "working", 1)


async def test_a_store_that_is_closed_releases_tasks_that_no_worker_has_begun(
    store: RedisTasks, other: RedisTasks
) -> None:
    claiming = await begin_claim(store, 3)
    task = new_task()
    await store.create(task)
    claiming.cancel()
    await asyncio.wait([claiming])
    await store.aclose()
    claim = await claim_one(other)
    assert (claim.key, claim.record.status) == (task.key, "working")


async def test_a_new_task_wakes_one_waiting_worker_of_another_process(
    store: RedisTasks, other: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_WAIT", 10 * PATIENCE)
    claiming = [await begin_claim(other, 1)]
    third = RedisTasks(store._link)
    claiming.append(await begin_claim(third, 1))
    await asyncio.gather(*(store.create(new_task()) for _ in range(2)))
    async with asyncio.timeout(PATIENCE):
        assert [list(claims) for claims in await asyncio.gather(*claiming)] == [[], []]  # both have got a signal
        claims = [*await other.claim(1), *await third.claim(1)]
    assert len({claim.key for claim in claims}) == 2


async def test_a_worker_that_waits_no_more_passes_a_signal_on(
    store: RedisTasks, other: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_WAIT", 10 * PATIENCE)
    claiming = await begin_claim(store, 1)
    await store.create(new_task())
    assert len(await claiming) == 1  # this worker is busy now, and its connection still waits for a signal
    task = new_task()
    await other.create(task)
    async with asyncio.timeout(PATIENCE):
        claim = await claim_one(other)
        assert claim.key == task.key
        assert store._signal is not None
        await asyncio.wait([store._signal])
    assert await store._link.do(lambda redis: redis.llen("funcmcp::tasks:signals")) == 1


async def test_steps_that_are_taken_at_once_share_round_trips_and_have_replies_of_their_own(store: RedisTasks) -> None:
    created = await asyncio.gather(*(store.create(new_task()) for _ in range(50)))
    wrong = new_task()
    await store._link.do(lambda redis: redis.set(f"funcmcp::tasks:task:{OWNER}:{wrong.key.task_id}", "x"))
    await store._link.do(lambda redis: redis.script_flush())

    async def round_trips() -> int:
        facts: Any = await store._link.do(lambda redis: redis.info("stats"))
        return int(facts["total_reads_processed"])

    before = await round_trips()
    *records, refused, unknown = await asyncio.gather(
        *(store.read(record.key) for record in created),
        store.read(wrong.key),
        store.read(new_task().key),
        return_exceptions=True,
    )
    assert await round_trips() - before < 60
    assert records == list(created)
    assert isinstance(refused, StoreUnavailableError)
    assert unknown is None
    before = await round_trips()
    assert await asyncio.gather(*(store.read(record.key) for record in created)) == list(created)
    assert await round_trips() - before < 5


async def test_a_caller_that_does_not_wait_any_more_leaves_the_replies_of_others(store: RedisTasks) -> None:
    first, second = new_task(), new_task()
    await store.create(first)
    creating, reading = asyncio.ensure_future(store.create(second)), asyncio.ensure_future(store.read(first.key))
    await asyncio.sleep(0)
    creating.cancel()
    record = await reading
    assert record is not None
    assert record.key == first.key
    assert creating.cancelled()
    assert await store.read(second.key)


@pytest.mark.parametrize("count", [1, 2])
async def test_a_reply_of_another_type_is_a_failure_of_redis(store: RedisTasks, count: int) -> None:
    script = Script("return 'x'")
    replies = await asyncio.gather(*(store._run(script, int, (), ()) for _ in range(count)), return_exceptions=True)
    assert [str(reply) for reply in replies] == ["The task store of the server is unavailable now."] * count
    assert {type(reply) for reply in replies} == {StoreUnavailableError}


async def keys_of(store: RedisTasks) -> set[str]:
    names: list[bytes] = await store._link.do(lambda redis: redis.keys("*"))
    return {name.decode() for name in names}


_LASTING_KEYS = {f"funcmcp::tasks:{name}" for name in ("due", "all", "sizes", "bytes")}


@_SLOW
async def test_no_key_outlives_the_tasks(store: RedisTasks) -> None:
    await store.create(new_task(ttl=0.2, keep=0.1))
    await store.create(new_task(None, ttl=0.2, keep=0.1))
    await store.finish(await claim_one(store), RESULT)
    await store.release(await claim_one(store), 0.05)
    await asyncio.sleep(0.4)
    assert list(await store.claim(1)) == []
    left = await keys_of(store)
    assert left <= _LASTING_KEYS
    assert await store._link.do(lambda redis: redis.xlen("funcmcp::tasks:due")) == 0


@_SLOW
async def test_two_thousand_tasks_leave_nothing_behind(store: RedisTasks) -> None:
    store.limits = TaskLimits(live_per_principal=10_000, per_principal=10_000)
    store.lease = 1.0
    for _ in range(20):
        owners = [None, OWNER] * 50
        await asyncio.gather(*(store.create(new_task(owner, ttl=1.0, keep=0.0)) for owner in owners))
        claims = await store.claim(100)
        await asyncio.gather(*(store.finish(claim, RESULT) for claim in claims[::2]))
    await asyncio.sleep(1.1)
    while await store._link.do(lambda redis: redis.xlen("funcmcp::tasks:due")):
        await store.claim(100)
    await store.claim(100)  # signals go when the stream is empty
    assert await keys_of(store) <= _LASTING_KEYS
    pending = await store._link.do(lambda redis: redis.xpending("funcmcp::tasks:due", "workers"))
    assert pending["pending"] == 0
    for _ in range(2):  # a creation removes a thousand expired tasks
        await store.create(new_task(ttl=60))
    assert await store._link.do(lambda redis: redis.zcard("funcmcp::tasks:all")) == 2
    assert await store._link.do(lambda redis: redis.hlen("funcmcp::tasks:sizes")) == 2
    size = b"%d" % (2 * (2048 + len(CALL)))
    sums = await store._link.do(lambda redis: redis.hgetall("funcmcp::tasks:bytes"))
    assert sums == {b"*": size, OWNER.encode(): size}


async def test_a_name_with_any_characters_has_keys_of_its_own(store: RedisTasks) -> None:
    store.bind("Über: *")
    await store.create(new_task())
    assert "funcmcp:%C3%9Cber%3A%20%2A:tasks:due" in await keys_of(store)
    assert (await claim_one(store)).call == CALL


@pytest.mark.parametrize(
    ("field", "value"), [("s", b""), ("s", b'{"v":2}'), ("s", b"\xff"), ("o", b"{}"), ("s", b"[" * 200)]
)
async def test_a_record_that_this_version_did_not_write_is_left_alone(
    store: RedisTasks, field: str, value: bytes
) -> None:
    task = new_task()
    await store.create(task)
    name = f"funcmcp::tasks:task:{OWNER}:{task.key.task_id}"
    await store._link.do(lambda redis: redis.hset(name, field, value))
    with pytest.raises(UnreadableTaskError):
        await store.read(task.key)
    assert list(await store.claim(5)) == []
    with pytest.raises(UnreadableTaskError):
        await store.cancel(task.key)
    assert await store._link.do(lambda redis: redis.hget(name, field)) == value
    pending = await store._link.do(lambda redis: redis.xpending("funcmcp::tasks:due", "workers"))
    assert pending["pending"] == 1


async def test_entries_that_name_no_task_are_removed(store: RedisTasks) -> None:
    task = new_task()
    await store.create(task)

    async def disturb(redis: Redis) -> None:
        for member in (b"", b"x", b"\xff", f"{OWNER}:{'x' * 44}".encode(), f"{OWNER}:{task.key.task_id}".encode()):
            await redis.xadd("funcmcp::tasks:due", {b"k": member})
        await redis.xadd("funcmcp::tasks:due", {b"other": b"x"})

    await store._link.do(disturb)
    claims = await store.claim(100)
    assert [claim.key for claim in claims] == [task.key]
    assert await store.finish(claims[0], RESULT)
    assert await store._link.do(lambda redis: redis.xlen("funcmcp::tasks:due")) == 0


async def test_a_hash_that_is_a_text_is_a_store_that_refuses(store: RedisTasks) -> None:
    task = new_task()
    await store._link.do(lambda redis: redis.set(f"funcmcp::tasks:task:{OWNER}:{task.key.task_id}", "x"))
    with pytest.raises(StoreUnavailableError):
        await store.read(task.key)


@_SLOW
async def test_while_redis_is_away_everything_fails_in_a_bounded_time_and_works_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "_WAIT", 0.1)
    with redis_server() as server:
        link = RedisLink(server.url, timeout=PATIENCE)  # a server that has ended refuses connections at once
        store = RedisTasks(link)
        first, second = new_task(), new_task()
        await store.create(first)
        claim = await claim_one(store)
        server.stop(signal.SIGKILL)
        for step in (
            store.create(second),
            store.read(first.key),
            store.claim(1),
            store.renew(claim),
            store.finish(claim, RESULT),
            store.cancel(first.key),
            store.page(OWNER, None, 5),
        ):
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(StoreUnavailableError):
                    await step
        server.start()
        await asyncio.sleep(link._paused_until - monotonic() + 0.01)
        assert await store.read(second.key) is None
        assert await store.renew(claim)
        assert await store.finish(claim, RESULT)
        assert list(await store.claim(1)) == []
        await store.aclose()


async def test_a_redis_that_lost_everything_is_used_again(store: RedisTasks) -> None:
    await store.create(new_task())
    await claim_one(store)
    await store._link.do(lambda redis: redis.flushall())
    assert list(await store.claim(1)) == []
    task = new_task()
    await store.create(task)
    assert (await claim_one(store)).key == task.key


async def test_a_full_redis_creates_nothing_by_halves(store: RedisTasks) -> None:
    await store._link.do(lambda redis: redis.config_set("maxmemory", "1"))
    task = new_task()
    with pytest.raises(StoreUnavailableError):
        await store.create(task)
    await store._link.do(lambda redis: redis.config_set("maxmemory", "0"))
    assert await keys_of(store) == set()


async def test_a_full_redis_takes_the_end_of_each_task_and_no_new_one(store: RedisTasks) -> None:
    finishing, cancelled, claimed_later = [new_task() for _ in range(3)]
    await store.create(finishing)
    claim = await claim_one(store)
    await store.create(cancelled)
    await store.create(claimed_later)
    await store._link.do(lambda redis: redis.config_set("maxmemory", "1"))
    assert await store.renew(claim)
    assert await store.report(claim, "half")
    finished = await store.finish(claim, RESULT)
    assert finished is not None
    assert finished.outcome == RESULT
    assert await store.cancel(cancelled.key)
    assert (await claim_one(store)).key == claimed_later.key
    with pytest.raises(StoreUnavailableError):
        await store.create(new_task())
    await store._link.do(lambda redis: redis.config_set("maxmemory", "0"))
    read = await store.read(finishing.key)
    assert read is not None
    assert read.outcome == RESULT


async def test_a_kept_task_takes_at_most_two_kilobytes(store: RedisTasks) -> None:
    await store.create(new_task())
    await store.finish(await claim_one(store), RESULT)  # Redis has the scripts now

    async def used() -> int:
        facts: Any = await store._link.do(lambda redis: redis.info("memory"))
        return int(facts["used_memory"])

    before = await used()
    for _ in range(100):
        await store.create(new_task())
        await store.finish(await claim_one(store), RESULT)
    assert (await used() - before) / 100 < 2048


@_SLOW
async def test_a_lapsed_task_is_found_behind_many_that_run(store: RedisTasks, other: RedisTasks) -> None:
    """The worker of the last one has died; those of the others renew their leases."""
    store.lease = 1.0
    tasks = [new_task(attempts=2) for _ in range(60)]
    for task in tasks:
        await store.create(task)
    running: list[Claim] = []
    while len(running) < len(tasks):
        running += await other.claim(10)
    *running, dead = sorted(running, key=lambda claim: [task.key for task in tasks].index(claim.key))
    claims: list[Claim] = []
    async with asyncio.timeout(PATIENCE):
        while dead.key not in [claim.key for claim in claims]:
            for claim in running:
                await other.renew(claim)
            claims += await store.claim(1)


async def test_the_backlog_has_tasks_that_no_worker_has_looked_for(store: RedisTasks, other: RedisTasks) -> None:
    """A task with a delay that is over, and one whose worker has died: no worker has given them new entries."""
    other.lease = 0.2
    await store.create(new_task(attempts=2))
    await claim_one(other)
    await store.create(new_task(delay=0.1))
    async with asyncio.timeout(PATIENCE):
        while (await other.backlog()).waiting < 2:  # noqa: ASYNC110 - time has to pass in Redis
            await asyncio.sleep(0.02)
    assert (await other.backlog()).oldest < PATIENCE
    assert (await store.backlog()).waiting == 1  # its lease is longer


# Lost replies. The client library sends a command again if its connection breaks before the reply has come.


@pytest.fixture
def forward(server: RedisServer) -> Iterator[Forwarder]:
    with forwarder(server.url.removeprefix("unix://")) as running:
        yield running


@_SLOW
@pytest.mark.parametrize("after", range(8))
async def test_a_task_runs_once_if_a_reply_to_its_creation_is_lost(
    store: RedisTasks, forward: Forwarder, after: int
) -> None:
    """Between both attempts to create it, a worker takes the task."""
    creator = RedisTasks(RedisLink(forward.url, timeout=PATIENCE), concurrency=0)
    task = new_task()
    second_attempt = threading.Event()
    forward.lose_reply(after, until=second_attempt)
    creating = asyncio.create_task(creator.create(task))
    for _ in range(100):
        if creating.done() or await store.read(task.key) is not None:
            break
        await asyncio.sleep(0.01)
    claims = [*await store.claim(1)]
    second_attempt.set()
    await creating
    claim = claims[0] if claims else await claim_one(store)
    assert await store.renew(claim)
    finished = await store.finish(claim, RESULT)
    assert finished is not None
    assert finished.outcome == RESULT
    assert await entries_in(store) == 0
    assert [*await store.claim(1)] == []
    await creator.aclose()


async def test_a_creation_that_is_sent_again_after_the_lease_is_not_claimed(
    store: RedisTasks, other: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker has claimed the task meanwhile."""
    run = store._run

    async def run_again_later(script: Any, *call: Any) -> Any:
        reply = await run(script, *call)
        if script is CREATE:
            await store._link.do(lambda redis: redis.hset(f"funcmcp::tasks:task:{call[2][2]}", "v", "2"))
            return await run(script, *call)
        return reply

    monkeypatch.setattr(store, "_run", run_again_later)
    claiming = await begin_claim(store, 1)
    await store.create(new_task())
    assert [*await claiming] == []


@_SLOW
@pytest.mark.parametrize("after", range(6))
async def test_a_task_runs_if_a_reply_to_its_claim_is_lost(store: RedisTasks, forward: Forwarder, after: int) -> None:
    await store.create(new_task())
    worker = RedisTasks(RedisLink(forward.url, timeout=PATIENCE), lease=5)
    forward.lose_reply(after)
    claims: list[Claim] = []
    while not claims:
        claims += await worker.claim(1)
    assert claims[0].attempt == 1
    assert await worker.renew(claims[0])
    finished = await worker.finish(claims[0], RESULT)
    assert finished is not None
    assert finished.outcome == RESULT
    assert [*await store.claim(1)] == []
    await worker.aclose()


async def test_after_a_restart_from_an_older_snapshot_only_the_later_claim_counts(
    store: RedisTasks, other: RedisTasks
) -> None:
    """The snapshot has the task as it was before its first claim."""
    await other.create(new_task())

    async def dump(redis: Redis) -> dict[Any, Any]:
        return {name: await redis.dump(name) for name in await redis.keys("*")}

    async def restore(redis: Redis) -> None:
        await redis.flushall()
        for name, value in snapshot.items():
            await redis.restore(name, 0, value)

    snapshot = await store._link.do(dump)
    lost = await claim_one(store)
    await store._link.do(restore)
    valid = await claim_one(store)
    assert (valid.key, valid.attempt) == (lost.key, lost.attempt)
    assert await store.renew(lost) is False
    assert await store.report(lost, "late") is None
    assert await store.release(lost) is None
    assert await store.finish(lost, RESULT) is None
    assert await store.renew(valid)
    assert await store.finish(valid, RESULT)


async def test_claims_that_redis_did_not_confirm_are_confirmed_by_the_next_call(
    store: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        await store.create(new_task())
    lose_reply(store, monkeypatch, CLAIM, StoreUnavailableError())
    with pytest.raises(StoreUnavailableError):
        await store.claim(2)
    claims = [*await store.claim(2)]
    for _ in range(5):  # the other one may be in the stream, which this process reads once a second
        if len(claims) < 2:
            claims += await store.claim(1)
    assert [claim.attempt for claim in claims] == [1, 1]
    for claim in claims:
        assert await store.finish(claim, RESULT) is not None


def lose_reply(store: RedisTasks, monkeypatch: pytest.MonkeyPatch, script: Script, error: BaseException) -> None:
    """Let the next call of a script raise an error when Redis has run it."""
    run = store._run

    async def run_and_fail(called: Script, kind: type, keys: Any, arguments: Any) -> Any:
        reply = await run(called, kind, keys, arguments)
        if called is script:
            monkeypatch.setattr(store, "_run", run)
            raise error
        return reply

    monkeypatch.setattr(store, "_run", run_and_fail)


@pytest.mark.parametrize("error", [StoreUnavailableError(), asyncio.CancelledError()])
async def test_a_task_whose_creation_redis_did_not_confirm_is_due_for_all_workers(
    store: RedisTasks, other: RedisTasks, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    claiming = await begin_claim(store, 1)
    lose_reply(store, monkeypatch, CREATE, error)
    task = new_task(attempts=1)
    with pytest.raises(type(error)):
        await store.create(task)
    claims: list[Claim] = []
    while not claims:
        claims += await other.claim(1)
    assert (claims[0].key, claims[0].record.starts, claims[0].record.over) == (task.key, 1, False)
    assert await other.finish(claims[0], RESULT) is not None
    assert [*await claiming] == []


async def test_a_creation_that_reaches_redis_late_is_released_then(
    store: RedisTasks, other: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis is away when the task is released for the first time, and has no such task at the second time."""
    monkeypatch.setattr(tasks, "_RELEASE_PAUSE", 0.001)
    release = store.release
    released: list[TaskRecord | None] = []
    create = store._create

    async def create_later(record: TaskRecord, task: NewTask, size: int) -> bool:
        creations.append((record, task, size))
        raise StoreUnavailableError

    async def release_later(claim: Claim, delay: float = 0.0, *, unknown: bool = False) -> TaskRecord | None:
        if not released:
            released.append(None)
            raise StoreUnavailableError
        if len(released) == 2:
            await create(*creations.pop())
        released.append(await release(claim, delay, unknown=unknown))
        return released[-1]

    creations: list[tuple[TaskRecord, NewTask, int]] = []
    monkeypatch.setattr(store, "_create", create_later)
    monkeypatch.setattr(store, "release", release_later)
    claiming = await begin_claim(store, 1)
    task = new_task(attempts=1)
    with pytest.raises(StoreUnavailableError):
        await store.create(task)
    claim = await claim_one(other)
    assert (claim.key, claim.record.starts) == (task.key, 1)
    assert [record is None for record in released] == [True, True, False]
    assert [*await claiming] == []


async def test_a_process_that_ends_releases_a_creation_that_redis_did_not_confirm(
    store: RedisTasks, other: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    claiming = await begin_claim(store, 1)
    lose_reply(store, monkeypatch, CREATE, StoreUnavailableError())
    task = new_task(attempts=1)
    with pytest.raises(StoreUnavailableError):
        await store.create(task)
    await store.aclose()
    assert (await claim_one(other)).key == task.key
    await claiming


async def test_a_process_that_ends_releases_claims_that_redis_did_not_confirm(
    store: RedisTasks, other: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task(attempts=1)
    await store.create(task)
    lose_reply(store, monkeypatch, CLAIM, StoreUnavailableError())
    with pytest.raises(StoreUnavailableError):
        await store.claim(1)
    await store.aclose()
    claim = await claim_one(other)
    assert (claim.key, claim.record.starts, claim.record.over) == (task.key, 1, False)


async def test_a_worker_that_stalls_before_its_claim_leaves_the_task_to_the_one_who_has_it(
    store: RedisTasks, other: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has read the entry when it stalls, for longer than the lease."""
    store.lease = other.lease = 0.05
    await store.create(new_task(attempts=3))
    run = store._run
    claims: list[Claim] = []

    async def stall(script: Any, *call: Any) -> Any:
        if script is CLAIM and not claims:
            while not claims:
                claims.extend(await other.claim(1))
        return await run(script, *call)

    monkeypatch.setattr(store, "_run", stall)
    assert [*await store.claim(1)] == []
    (claim,) = claims
    assert await other.renew(claim)
    finished = await other.finish(claim, RESULT)
    assert finished is not None
    assert finished.starts == 1


async def write_as_older(store: RedisTasks, key: TaskKey) -> None:
    """Write the members of a record in another order."""
    name = f"funcmcp::tasks:task:{OWNER}:{key.task_id}"
    members = decode(await store._link.do(lambda redis: redis.hget(name, "s")))
    older = encode({name: members[name] for name in sorted(members)})
    await store._link.do(lambda redis: redis.hset(name, "s", older))


@pytest.mark.parametrize("attempts", [1, 2])
async def test_a_record_that_an_older_version_wrote_is_claimed(store: RedisTasks, attempts: int) -> None:
    """Older versions write the members in another order. They write a record again whenever they change it."""
    store.lease = 0.05
    task = new_task(attempts=attempts)
    await store.create(task)

    for attempt in range(1, attempts + 1):
        await write_as_older(store, task.key)
        claim = await claim_one(store)
        assert (claim.attempt, claim.record.starts, claim.call) == (attempt, attempt, CALL)
        assert await store.read(task.key) == claim.record
    await write_as_older(store, task.key)
    claim = await claim_one(store)
    assert (claim.record.status, claim.record.starts) == ("failed", attempts)


async def test_a_claim_of_a_record_of_an_older_version_that_was_not_confirmed_is_confirmed_by_the_next_call(
    store: RedisTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis does not confirm that the record is written in the later order, and then not that it is claimed."""
    keys = [(await store.create(new_task(attempts=1))).key for _ in range(3)]
    for key in keys[1:]:
        await write_as_older(store, key)
    run, calls = store._run, []

    async def fail(script: Script, *call: Any) -> Any:
        reply = await run(script, *call)
        calls.append(script)
        if script is CLAIM and calls.count(CLAIM) == 2:
            raise StoreUnavailableError
        return reply

    monkeypatch.setattr(store, "_run", fail)
    store.lease = 0.05  # the third task is due again when its entry has been idle for so long
    claims = [*await store.claim(3)]
    assert [claim.key for claim in claims] == keys[:1]
    store.lease = 15.0
    claims += await store.claim(2)
    assert [claim.key for claim in claims] == keys[:2]
    store.lease = 0.05
    await asyncio.sleep(0.1)
    for claim in claims:
        assert await store.renew(claim)
        assert await store.finish(claim, RESULT) is not None
    claim = await claim_one(store)
    assert (claim.key, claim.record.starts, claim.record.over) == (keys[2], 1, False)


async def test_members_of_later_versions_are_kept_by_a_claim(store: RedisTasks) -> None:
    """Their texts may look like the end of a record."""
    task = new_task()
    await store.create(task)
    name = f"funcmcp::tasks:task:{OWNER}:{task.key.task_id}"
    state = await store._link.do(lambda redis: redis.hget(name, "s"))
    later = {"later": [{"text": state.decode(), "record": decode(state)}]}
    await store._link.do(lambda redis: redis.hset(name, "s", encode({**later, **decode(state)})))
    claim = await claim_one(store)
    assert claim.record.extra == later
    assert claim.attempt == 1
    assert await store.read(task.key) == claim.record


async def test_a_task_of_a_process_whose_clock_is_ahead_is_claimed(store: RedisTasks) -> None:
    await store.read(new_task().key)
    assert store._skew is not None
    store._skew += 3600
    task = new_task()
    await store.create(task)
    assert (await claim_one(store)).key == task.key
