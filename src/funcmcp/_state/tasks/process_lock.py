"""A lock by which processes of one machine see that another one has ended, also if it was killed.

How it works: a process holds the lock of a SQLite file of its own, beside a database that the processes share. The
operating system ends the lock with the process. A child that was forked does not inherit it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from secrets import token_hex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class ProcessLock:
    """The lock of this process.

    Args:
        path: The shared database. The names of the files of locks begin with its name.

    Attributes:
        name: The name of the lock of this process; empty until it is held.
    """

    def __init__(self, path: Path) -> None:
        self.name = ""
        self._path = path
        self._process = 0
        self._connection: sqlite3.Connection | None = None

    def hold(self) -> None:
        """Lock the file of this process, unless that has been done."""
        if self._process == os.getpid():
            return
        name = token_hex(8)
        file = self._file_of(name)
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._connection = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
        _lock(self._connection)
        self.name = name
        self._process = os.getpid()

    def is_held(self, name: str) -> bool:
        """Return whether the process with the lock of this name lives; remove the file of one that has ended."""
        file = self._file_of(name)
        if not file.exists():
            return False
        connection = sqlite3.connect(file, timeout=0, isolation_level=None)
        try:
            _lock(connection)
        except sqlite3.OperationalError:
            return True
        finally:
            connection.close()
        file.unlink(missing_ok=True)
        return False

    def release(self) -> None:
        """End the lock of this process, and remove its file."""
        if self._connection is None or self._process != os.getpid():
            return
        self._connection.close()
        self._connection, self._process = None, 0
        with contextlib.suppress(OSError):
            self._file_of(self.name).unlink()

    def _file_of(self, name: str) -> Path:
        return self._path.with_name(f"{self._path.name}-worker-{name}")


def _lock(connection: sqlite3.Connection) -> None:
    """Lock the file of a connection, without a journal beside it; raise OperationalError if another one holds it."""
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("BEGIN EXCLUSIVE")
