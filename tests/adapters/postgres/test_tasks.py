"""The store of tasks in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections import Counter
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from psycopg.conninfo import make_conninfo

from funcmcp._adapters.postgres import tasks
from funcmcp._adapters.postgres.tasks import PostgresTasks
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks import any_store
from funcmcp._state.tasks.record import TaskKey
from funcmcp._state.tasks.store import TaskLimits, UnreadableTaskError
from funcmcp._state.tasks.task_filter import TaskFilter
from funcmcp.testing import task_store_tests
from funcmcp.testing._task_stores import ANSWER, CALL, OWNER, QUESTIONS, RESULT, claim_one, new_task
from tests.patience import PATIENCE
from tests.state.tasks.machine import TaskStoreMachine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from funcmcp._adapters.postgres.link import Connection
    from funcmcp._state.tasks.record import Claim
    from funcmcp._state.tasks.store import TaskStore
    from tests.postgres_server import PostgresServer

pytestmark = [
    pytest.mark.lowest("psycopg sends the queries."),
    pytest.mark.slow("The same rules hold on SQLite and Redis."),
]
URLS: list[str] = []
"""The URL of the running server."""


@pytest.fixture(scope="module", autouse=True)
def url(server: PostgresServer) -> None:
    URLS[:] = [server.url]


def empty(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS funcmcp_tasks_1")


@asynccontextmanager
async def stores() -> AsyncIterator[Callable[..., TaskStore]]:
    (url,) = URLS
    empty(url)
    yield lambda **options: PostgresTasks(url, timeout=PATIENCE, **options)


TestPostgresTasks = task_store_tests(stores)


def test_any_sequence_of_steps_does_what_the_model_does(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(any_store, "CLAIM_WAIT", 0.002)

    class Machine(TaskStoreMachine):
        """Two processes' stores with one database."""

        async def make(self) -> list[TaskStore]:
            empty(server.url)
            return [PostgresTasks(server.url, timeout=PATIENCE) for _ in range(2)]

    run_state_machine_as_test(Machine, settings=settings(max_examples=8, stateful_step_count=40))


@asynccontextmanager
async def store_in(url: str, **options: Any) -> AsyncIterator[PostgresTasks]:
    options = {"timeout": PATIENCE, **options}
    store = PostgresTasks(url, **options)
    store.bind("server")
    yield store
    await store.aclose()


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresTasks]:
    async with store_in(database) as store:
        yield store


@pytest.fixture
async def other(database: str) -> AsyncIterator[PostgresTasks]:
    """The store of another process."""
    async with store_in(database) as store:
        yield store


