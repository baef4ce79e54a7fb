"""The store of tasks in a SQLite file."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks import any_store
from funcmcp._state.tasks.record import TaskKey
from funcmcp._state.tasks.sqlite import SQLiteTasks
from tests.state.tasks.contract import TaskStoreContract, new_task
from tests.state.tasks.machine import TaskStoreMachine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._state.tasks.store import TaskStore
    from tests.clock import Clock


class TestSQLiteTasks(TaskStoreContract):
    @pytest.fixture
    async def store(self, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TaskStore]:
        monkeypatch.setattr(any_store, "CLAIM_WAIT", 0.1)
        self.clock = clock
        self.path = tmp_path / "tasks.db"
        self.made: list[SQLiteTasks] = []
        yield await self.make(SQLiteTasks(self.path))
        for store in self.made:
            await store.aclose()

    async def make(self, store: TaskStore, **options: Any) -> TaskStore:
        made = SQLiteTasks(self.path, clock=self.clock, **options)
        self.made.append(made)
        return made

    async def wait(self, seconds: float) -> None:
        self.clock.now += seconds


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
    (claim,) = await store.claim(2)
    assert claim.key == TaskKey(None, "second")
    assert (await store.claim(1)) == []
    first = await store.read(TaskKey(None, "first"))
    assert first is not None
    assert (first.status, first.claimed) == ("working", True)
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


async def test_a_file_that_is_no_database_is_a_store_that_is_away(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    path.write_bytes(b"no database" * 100)
    store = SQLiteTasks(path)
    with pytest.raises(StoreUnavailableError):
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
        connection.execute("UPDATE funcmcp_tasks_2 SET state = '{\"v\":2}'")
    assert await store.read(task.key) is None
    assert list(await store.claim(1)) == []
    assert await store.cancel(task.key) is None
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT state, due > 0 FROM funcmcp_tasks_2").fetchone() == ('{"v":2}', 1)
    await store.aclose()


async def test_a_task_of_this_process_starts_at_once(tmp_path: Path) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db")
    await store.read(TaskKey(None, "x"))
    waiting = asyncio.ensure_future(store.claim(1))
    await asyncio.sleep(0.3)
    task = new_task()
    created = monotonic()
    await store.create(task)
    (claim,) = await waiting
    assert (claim.key, monotonic() - created < 0.15) == (task.key, True)
    await store.aclose()
