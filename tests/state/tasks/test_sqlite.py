"""The store of tasks in a SQLite file."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import sys
import tempfile
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks import any_store, sqlite, sqlite_file
from funcmcp._state.tasks.record import TaskKey
from funcmcp._state.tasks.sqlite import SQLiteTasks
from funcmcp._state.tasks.store import UnreadableTaskError
from funcmcp._state.tasks.task_filter import TaskFilter
from funcmcp.testing import task_store_tests
from funcmcp.testing._task_stores import RESULT, new_task, readable_tasks
from tests.clock import Clock
from tests.patience import PATIENCE
from tests.state.tasks.machine import TaskStoreMachine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from funcmcp._state.tasks.record import Claim
    from funcmcp._state.tasks.store import TaskStore

pytestmark = pytest.mark.every_python("Python's own SQLite, dataclasses, JSON or character tables decide it.")


TIME = Clock()

BEFORE_QUEUES = Path(__file__).parents[2] / "data/sqlite_tasks_before_queues.sql"
"""What the version before queues has written: a task that waits, one with a question, and one that has ended."""


@asynccontextmanager
async def stores() -> AsyncIterator[Callable[..., TaskStore]]:
    with tempfile.TemporaryDirectory(prefix="tasks-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "monotonic", TIME)
        yield partial(SQLiteTasks, Path(folder) / "tasks.db", clock=TIME)


async def wait(seconds: float) -> None:
    TIME.now += seconds


TestSQLiteTasks = task_store_tests(stores, wait=wait)


def modes_in(folder: Path) -> dict[str, int]:
    """Return the permissions of files by their names."""
    return {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}


async def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db")
    await store.create(new_task())
    modes = modes_in(tmp_path)
    await store.aclose()
    assert modes == dict.fromkeys(["tasks.db", "tasks.db-wal", "tasks.db-shm"], 0o600)


async def test_a_folder_that_is_not_there_makes_the_store_unavailable(tmp_path: Path) -> None:
    store = SQLiteTasks(tmp_path / "none" / "tasks.db")
    with pytest.raises(StoreUnavailableError):
        await store.create(new_task())
    await store.aclose()


class SQLiteMachine(TaskStoreMachine):
    """Two processes' stores with one file."""

    async def make(self) -> list[TaskStore]:
        self.folder = tempfile.TemporaryDirectory(prefix="tasks-")
        path = Path(self.folder.name) / "tasks.db"
        return [SQLiteTasks(path), SQLiteTasks(path)]

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


def test_any_sequence_of_steps_does_what_the_model_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(any_store, "CLAIM_WAIT", 0.001)
    run_state_machine_as_test(SQLiteMachine, settings=settings(max_examples=15, stateful_step_count=40))


async def test_a_task_survives_its_process_and_runs_in_another(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _CREATE_AND_DIE, str(path))
    assert await process.wait() == -signal.SIGKILL
    store = SQLiteTasks(path)
    store.bind("server")
    first, second = await store.claim(2)
    assert (first.key, first.record.status) == (TaskKey(None, "first"), "failed")
    assert (second.key, second.record.status) == (TaskKey(None, "second"), "working")
    await store.aclose()
    assert list(modes_in(tmp_path)) == ["tasks.db"]


