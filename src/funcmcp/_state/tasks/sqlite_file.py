"""A file of SQLite that many tasks of an event loop use at once.

How it works: one connection writes and another one reads, each in a thread of its own, so that a look never waits for
the disk. Writes that wait while another one is made become one transaction, each with a savepoint: the disk is
synchronised once for all of them, and none is reported before it is on the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")

_BUSY_SECONDS = 5.0
"""How long a write waits for those of other processes."""

_POLL_SECONDS = 0.01
"""Seconds between two attempts where SQLite does not wait itself."""

_BATCH = 100
"""Writes in a transaction."""


class _Write(NamedTuple):
    """A write that waits for its transaction."""

    work: Callable[[sqlite3.Connection], Any]
    done: Future[Any]


class SQLiteFile:
    """The two connections of one process.

    Args:
        path: The file. It is created if it does not exist.
        create: Creates the tables, unless they exist.

    Attributes:
        process: The process that has the connections; they can't be used after a fork.
    """

    def __init__(self, path: Path, create: Callable[[sqlite3.Connection], object]) -> None:
        self.process = os.getpid()
        self._path = path
        self._create = create
        self._waiting: deque[_Write] = deque()
        self._writes = ThreadPoolExecutor(1, thread_name_prefix="funcmcp-task-writes")
        self._reads = ThreadPoolExecutor(1, thread_name_prefix="funcmcp-task-reads")
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what *work* returns; it must not write. It sees every write that has returned."""
        return await asyncio.get_running_loop().run_in_executor(self._reads, self._read, work)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what *work* returns, in a transaction. If it raises, nothing of it is stored."""
        done: Future[T] = Future()
        self._waiting.append(_Write(work, done))
        self._writes.submit(self._write_all)
        return await asyncio.wrap_future(done)

    async def check_writable(self) -> None:
        """Write a page of the file again as it is; raise sqlite3.Error if no write is possible, as on a full disk."""
        await self.write(_write_version_again)

    async def aclose(self) -> None:
        """Close the connections, after what waits for them."""
        loop = asyncio.get_running_loop()
        for thread, connection in ((self._writes, "_writer"), (self._reads, "_reader")):
            await loop.run_in_executor(thread, self._close, connection)
            thread.shutdown(wait=False)

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._reader is None:
            self._reader = self._open()
        return work(self._reader)

    def _write_all(self) -> None:
        """Make the writes that wait; a later call finds nothing to do."""
        writes: list[_Write] = []
        while self._waiting and len(writes) < _BATCH:
            write = self._waiting.popleft()
            if write.done.set_running_or_notify_cancel():
                writes.append(write)
        if not writes:
            return
        try:
            reports = self._transaction(writes)
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            reports = [partial(write.done.set_exception, error) for write in writes]
        for report in reports:
            report()

    def _transaction(self, writes: list[_Write]) -> list[Callable[[], None]]:
        """Make writes in a transaction; return what reports the outcome of each."""
        if self._writer is None:
            self._writer = self._open()
        connection = self._writer
        connection.execute("BEGIN IMMEDIATE")
        try:
            reports = [_report(connection, write) for write in writes]
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite ends it itself after some errors
                connection.execute("ROLLBACK")
            raise
        return reports

    def _open(self) -> sqlite3.Connection:
        # SQLite would create a file that all users of the machine can read. Its other files get the same mode.
        # A file that exists is not opened: to close it would end the locks that this process has on it.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous = FULL")
            self._create(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _close(self, name: str) -> None:
        connection: sqlite3.Connection | None = getattr(self, name)
        if connection is not None:
            connection.close()
            setattr(self, name, None)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Give the file a write-ahead log. SQLite does not wait itself if another connection does the same."""
    deadline = monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # the other bits say with what
            if not is_busy or monotonic() > deadline:
                raise
            sleep(_POLL_SECONDS)
        else:
            return


def _write_version_again(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()  # an author's program may use it
    connection.execute(f"PRAGMA user_version = {int(version)}")


def _report(connection: sqlite3.Connection, write: _Write) -> Callable[[], None]:
    """Make one write of a transaction; return what reports its outcome."""
    connection.execute("SAVEPOINT task")
    try:
        result = write.work(connection)
    except Exception as error:
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO task")
        connection.execute("RELEASE task")
        return partial(write.done.set_exception, error)
    connection.execute("RELEASE task")
    return partial(write.done.set_result, result)
