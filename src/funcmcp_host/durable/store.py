"""The records of orchestrations and entities, in a SQLite file.

Changes that belong together are written before one `commit`, so that a process that ends leaves all of them or none.
One process at a time has the file: two would run each orchestration twice.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    RecordKind = Literal["instance", "entity"]


_VERSION = 1
"""The form of the records. A later version that older ones must not read gets another number."""


class StoreError(Exception):
    """The file can't be used; the text says why."""


class Store:
    """Records by kind and id.

    Args:
        file: The SQLite file. It is created with its folder.
        on_error: Called with each error of a method before it is raised.

    Raises:
        StoreError: Another process has the file, it can't be written, or a newer version has written it.
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
        """Return a record, or None if there is none; raise StoreError."""
        with self._named_errors():
            row = self._connection.execute(
                "SELECT record FROM records WHERE kind = ? AND id = ?", (kind, record_id)
            ).fetchone()
        return None if row is None else json.loads(row[0])

    def all(self, kind: RecordKind) -> Iterator[dict[str, Any]]:
        """Yield the records of a kind in the order of their ids; raise StoreError."""
        with self._named_errors():
            for (text,) in self._connection.execute("SELECT record FROM records WHERE kind = ? ORDER BY id", (kind,)):
                yield json.loads(text)

    def put(self, kind: RecordKind, record_id: str, record: dict[str, Any]) -> None:
        """Write a record; `commit` makes it last. Raise StoreError."""
        with self._named_errors():
            self._connection.execute("REPLACE INTO records VALUES (?, ?, ?)", (kind, record_id, json.dumps(record)))

    def delete(self, kind: RecordKind, record_id: str) -> None:
        """Delete a record; `commit` makes it last. Raise StoreError."""
        with self._named_errors():
            self._connection.execute("DELETE FROM records WHERE kind = ? AND id = ?", (kind, record_id))

    def commit(self) -> None:
        """Make the changes last; raise StoreError."""
        with self._named_errors():
            self._connection.commit()

    def close(self) -> None:
        """Drop what was not committed, and close the file."""
        self._connection.close()

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Raise StoreError for an error of SQLite, such as a full disk."""
        try:
            yield
        except sqlite3.Error as error:
            failure = StoreError(f"The file {self._file} of Durable Functions can't be used: {error}.")
            self._on_error(failure)
            raise failure from error
