"""Sign-ins and state in a SQLite file. They survive restarts; all processes of a machine share them."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, TypeVar

from funcmcp._objects.public_names import public
from funcmcp._state.key_values import SIGN_INS, STATE
from funcmcp._state.outage import Outage
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.sqlite_file import SQLiteFile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._state.key_values import Purpose

T = TypeVar("T")

_CREATE = """
CREATE TABLE IF NOT EXISTS {table} (
  key TEXT PRIMARY KEY, value TEXT NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS {table}_expires ON {table} (expires);
"""
_GET = "SELECT value FROM {table} WHERE key = ? AND expires > ?"
_TAKE = """
INSERT INTO {table} (key, value, expires) VALUES (:key, :value, :expires)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires
WHERE {table}.expires <= :now OR {table}.value = excluded.value
"""
_REPLACE = """
UPDATE {table} SET value = :new, expires = :expires
WHERE key = :key AND value IN (:old, :new) AND expires > :now
"""
_REMOVE_EXPIRED = """
DELETE FROM {table} WHERE key IN (SELECT key FROM {table} WHERE expires <= ? LIMIT 100)
"""
_REMOVE = "DELETE FROM {table} WHERE key = ?"


class SQLiteKeyValues:
    """Values in a file.

    Only the user of the process can read the file, and what is in it is encrypted.

    Args:
        path: The file. It must be on a local disk: SQLite's locks do not work on network shares.
        clock: Returns seconds since 1970.
    """

    shared: bool = True
    _purpose: Purpose

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time) -> None:
        self._path = Path(path)
        self._clock = clock
        self._file: SQLiteFile | None = None
        self._outage = Outage()

    async def get(self, key: str) -> str | None:
        """See `StateStore.get`."""
        statement, values = self._statement(_GET), (key, self._clock())
        reading = self._opened().read(lambda connection: connection.execute(statement, values).fetchone())
        row = await self._use(reading, is_write=False)
        return None if row is None else str(row[0])

    async def take(self, key: str, value: str, seconds: float) -> bool:
        """See `StateStore.take`."""
        now = self._clock()
        values = {"key": key, "value": value, "expires": now + seconds, "now": now}

        def write(connection: sqlite3.Connection) -> int:
            connection.execute(self._statement(_REMOVE_EXPIRED), (now,))
            return connection.execute(self._statement(_TAKE), values).rowcount

        return await self._use(self._opened().write(write), is_write=True) > 0

    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        """See `StateStore.replace`."""
        now = self._clock()
        values = {"key": key, "old": old, "new": new, "expires": now + seconds, "now": now}
        statement = self._statement(_REPLACE)
        writing = self._opened().write(lambda connection: connection.execute(statement, values).rowcount)
        return await self._use(writing, is_write=True) > 0

    async def remove(self, key: str) -> None:
        """See `StateStore.remove`."""
        statement = self._statement(_REMOVE)
        writing = self._opened().write(lambda connection: connection.execute(statement, (key,)).rowcount)
        await self._use(writing, is_write=True)

    async def aclose(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None and file.process == os.getpid():
            await file.aclose()

    async def check_writable(self) -> None:
        """Raise StoreUnavailableError unless the file can be written, for `/readyz`."""
        await self._use(self._opened().check_writable(), is_write=True)

    def _opened(self) -> SQLiteFile:
        if self._file is None or self._file.process != os.getpid():  # a server may have been made before a fork
            create = self._statement(_CREATE)
            self._file = SQLiteFile(self._path, lambda connection: connection.executescript(create))
        return self._file

    def _statement(self, template: str) -> str:
        return template.format(table=self._purpose.table)

    async def _use(self, result: Awaitable[T], *, is_write: bool) -> T:
        """Await a use of the file; raise StoreUnavailableError if SQLite fails."""
        try:
            value = await result
        except (sqlite3.Error, OSError) as error:
            self._outage.begin(
                "The %s %s can't be used (%s). Requests that need it are answered with 503.",
                self._purpose.store,
                self._path,
                error,
                is_write=is_write,
            )
            # A lock or a full disk is an OperationalError. Other errors last, such as a file that is not a database.
            retry_after = 1 if isinstance(error, sqlite3.OperationalError) else None
            raise StoreUnavailableError(retry_after, store=self._purpose.store) from error
        self._outage.end("The %s %s can be used again.", self._purpose.store, self._path, is_write=is_write)
        return value


@public("funcmcp.state")
class SQLiteSignIns(SQLiteKeyValues):
    """Sign-ins in a file.

    Only the user of the process can read the file, and what is in it is encrypted.

    Args:
        path: The file. It must be on a local disk: SQLite's locks do not work on network shares.
        clock: Returns seconds since 1970.
    """

    _purpose = SIGN_INS


@public("funcmcp.state")
class SQLiteState(SQLiteKeyValues):
    """The state of callers in a file. All processes of a machine share it, and it survives restarts.

    Only the user of the process can read the file, and what is in it is encrypted.

    Args:
        path: The file. It must be on a local disk: SQLite's locks do not work on network shares. It may be the file of
            `SQLiteSignIns`.
        clock: Returns seconds since 1970.
    """

    _purpose = STATE