@pytest.mark.slow("A process is killed, or a clock makes steps.")
async def test_the_task_of_a_process_that_was_killed_runs_again_within_two_seconds(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    store = SQLiteTasks(path)
    store.bind("server")
    await store.read(TaskKey(None, "x"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CLAIM_AND_WAIT, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"claimed\n"
    assert await store.claim(1) == []
    process.kill()
    await process.wait()
    (claim,) = await claim_within(store, 2)
    assert (claim.key, claim.attempt, claim.record.status) == (TaskKey(None, "task"), 2, "working")
    assert await store.finish(claim, RESULT)
    await store.aclose()
    assert list(modes_in(tmp_path)) == ["tasks.db"]


async def claim_within(store: TaskStore, seconds: float) -> list[Claim]:
    """Return the claims that the store gives in so many seconds; each call of `claim` lasts a second at most."""
    claims: list[Claim] = []
    for _ in range(int(seconds)):
        claims += await store.claim(1)
        if claims:
            break
    return claims


_CLAIM_AND_WAIT = """
import asyncio, sys
from funcmcp._state.tasks.record import NewTask, TaskKey
from funcmcp._state.tasks.sqlite import SQLiteTasks

async def main():
    store = SQLiteTasks(sys.argv[1])
    store.bind("server")
    await store.create(NewTask(TaskKey(None, "task"), "add", b"{}", attempts=2))
    await store.claim(1)
    print("claimed", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.mark.slow("A process is killed, or a clock makes steps.")
@pytest.mark.parametrize("step", [60.0, -60.0])
async def test_a_step_of_the_clock_fails_no_run(step: float, tmp_path: Path, clock: Clock) -> None:
    store, other = [SQLiteTasks(tmp_path / "tasks.db", clock=clock) for _ in range(2)]
    task = new_task()
    await store.create(task)
    (claim,) = await store.claim(1)
    clock.now += step
    for each in (store, other):
        assert list(await each.claim(1)) == []
    assert await store.renew(claim)
    record = await store.finish(claim, RESULT)
    assert record is not None
    assert record.status == "completed"
    for each in (store, other):
        await each.aclose()


async def test_a_lapsed_task_runs_again_although_the_clock_was_set_back(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db", clock=clock)
    await store.create(new_task(attempts=2))
    assert await store.claim(1)
    clock.now -= 60
    uptime = monotonic() + store.lease
    monkeypatch.setattr(sqlite, "monotonic", lambda: uptime)
    (claim,) = await store.claim(1)
    assert (claim.attempt, claim.record.status) == (2, "working")
    await store.aclose()


async def test_a_task_whose_worker_has_ended_waits(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db", clock=clock)
    await store.create(new_task(attempts=2))
    assert await store.claim(1)
    uptime = monotonic() + store.lease + 7
    monkeypatch.setattr(sqlite, "monotonic", lambda: uptime)
    backlog = await store.backlog()
    assert (backlog.waiting, 6 < backlog.oldest < 8) == (1, True)
    await store.aclose()


_CREATE_AND_DIE = """
import asyncio, os, signal, sys
from funcmcp._state.tasks.record import NewTask, TaskKey
from funcmcp._state.tasks.sqlite import SQLiteTasks

async def main():
    store = SQLiteTasks(sys.argv[1])
    store.bind("server")
    await store.create(NewTask(TaskKey(None, "first"), "add", b"{}"))
    await store.claim(1)
    await store.create(NewTask(TaskKey(None, "second"), "add", b"{}"))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def foreign_table(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE funcmcp_tasks_3 (name TEXT)")


def damaged_file(path: Path) -> None:
    path.write_bytes(b"no database" * 100)


FAULTS = [
    (damaged_file, "file is not a database: the file is not a database of SQLite; name another one, or remove it"),
    (foreign_table, "no such column: server: the tables in the file are not those of this version; name another file"),
]


@pytest.mark.parametrize(("make", "reason"), FAULTS)
async def test_a_file_that_is_not_a_task_store_is_a_lasting_error_that_the_log_explains_once(
    make: Callable[[Path], None], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tasks.db"
    make(path)
    store = SQLiteTasks(path)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError) as refused:
            await store.create(new_task())
        assert refused.value.retry_after is None
    assert caplog.messages == [
        f"The task store {path} can't be used ({reason}). Requests that need it are answered with 503."
    ]
    await store.aclose()


async def test_a_read_does_not_end_an_outage_of_writes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db")
    store.bind("server")
    key = new_task().key
    assert await store.read(key) is None
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file.SQLiteFile, "write", full_disk)
        for _ in range(3):  # as readiness checks do
            assert await store.read(key) is None
            with pytest.raises(StoreUnavailableError):
                await store.check_writable()
    [line] = caplog.messages
    assert "(database or disk is full" in line
    await store.check_writable()
    assert caplog.messages[1:] == [f"The task store {tmp_path / 'tasks.db'} can be used again."]
    await store.aclose()


async def full_disk(_file: object, _work: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


async def test_a_file_of_an_earlier_version_gets_queues_and_that_version_can_write_to_it(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "tasks.db"
    clock.now = 4_000_000_000.0
    slow, default = TaskFilter(frozenset({"slow"})), TaskFilter(frozenset({"default"}), {"add": 1})
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(BEFORE_QUEUES.read_text(encoding="utf-8"))
        made = [SQLiteTasks(path, clock=clock) for _ in range(3)]
        for store in made:
            store.bind("server")
        created = await asyncio.gather(*(store.create(new_task(queue="slow")) for store in made))
        connection.execute(  # as the earlier version does
            "INSERT INTO funcmcp_tasks_3"
            " (server, owner, id, position, state, call, due, live_until, removed, payer, bytes)"
            " SELECT server, owner, 'beside', position, state, call, due, live_until, removed, payer, bytes"
            " FROM funcmcp_tasks_3 WHERE id = 'waiting'"
        )
    (store, *_) = made
    claims = list(await store.claim(10, slow))
    assert {claim.key for claim in claims} == {record.key for record in created}
    claims = list(await store.claim(10, default))
    assert {claim.key.task_id for claim in claims} == {"waiting", "beside"}
    assert {claim.record.queue for claim in claims} == {"default"}
    assert await store.answer(TaskKey("a" * 32, "asking"), {"name.1": {"action": "decline"}})
    (claim,) = await store.claim(10, default)
    assert (claim.key.task_id, claim.call) == ("asking", b'{"call":2}')
    assert {record.key.task_id: record.status for record in await readable_tasks(store)}["ended"] == "completed"
    for each in made:
        await each.aclose()


async def test_columns_that_cannot_be_added_are_an_error_that_leaves_the_file_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tasks.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(BEFORE_QUEUES.read_text(encoding="utf-8"))
        monkeypatch.setattr(sqlite, "_COLUMNS", {"queue": "queue TEXT", "tool": "tool NONSENSE ("})
        store = SQLiteTasks(path)
        with pytest.raises(StoreUnavailableError):
            await store.read(TaskKey(None, "x"))
        names = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info('funcmcp_tasks_3')")]
        assert "queue" not in names
    await store.aclose()


async def test_a_damaged_page_is_in_the_log_once_though_other_pages_can_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db")
    await store.create(new_task())
    damage = sqlite3.DatabaseError("database disk image is malformed")
    damage.sqlite_errorname = "SQLITE_CORRUPT"

    def fail(*_: Any) -> None:
        raise damage

    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(store, "_select", fail)
            with pytest.raises(StoreUnavailableError) as refused:
                await store.read(TaskKey(None, "x"))
            assert refused.value.retry_after is None
        assert await store.read(TaskKey(None, "x")) is None
    reasons = [message for message in caplog.messages if "malformed" in message]
    assert len(reasons) == 1
    assert "the file is damaged; restore it from a backup, or remove it" in reasons[0]
    await store.aclose()


async def test_a_lock_that_another_process_holds_is_an_error_that_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "_BUSY_SECONDS", 0)
    path = tmp_path / "tasks.db"
    store = SQLiteTasks(path)
    await store.read(TaskKey(None, "x"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError) as refused:
            await store.create(new_task())
    assert refused.value.retry_after == 1
    await store.create(new_task())
    await store.aclose()


async def test_a_folder_that_is_missing_is_a_store_that_is_away(tmp_path: Path) -> None:
    store = SQLiteTasks(tmp_path / "missing" / "tasks.db")
    with pytest.raises(StoreUnavailableError):
        await store.read(TaskKey(None, "x"))
    await store.aclose()


async def test_a_record_that_another_version_wrote_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    store = SQLiteTasks(path)
    task = new_task()
    await store.create(task)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE funcmcp_tasks_3 SET state = '{\"v\":2}'")
    with pytest.raises(UnreadableTaskError):
        await store.read(task.key)
    assert list(await store.claim(1)) == []
    with pytest.raises(UnreadableTaskError):
        await store.cancel(task.key)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT state, due > 0 FROM funcmcp_tasks_3").fetchone() == ('{"v":2}', 1)
    await store.aclose()


async def test_a_record_that_can_not_be_read_gives_its_place_away_when_its_time_is_up(tmp_path: Path) -> None:
    path, clock = tmp_path / "tasks.db", Clock()
    store = SQLiteTasks(path, clock=clock)
    task = new_task(ttl=100, keep=0, fingerprint="digest")
    await store.create(task)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE funcmcp_tasks_3 SET state = '{\"v\":2}'")
    with pytest.raises(UnreadableTaskError):
        await store.create(task)
    clock.now += 101
    assert await store.read(task.key) is None
    assert list(await store.claim(1)) == []
    assert [record async for record in store.scan()] == []
    assert (await store.create(task)).status == "working"
    assert (await store.read(task.key)) is not None
    await store.aclose()


async def test_a_clock_that_steps_forward_beyond_the_time_of_a_task_removes_it(tmp_path: Path) -> None:
    clock = Clock()
    store = SQLiteTasks(tmp_path / "tasks.db", clock=clock)
    task = new_task(ttl=100, keep=50)
    await store.create(task)
    (claim,) = await store.claim(1)
    clock.now += 149
    assert await store.read(task.key) is not None
    clock.now += 1
    assert await store.read(task.key) is None
    assert await store.finish(claim, RESULT) is None
    await store.aclose()


async def test_a_task_of_this_process_starts_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db")
    store.first_pause = store.longest_pause = 2 * PATIENCE
    monkeypatch.setattr(any_store, "CLAIM_WAIT", 2 * PATIENCE)
    waiting = asyncio.ensure_future(store.claim(1))
    while not store._waiting:  # noqa: ASYNC110 - the store has no event for the beginning of a wait
        await asyncio.sleep(0.01)
    task = new_task()
    await store.create(task)
    async with asyncio.timeout(PATIENCE):
        (claim,) = await waiting
    assert claim.key == task.key
    await store.aclose()
