"""A file of SQLite that many tasks of an event loop use at once."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from funcmcp._state.tasks.sqlite_file import SQLiteFile
from tests.cli.processes import PYTHON, run_to_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.every_python("Python's own SQLite, dataclasses, JSON or character tables decide it.")


def create_table(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY)")


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SQLiteFile]:
    file = SQLiteFile(folder / "words.db", create_table)
    try:
        yield file
    finally:
        await file.aclose()


def add(word: str) -> Callable[[sqlite3.Connection], str]:
    def work(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO words VALUES (?)", (word,))
        return word

    return work


def words(connection: sqlite3.Connection) -> list[str]:
    return [word for (word,) in connection.execute("SELECT word FROM words ORDER BY word")]


async def blocked(file: SQLiteFile) -> tuple[threading.Event, asyncio.Future[None]]:
    """Begin a write that ends when the event is set; return the two."""
    begun, go = threading.Event(), threading.Event()

    def work(_connection: sqlite3.Connection) -> None:
        begun.set()
        go.wait()

    write = asyncio.ensure_future(file.write(work))
    await asyncio.get_running_loop().run_in_executor(None, begun.wait)
    return go, write


async def test_writes_that_wait_are_one_transaction_and_one_that_fails_spoils_no_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as file:
        statements: list[str] = []
        await file.write(lambda connection: connection.set_trace_callback(statements.append))
        go, write = await blocked(file)
        writes = [asyncio.ensure_future(file.write(add(word))) for word in ("a", "b", "a", "c")]
        await asyncio.sleep(0)  # so that all of them wait
        statements.clear()
        go.set()
        await write
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert [result for result in results if isinstance(result, str)] == ["a", "b", "c"]
        assert isinstance(results[2], sqlite3.IntegrityError)
        assert await file.read(words) == ["a", "b", "c"]
        assert statements.count("BEGIN IMMEDIATE") == 1
        assert statements.count("COMMIT") == 2, "that of the write before them, and one for all four"


async def test_a_write_that_raises_leaves_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as file:

        def work(connection: sqlite3.Connection) -> None:
            add("a")(connection)
            raise KeyError("b")

        with pytest.raises(KeyError, match="b"):
            await file.write(work)
        assert await file.read(words) == []
        assert await file.write(add("a")) == "a"


async def test_an_error_that_ends_the_transaction_is_that_of_all_its_writes(tmp_path: Path) -> None:
    async with opened(tmp_path) as file:
        go, write = await blocked(file)

        def end(connection: sqlite3.Connection) -> None:
            connection.execute("ROLLBACK")  # as SQLite does if the disk is full
            raise sqlite3.OperationalError("database or disk is full")

        writes = [asyncio.ensure_future(file.write(work)) for work in (add("a"), end, add("b"))]
        await asyncio.sleep(0)
        go.set()
        await write
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert [str(result) for result in results] == ["database or disk is full"] * 3
        assert await file.read(words) == []
        assert await file.write(add("c")) == "c"


async def test_a_lock_of_another_process_is_the_error_of_all_writes_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funcmcp._state.tasks.sqlite_file._BUSY_SECONDS", 0)
    async with opened(tmp_path) as file:
        await file.write(add("a"))
        other = sqlite3.connect(tmp_path / "words.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        results = await asyncio.gather(file.write(add("b")), file.write(add("c")), return_exceptions=True)
        assert [str(result) for result in results] == ["database is locked"] * 2
        assert await file.read(words) == ["a"], "reads do not wait for writes"
        other.close()
        assert await file.write(add("b")) == "b"


async def test_a_write_that_is_cancelled_before_it_begins_is_not_made(tmp_path: Path) -> None:
    async with opened(tmp_path) as file:
        go, write = await blocked(file)
        cancelled = asyncio.ensure_future(file.write(add("a")))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await asyncio.sleep(0)  # so that the thread knows it
        go.set()
        await write
        assert await file.read(words) == []


async def test_the_first_uses_of_a_new_file_may_come_at_the_same_time(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).mkdir()
        async with opened(tmp_path / str(number)) as file:
            found, added = await asyncio.gather(file.read(words), file.write(add("a")))
            assert found in ([], ["a"])
            assert added == "a"


async def test_a_file_that_can_not_be_opened_is_an_error_each_time(tmp_path: Path) -> None:
    file = SQLiteFile(tmp_path / "missing" / "words.db", create_table)
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            await file.write(add("a"))
        with pytest.raises(FileNotFoundError):
            await file.read(words)
    await file.aclose()


FULL_DISK = """
import asyncio, resource, sqlite3, sys
from pathlib import Path

from funcmcp._state.tasks.sqlite_file import SQLiteFile


async def main():
    path = Path(sys.argv[1])
    file = SQLiteFile(path, lambda connection: connection.execute("CREATE TABLE IF NOT EXISTS t (x)"))
    await file.check_writable()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{path}-wal").stat().st_size, hard))  # no file may grow
    try:
        await file.check_writable()
    except sqlite3.Error as error:
        print(type(error).__name__)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await file.check_writable()
    await file.aclose()


asyncio.run(main())
"""


def test_a_file_that_can_not_grow_is_not_writable_until_it_can(tmp_path: Path) -> None:
    ended = run_to_end([PYTHON, "-c", FULL_DISK, str(tmp_path / "file.db")])
    assert (ended.stdout, ended.stderr) == ("OperationalError\n", "")


async def test_the_version_of_an_authors_file_remains(tmp_path: Path) -> None:
    file = SQLiteFile(tmp_path / "file.db", lambda connection: connection.execute("PRAGMA user_version = 7"))
    await file.check_writable()
    assert await file.read(lambda connection: connection.execute("PRAGMA user_version").fetchone()) == (7,)
    await file.aclose()


async def test_instances_that_create_a_file_at_the_same_time_all_write_to_it(tmp_path: Path) -> None:
    """Each changes the mode of the journal, for which SQLite does not let them wait."""
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        async with AsyncExitStack() as stack:
            files = [await stack.enter_async_context(opened(folder)) for _ in range(6)]
            await asyncio.gather(*(file.write(add(str(number))) for number, file in enumerate(files)))
            assert await files[0].read(words) == [str(number) for number in range(6)]