async def until(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            result = holds()
            if result if isinstance(result, bool) else await result:
                return
            await asyncio.sleep(0.02)


async def test_a_new_task_wakes_a_waiting_worker_of_another_process(
    store: PostgresTasks, other: PostgresTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(await other.claim(1)) == []
    monkeypatch.setattr(any_store, "CLAIM_WAIT", 10 * PATIENCE)
    other.first_pause = other.longest_pause = 10 * PATIENCE
    claiming = asyncio.ensure_future(other.claim(1))
    await until(lambda: bool(other._waiting))
    task = new_task()
    await store.create(task)
    async with asyncio.timeout(PATIENCE):
        claims = list(await claiming) or [await claim_one(other)]
    assert claims[0].key == task.key


async def test_a_task_whose_lease_has_lapsed_waits(store: PostgresTasks, other: PostgresTasks) -> None:
    other.lease = 0.1
    await store.create(new_task(attempts=2))
    await claim_one(other)

    async def is_waiting() -> bool:
        return (await store.backlog()).waiting == 1

    await until(is_waiting)
    assert 0 < (await store.backlog()).oldest < PATIENCE


_CLAIM_AND_WAIT = """
import asyncio, sys
from funcmcp.tasks import NewTask, PostgresTasks, TaskKey

async def main():
    store = PostgresTasks(sys.argv[1], timeout=100)
    store.bind("server")
    for name, attempts in {"again": 2, "once": 1}.items():
        await store.create(NewTask(TaskKey(None, name), "add", b"{}", attempts=attempts))
    claims = []
    while len(claims) < 2:
        claims += await store.claim(2)
    print("claimed", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


async def test_the_tasks_of_a_process_that_was_killed_are_due_long_before_the_lease_ends(
    store: PostgresTasks, database: str
) -> None:
    await store.read(TaskKey(None, "x"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CLAIM_AND_WAIT, database, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"claimed\n"
    store.lease = 10 * PATIENCE
    assert list(await store.claim(5)) == []
    process.kill()
    assert await process.wait() == -signal.SIGKILL
    claims: dict[str, Claim] = {}
    async with asyncio.timeout(PATIENCE):
        while len(claims) < 2:
            claims |= {claim.key.task_id: claim for claim in await store.claim(2)}
    assert (claims["again"].attempt, claims["again"].record.status) == (2, "working")
    assert (claims["once"].attempt, claims["once"].record.status) == (1, "failed")
    assert await store.finish(claims["again"], RESULT)


async def test_processes_that_were_forked_have_locks_of_their_own(
    store: PostgresTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(await store.claim(1)) == []
    parent = store._presence.holder
    monkeypatch.setattr("os.getpid", lambda: -1)
    await store.aclose()
    assert list(await store.claim(1)) == []
    assert store._presence.holder not in {0, parent}


async def test_the_tasks_of_a_store_that_was_closed_are_due(store: PostgresTasks, database: str) -> None:
    async with store_in(database) as closed:
        await closed.create(new_task(attempts=2))
        await claim_one(closed)
    assert (await claim_one(store)).attempt == 2


async def test_a_process_that_has_lost_its_connection_keeps_its_tasks(
    store: PostgresTasks, other: PostgresTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_ABSENCE", 10 * PATIENCE)
    await store.create(new_task())
    claim = await claim_one(store)

    async def is_missing() -> bool:
        assert list(await other.claim(1)) == []
        return store._presence.holder in other._missing

    async def cut(connection: Connection) -> None:
        query = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s"
        await connection.execute(query, (store._presence.holder,))

    monkeypatch.setattr("funcmcp._adapters.postgres.presence._RECONNECT_PAUSE", 2.0)
    await other._link.do(cut)
    await until(is_missing)

    async def is_present() -> bool:
        return not await is_missing()

    await until(is_present)
    assert await store.finish(claim, RESULT)


async def test_a_run_goes_on_while_postgresql_restarts(
    store: PostgresTasks, other: PostgresTasks, server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    task = new_task()
    await store.create(task)
    claim = await claim_one(store)
    assert list(await other.claim(1)) == []
    server.kill()
    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            await store.renew(claim)
    with pytest.raises(StoreUnavailableError):
        await other.claim(1)
    server.start()

    async def is_back() -> bool:
        try:
            return list(await other.claim(1)) == [] and await store.renew(claim)
        except StoreUnavailableError:
            return False

    await until(is_back)
    assert list(await other.claim(1)) == []
    finished = await store.finish(claim, RESULT)
    assert finished is not None
    assert finished.status == "completed"
    assert caplog.messages[0].startswith("PostgreSQL fails (connection")
    assert caplog.messages[-1] == "PostgreSQL is back."
    assert len(caplog.messages) <= 4  # a beginning and an end for each of the two stores


async def test_a_frozen_server_makes_the_store_unavailable_in_bounded_time(
    database: str, server: PostgresServer
) -> None:
    async with store_in(database, timeout=1.0) as store:
        task = new_task()
        await store.create(task)
        server.pause()
        try:
            for _ in range(2):
                with pytest.raises(StoreUnavailableError) as refused:
                    await store.cancel(task.key)
                assert refused.value.retry_after == 1
        finally:
            server.resume()

        async def is_back() -> bool:
            try:
                return await store.read(task.key) is not None
            except StoreUnavailableError:
                return False

        await until(is_back)


class LosesOneReply:
    """Cuts the connection behind the n-th step, before the store has the reply.

    Args:
        store: The store.
        number: Of the step, from 0.
        committed: Whether the server has committed the step. Otherwise the connection is cut before the step.
    """

    def __init__(self, store: PostgresTasks, number: int, *, committed: bool) -> None:
        self.lost = False
        self._number = number
        self._committed = committed
        self._do: Callable[..., Awaitable[Any]] = store._link.do

    async def do(self, step: Callable[[Connection], Awaitable[Any]]) -> Any:
        async def losing(connection: Connection) -> Any:
            if self._number == 0 and not self.lost and not self._committed:
                await self._cut(connection)
            result = await step(connection)
            if self._number == 0 and not self.lost:
                await self._cut(connection)
            return result

        try:
            return await self._do(losing)
        finally:
            self._number -= 1

    async def _cut(self, connection: Connection) -> None:
        self.lost = True
        with socket.socket(fileno=socket.dup(connection.fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)
        await connection.execute("SELECT 1")


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("number", range(12))
async def test_a_task_has_the_same_history_if_a_reply_is_lost(
    store: PostgresTasks, number: int, committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(any_store, "CLAIM_WAIT", 0.05)
    loss = LosesOneReply(store, number, committed=committed)
    monkeypatch.setattr(store._link, "do", loss.do)
    task = new_task()
    created = await store.create(task)
    first = await claim_one(store)
    assert (first.key, first.call, first.attempt, first.record.status) == (task.key, CALL, 1, "working")
    assert first.record.created == created.created
    assert await store.renew(first)
    assert await store.report(first, "half")
    assert await store.ask(first, QUESTIONS)
    assert await store.answer(task.key, {"name.1": ANSWER, "size.2": ANSWER})
    second = await claim_one(store)
    assert (second.attempt, second.record.status, second.call) == (2, "working", CALL)
    finished = await store.finish(second, RESULT)
    assert finished is not None
    assert finished.message is None
    ended = await store.read(task.key)
    assert ended is not None
    assert (ended.status, ended.outcome.text if ended.outcome else None) == ("completed", RESULT.text)
    assert await store.cancel(task.key) is None
    assert loss.lost


async def test_a_claim_whose_reply_never_comes_is_given_by_the_next_call(
    store: PostgresTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task()
    await store.create(task)
    do = store._link.do

    async def without_reply(step: Callable[[Connection], Awaitable[Any]]) -> Any:
        result = await do(step)
        if result and isinstance(result, list):
            raise StoreUnavailableError
        return result

    with monkeypatch.context() as patch:
        patch.setattr(store._link, "do", without_reply)
        with pytest.raises(StoreUnavailableError):
            await store.claim(1)
    claim = await claim_one(store)
    assert (claim.key, claim.attempt, claim.record.status) == (task.key, 1, "working")


async def test_a_task_whose_worker_stops_while_it_claims_it_is_due_for_others(
    store: PostgresTasks, other: PostgresTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task()
    await store.create(task)
    begun = asyncio.Event()
    claim_row = store._claim_row

    async def slow(*arguments: Any) -> Any:
        begun.set()
        await asyncio.sleep(0.1)
        return await claim_row(*arguments)

    monkeypatch.setattr(store, "_claim_row", slow)
    claiming = asyncio.ensure_future(store.claim(1))
    await begun.wait()
    claiming.cancel()
    await asyncio.wait([claiming])
    assert claiming.cancelled()
    await store.aclose()
    claim = await claim_one(other)
    assert (claim.key, claim.record.status, claim.record.starts) == (task.key, "working", 1)


async def test_while_connections_are_cut_no_task_is_lost_or_starts_twice(
    store: PostgresTasks, other: PostgresTasks, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funcmcp._adapters.postgres.link._FAILURE_PAUSE", 0.01)
    new = [new_task(None) for _ in range(40)]
    runs: Counter[TaskKey] = Counter()
    statuses: dict[TaskKey, str] = {}

    async def cut() -> None:
        """End one connection after the other, at any moment."""
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'funcmcp %'"
        async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
            while len(statuses) < len(new):
                await connection.execute(f"{query} ORDER BY random() LIMIT 1")
                await asyncio.sleep(0.01)

    async def create() -> None:
        for task in new:
            await until_done(lambda task=task: store.create(task))  # type: ignore[misc]

    async def work(worker: PostgresTasks) -> None:
        while len(statuses) < len(new):
            for claim in await until_done(lambda: worker.claim(5)):
                runs[claim.key] += not claim.record.over
                await until_done(lambda claim=claim: worker.finish(claim, RESULT))  # type: ignore[misc]
                record = await until_done(lambda claim=claim: worker.read(claim.key))  # type: ignore[misc]
                statuses[claim.key] = "" if record is None else record.status

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(cut(), create(), work(store), work(other))
    assert statuses == {task.key: "completed" for task in new}
    assert runs == {task.key: 1 for task in new}


async def until_done(step: Callable[[], Awaitable[Any]]) -> Any:
    """Return what a step returns, as soon as the store can be reached."""
    while True:
        try:
            return await step()
        except StoreUnavailableError:
            await asyncio.sleep(0.01)


async def test_a_caller_that_does_not_wait_any_more_leaves_its_write_as_it_is(store: PostgresTasks) -> None:
    task = new_task()
    await store.create(task)
    cancelling = asyncio.ensure_future(store.cancel(task.key))
    await asyncio.sleep(0)
    cancelling.cancel()
    await asyncio.wait([cancelling])
    assert cancelling.cancelled()

    async def is_cancelled() -> bool:
        record = await store.read(task.key)
        return record is not None and record.status == "cancelled"

    await until(is_cancelled)


async def test_more_callers_than_connections_wait_for_one(store: PostgresTasks) -> None:
    store.limits = TaskLimits(live_per_principal=1000)
    created = await asyncio.gather(*(store.create(new_task()) for _ in range(100)))
    assert await asyncio.gather(*(store.read(record.key) for record in created)) == list(created)
    assert len(await store.page(OWNER, None, 200)) == 100


async def test_one_principal_never_exceeds_its_limit_however_many_processes_create(
    store: PostgresTasks, other: PostgresTasks
) -> None:
    store.limits = other.limits = TaskLimits(live_per_principal=20)
    creating = [each.create(new_task()) for each in (store, other) for _ in range(20)]
    results = await asyncio.gather(*creating, return_exceptions=True)
    assert sum(not isinstance(result, BaseException) for result in results) == 20


async def test_a_record_that_another_version_wrote_is_left_to_it(store: PostgresTasks, database: str) -> None:
    task = new_task()
    await store.create(task)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE funcmcp_tasks_1 SET state = '{\"v\":2}'::bytea")
        with pytest.raises(UnreadableTaskError):
            await store.read(task.key)
        assert list(await store.claim(1)) == []
        with pytest.raises(UnreadableTaskError):
            await store.cancel(task.key)
        (row,) = connection.execute("SELECT state, due > 0 FROM funcmcp_tasks_1").fetchall()
    assert row == (b'{"v":2}', True)


async def test_a_scan_of_many_tasks_reads_them_in_parts(store: PostgresTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_SCAN_ROWS", 3)
    created = {(await store.create(new_task(None))).key for _ in range(10)}
    assert {record.key async for record in store.scan()} == created


async def test_tables_of_another_kind_are_a_lasting_error_that_the_log_explains(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE funcmcp_tasks_1 (name text)")
    async with store_in(database) as store:
        with pytest.raises(StoreUnavailableError) as refused:
            await store.read(new_task().key)
    assert refused.value.retry_after is None
    assert 'PostgreSQL fails (column "due" does not exist' in caplog.messages[0]


_BEFORE_QUEUES = """
CREATE TABLE funcmcp_tasks_1 (
  server text NOT NULL, owner text NOT NULL, id text NOT NULL, position text COLLATE "C" NOT NULL,
  version text NOT NULL, state bytea NOT NULL, call bytea NOT NULL, outcome bytea,
  due double precision, live_until double precision, removed double precision NOT NULL,
  payer text, bytes bigint NOT NULL, holder integer, token text,
  PRIMARY KEY (server, owner, id)
);
CREATE INDEX funcmcp_tasks_1_due ON funcmcp_tasks_1 (server, due) WHERE due IS NOT NULL;
CREATE INDEX funcmcp_tasks_1_holder ON funcmcp_tasks_1 (holder) WHERE holder IS NOT NULL;
CREATE INDEX funcmcp_tasks_1_removed ON funcmcp_tasks_1 (server, removed);
CREATE INDEX funcmcp_tasks_1_position ON funcmcp_tasks_1 (server, owner, position);
CREATE INDEX funcmcp_tasks_1_payer ON funcmcp_tasks_1 (server, payer, removed) INCLUDE (bytes);
"""
_INSERT_BEFORE_QUEUES = """
INSERT INTO funcmcp_tasks_1
  (server, owner, id, position, version, state, call, due, live_until, removed, payer, bytes)
VALUES
  ('server', '', %(id)s, 'x', '', convert_to(%(state)s, 'UTF8'), '{}', 1, 4000000000, 4000000000, NULL, 2048)
"""
_STATE_BEFORE_QUEUES = (
    '{"v":1,"tool":"add","created":1.0,"expires":4000000000.0,"keep":1.0,"poll":null,"attempts":1,"due":1.0,'
    '"removed":4000000000.0}'
)


async def test_a_table_of_an_earlier_version_gets_queues_and_that_version_can_write_to_it(database: str) -> None:
    slow = TaskFilter(frozenset({"slow"}))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(_BEFORE_QUEUES)
        connection.execute(_INSERT_BEFORE_QUEUES, {"id": "before", "state": _STATE_BEFORE_QUEUES})
        made = [PostgresTasks(database, timeout=PATIENCE) for _ in range(3)]
        for store in made:
            store.bind("server")
        created = await asyncio.gather(*(store.create(new_task(None, queue="slow")) for store in made))
        connection.execute(_INSERT_BEFORE_QUEUES, {"id": "beside", "state": _STATE_BEFORE_QUEUES})
        claims = list(await made[0].claim(10, slow))
        assert {claim.key for claim in claims} == {record.key for record in created}
        claims = list(await made[0].claim(10, TaskFilter(frozenset({"default"}), {"add": 1})))
        assert {claim.key.task_id for claim in claims} == {"before", "beside"}
        assert {claim.record.queue for claim in claims} == {"default"}
    for store in made:
        await store.aclose()


async def test_a_role_without_rights_to_change_tables_can_use_complete_ones(database: str) -> None:
    async with store_in(database) as store:
        await store.create(new_task(None))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS clerk")
        connection.execute("CREATE ROLE clerk LOGIN")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON funcmcp_tasks_1 TO clerk")
        async with store_in(make_conninfo(database, user="clerk")) as store:
            assert (await claim_one(store)).record.queue == "default"
        connection.execute("DROP OWNED BY clerk")
        connection.execute("DROP ROLE clerk")


async def test_many_processes_that_start_at_once_create_the_tables(database: str) -> None:
    made = [PostgresTasks(database, timeout=PATIENCE) for _ in range(6)]
    records = await asyncio.gather(*(store.create(new_task(None)) for store in made))
    assert len({record.key for record in records}) == 6
    for store in made:
        await store.aclose()


async def test_an_idle_worker_asks_a_few_times_a_second(store: PostgresTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    look = store._is_any_due

    async def count(connection: Connection, *, only: TaskFilter) -> bool:
        nonlocal looks
        looks += 1
        return await look(connection, only=only)

    monkeypatch.setattr(store, "_is_any_due", count)
    begin = monotonic()
    assert list(await store.claim(1)) == []
    assert 2 <= looks <= 2 + (monotonic() - begin) / store.first_pause


@pytest.mark.parametrize("url", ["mysql://localhost", "postgresql://localhost?colour=red", "nonsense"])
def test_a_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="A store in PostgreSQL needs a URL, such as 'postgresql://localhost/app': "):
        PostgresTasks(url)
