"""The records of orchestrations and entities, in a SQLite file.

Changes that belong together are written before one `commit`, so that a process that ends leaves all of them or none.
One process at a time has the file: two would run each orchestration twice.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    RecordKind = Literal["instance", "entity"]


_VERSION = 1
"""The form of the records. A later version that older ones must not read gets another number."""


_BATCH = 100
"""How many records are in memory at once."""


class StoreError(Exception):
    """The file can't be used; the text says why and what to do."""


class Store:
    """Records by kind and id.

    Args:
        file: The SQLite file. It is created with its folder.
        on_error: Called with each StoreError of a method before it is raised.

    Raises:
        StoreError: Another process has the file, it can't be written, or a newer version has written it. All methods
            raise it if the file can't be read or written any more.
    """

    def __init__(self, file: Path, on_error: Callable[[StoreError], None] = lambda _: None) -> None:
        self._file = file
        self._on_error = on_error
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(file, timeout=0, isolation_level="EXCLUSIVE")
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The file {file} of Durable Functions can't be opened: {error}.") from error
        try:
            version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")  # a commit does not wait for the disk
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS records (kind TEXT, id TEXT, record TEXT, PRIMARY KEY (kind, id))"
            )
            self._connection.execute("DELETE FROM records WHERE kind = ''")  # takes the lock
            self._connection.execute(f"PRAGMA user_version = {max(version, _VERSION)}")
            self._connection.commit()
        except sqlite3.Error as error:
            self._connection.close()
            raise StoreError(
                f"The file {file} of Durable Functions can't be used: {error}. Stop the other process that serves this "
                "app, or choose another folder with --storage."
            ) from error
        if version > _VERSION:
            self._connection.close()
            raise StoreError(f"The file {file} of Durable Functions was written by a newer version. Update funcmcp.")

    def get(self, kind: RecordKind, record_id: str) -> dict[str, Any] | None:
        """Return a record, or None if there is none."""
        rows = self._execute("SELECT record FROM records WHERE kind = ? AND id = ?", kind, record_id)
        return json.loads(rows[0][0]) if rows else None

    def all(self, kind: RecordKind) -> Iterator[dict[str, Any]]:
        """Yield the records of a kind in the order of their ids."""
        last = ""
        while rows := self._execute(
            "SELECT id, record FROM records WHERE kind = ? AND id > ? ORDER BY id LIMIT ?", kind, last, _BATCH
        ):
            for last, text in rows:  # noqa: B007 - the next batch begins after it
                yield json.loads(text)

    def put(self, kind: RecordKind, record_id: str, record: dict[str, Any]) -> None:
        """Write a record; `commit` makes it last."""
        self._execute("REPLACE INTO records VALUES (?, ?, ?)", kind, record_id, json.dumps(record))

    def delete(self, kind: RecordKind, record_id: str) -> None:
        """Delete a record; `commit` makes it last."""
        self._execute("DELETE FROM records WHERE kind = ? AND id = ?", kind, record_id)

    def commit(self) -> None:
        """Make the changes last."""
        with self._errors():
            self._connection.commit()

    def rollback(self) -> None:
        """Drop what was not committed."""
        with self._errors():
            self._connection.rollback()

    def close(self) -> None:
        """Drop what was not committed, and close the file."""
        self._connection.close()

    def _execute(self, statement: str, *values: object) -> list[Any]:
        with self._errors():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise StoreError for an error of SQLite, and drop what was not committed."""
        try:
            yield
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            failure = StoreError(f"The file {self._file} of Durable Functions can't be used: {error}.")
            self._on_error(failure)
            raise failure from error
