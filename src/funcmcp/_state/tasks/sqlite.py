"""Tasks in a SQLite file. They survive a restart, and all processes of one machine share them.

How it works: a row is a task, and triggers keep the sums of the bytes of tasks: for each caller, and for all of a
server. So a write and its check of the limits of bytes are one transaction, whichever process writes. Writes that come
at the same time share a transaction (`sqlite_file`).

Leases do not depend on the clock of the machine, which may be set: they end at a time of `monotonic`, which all
processes of a machine have in common. A process that claims tasks locks a file of its own beside the database for as
long as it lives. The tasks of a process whose file is not locked any more are due at once; after a restart of the
machine that is so for all.
"""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._objects.public_names import public
from funcmcp._protocol.durations import seconds_until
from funcmcp._state.outage import Outage
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.any_store import BaseTasks, OwnedTasks, successor
from funcmcp._state.tasks.process_lock import ProcessLock
from funcmcp._state.tasks.record import Claim, TaskKey, changed_bytes, claimed, current, from_json, to_json
from funcmcp._state.tasks.sqlite_file import SQLiteFile
from funcmcp._state.tasks.store import Backlog, TasksFullError, UnreadableTask, UnreadableTaskError, position

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from funcmcp._state.tasks.any_store import Transition
    from funcmcp._state.tasks.record import NewTask, TaskRecord
    from funcmcp._state.tasks.store import TaskLimits
    from funcmcp._state.tasks.task_filter import TaskFilter

T = TypeVar("T")

_PASSING_ERRORS = (
    "SQLITE_BUSY", "SQLITE_FULL", "SQLITE_INTERRUPT", "SQLITE_IOERR", "SQLITE_LOCKED", "SQLITE_NOMEM", "SQLITE_PROTOCOL"
)  # fmt: skip
"""The beginnings of the names of SQLite's errors after which a later attempt may succeed."""

_REASONS = {
    "SQLITE_CORRUPT": "the file is damaged; restore it from a backup, or remove it",
    "SQLITE_NOTADB": "the file is not a database of SQLite; name another one, or remove it",
    "SQLITE_ERROR": "the tables in the file are not those of this version; name another file",
}
"""What is in the log besides the text of SQLite."""

_LIVENESS_INTERVAL = 1.0
"""Seconds between two looks for processes that have ended."""

_COUNT_INTERVAL = 1.0
"""Seconds between two counts of all tasks. In between a process counts its own new ones only."""

_SCAN_ROWS = 500
"""Rows that a scan of all tasks reads at once. Other uses of the file come between."""

_ANONYMOUS = ""
_UNKNOWN, _ALL = "", "*"
"""A payer that is not known, and the payer under which the bytes of all tasks are."""

_TABLES = """
CREATE TABLE IF NOT EXISTS funcmcp_tasks_3 (
  server TEXT NOT NULL, owner TEXT NOT NULL, id TEXT NOT NULL, position TEXT NOT NULL,
  state BLOB NOT NULL, call BLOB NOT NULL, outcome BLOB,
  due REAL, live_until REAL, removed REAL NOT NULL, payer TEXT NOT NULL, bytes INTEGER NOT NULL,
  holder TEXT, token TEXT, lease REAL,
  queue TEXT NOT NULL DEFAULT 'default', tool TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (server, owner, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS funcmcp_task_bytes_3 (
  server TEXT NOT NULL, payer TEXT NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY (server, payer)
) WITHOUT ROWID;
"""
_COLUMNS = {"queue": "queue TEXT NOT NULL DEFAULT 'default'", "tool": "tool TEXT NOT NULL DEFAULT ''"}
"""What the table of an earlier version lacks. Rows that such a version inserts have the default values."""

_INDEXES = """
CREATE TRIGGER IF NOT EXISTS funcmcp_tasks_3_created AFTER INSERT ON funcmcp_tasks_3 BEGIN
  INSERT INTO funcmcp_task_bytes_3 VALUES (new.server, new.payer, new.bytes), (new.server, '*', new.bytes)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER IF NOT EXISTS funcmcp_tasks_3_changed AFTER UPDATE OF bytes ON funcmcp_tasks_3 BEGIN
  UPDATE funcmcp_task_bytes_3 SET bytes = bytes + new.bytes - old.bytes
    WHERE server = new.server AND payer IN (new.payer, '*');
END;
CREATE TRIGGER IF NOT EXISTS funcmcp_tasks_3_removed AFTER DELETE ON funcmcp_tasks_3 BEGIN
  UPDATE funcmcp_task_bytes_3 SET bytes = bytes - old.bytes WHERE server = old.server AND payer IN (old.payer, '*');
  DELETE FROM funcmcp_task_bytes_3 WHERE server = old.server AND payer = old.payer AND bytes = 0;
END;
CREATE INDEX IF NOT EXISTS funcmcp_tasks_3_any ON funcmcp_tasks_3 (server, due, queue, tool) WHERE due IS NOT NULL;
CREATE INDEX IF NOT EXISTS funcmcp_tasks_3_queued ON funcmcp_tasks_3 (server, queue, due, tool) WHERE due IS NOT NULL;
CREATE INDEX IF NOT EXISTS funcmcp_tasks_3_lease ON funcmcp_tasks_3 (server, lease) WHERE lease IS NOT NULL;
CREATE INDEX IF NOT EXISTS funcmcp_tasks_3_holder ON funcmcp_tasks_3 (holder) WHERE holder IS NOT NULL;
CREATE INDEX IF NOT EXISTS funcmcp_tasks_3_removed ON funcmcp_tasks_3 (server, removed);
CREATE INDEX IF NOT EXISTS funcmcp_tasks_3_position ON funcmcp_tasks_3 (server, owner, position);
CREATE INDEX IF NOT EXISTS funcmcp_tasks_3_owner ON funcmcp_tasks_3 (server, owner, removed, live_until);
CREATE INDEX IF NOT EXISTS funcmcp_tasks_3_payer ON funcmcp_tasks_3 (server, payer, removed);
"""
_SELECT = """
SELECT CAST(state AS BLOB), CAST(outcome AS BLOB), removed FROM funcmcp_tasks_3
WHERE server = ? AND owner = ? AND id = ?
"""
_CALL = "SELECT CAST(call AS BLOB) FROM funcmcp_tasks_3 WHERE server = ? AND owner = ? AND id = ?"
_DUE = """
SELECT * FROM (
  SELECT owner, id, queue, tool, {moment} AS moment, {order} AS kind FROM funcmcp_tasks_3
  WHERE server = :server AND {moment} <= {now}{queue}{tools} ORDER BY {moment} LIMIT :count
)
"""
"""Tasks of one queue, or of all, that are due or whose leases have ended. An index has all that is read of them."""

_BACKLOG = """
SELECT count(*), max(age) FROM (
  SELECT :uptime - nullif(lease, 0) AS age FROM funcmcp_tasks_3 WHERE server = :server AND lease <= :uptime
  UNION ALL
  SELECT :now - due FROM funcmcp_tasks_3 WHERE server = :server AND due <= :now
)
"""
_DELAY = """
UPDATE funcmcp_tasks_3 SET due = CASE WHEN lease IS NULL THEN ? END, lease = CASE WHEN lease IS NOT NULL THEN ? END
WHERE server = ? AND owner = ? AND id = ?
"""
_RENEW = """
UPDATE funcmcp_tasks_3 SET lease = ? WHERE server = ? AND owner = ? AND id = ? AND token = ? AND live_until > ?
"""
_BYTES = "SELECT bytes FROM funcmcp_task_bytes_3 WHERE server = ? AND payer = ?"
_UPDATE = """
UPDATE funcmcp_tasks_3 SET state = :state, outcome = :outcome, due = :due, live_until = :live_until,
  removed = :removed, bytes = :bytes, call = CASE WHEN :keeps_call THEN call ELSE x'' END,
  holder = CASE WHEN token = :token THEN holder ELSE :holder END,
  lease = CASE WHEN token = :token THEN lease ELSE :lease END,
  token = :token
WHERE server = :server AND owner = :owner AND id = :id
"""


@public("funcmcp.tasks")
class SQLiteTasks(BaseTasks):
    """Tasks that live in a file.

    A task is on the disk before the client learns of it: each write is synchronised (``synchronous=FULL``).

    Args:
        path: The file. It must be on a local disk: SQLite's locks do not work on network shares.
        limits: How much is kept.
        concurrency: Tasks that this process runs at once; 0 if it only creates them.
        lease: Seconds after which another process may take a task whose process does not answer any more.
        clock: Returns seconds since 1970.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        limits: TaskLimits | None = None,
        concurrency: int = 10,
        lease: float = 30.0,
        clock: Callable[[], float] = time,
    ) -> None:
        super().__init__(limits=limits, concurrency=concurrency, lease=lease, clock=clock)
        self._path = Path(path)
        self._file: SQLiteFile | None = None
        self._outage = Outage()
        self._reported: set[str] = set()
        self._liveness_at = 0.0
        self._lock = ProcessLock(self._path)
        self._count = 0
        self._count_until = 0.0

    async def _load(self, key: TaskKey) -> TaskRecord | None:
        return await self._read(lambda connection: self._select(connection, key))

    async def _load_call(self, key: TaskKey) -> bytes | None:
        row = await self._read(lambda connection: connection.execute(_CALL, self._row(key)).fetchone())
        return None if row is None else bytes(row[0])

    async def _page(self, owner: str, after: str | None, size: int) -> Sequence[TaskRecord]:
        query = (
            "SELECT id, CAST(state AS BLOB), CAST(outcome AS BLOB) FROM funcmcp_tasks_3"
            " WHERE server = ? AND owner = ? AND position > ? AND removed > ? ORDER BY position LIMIT ?"
        )
        values = (self._server, owner, after or "", self._clock(), size)
        rows = await self._read(lambda connection: connection.execute(query, values).fetchall())
        records = [from_json(TaskKey(owner, task_id), state, outcome) for task_id, state, outcome in rows]
        return self._readable(records)

    async def renew(self, claim: Claim) -> bool:
        """Extend the lease of a claim. False: the task is over, or another worker has it."""
        values = (monotonic() + self.lease, *self._row(claim.key), claim.token, self._clock())
        return await self._write(lambda connection: connection.execute(_RENEW, values).rowcount > 0)

    async def _scan(self) -> AsyncIterator[TaskRecord | UnreadableTask]:
        query = (
            "SELECT owner, id, CAST(state AS BLOB), CAST(outcome AS BLOB) FROM funcmcp_tasks_3"
            " WHERE server = ? AND (owner, id) > (?, ?) AND removed > ? ORDER BY owner, id LIMIT ?"
        )
        rows: list[tuple[str, str, bytes, bytes | None]] = [("", "", b"", None)]
        while rows:
            values = (self._server, *rows[-1][:2], self._clock(), _SCAN_ROWS)
            rows = await self._read(partial(_rows, query=query, values=values))
            for owner, task_id, state, outcome in rows:
                key = TaskKey(owner or None, task_id)
                yield from_json(key, state, outcome) or UnreadableTask(key, over=outcome is not None)

    async def backlog(self) -> Backlog:
        """Return how many tasks wait for a worker; see `TaskStore.backlog`."""
        values = {"server": self._server, "now": self._clock(), "uptime": monotonic()}
        waiting, oldest = await self._read(lambda connection: connection.execute(_BACKLOG, values).fetchone())
        return Backlog(waiting, max(0.0, oldest or 0.0))

    async def aclose(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None and file.process == os.getpid():
            await file.aclose()
            self._lock.release()

    async def check_writable(self) -> None:
        """Raise StoreUnavailableError unless the file can be written, for `/readyz`."""
        await self._use(self._opened().check_writable(), is_write=True)

    async def _change(self, key: TaskKey, transition: Transition) -> TaskRecord | None:
        changed = await self._write(lambda connection: self._apply(connection, key, transition))
        if changed is not None:
            self._changed(changed)
        return changed

    async def _delete(self, keys: Sequence[TaskKey]) -> None:
        rows = [self._row(key) for key in keys]
        query = "DELETE FROM funcmcp_tasks_3 WHERE server = ? AND owner = ? AND id = ?"
        await self._write(lambda connection: connection.executemany(query, rows))

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._use(self._opened().read(work), is_write=False)

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._use(self._opened().write(work), is_write=True)

    def _opened(self) -> SQLiteFile:
        if self._file is None or self._file.process != os.getpid():  # a server may have been made before a fork
            self._file = SQLiteFile(self._path, _create_tables)
        return self._file

    async def _use(self, result: Awaitable[T], *, is_write: bool) -> T:
        """Await a use of the file; raise StoreUnavailableError if SQLite fails."""
        try:
            value = await result
        except (sqlite3.Error, OSError) as error:
            raise self._unavailable(error, is_write=is_write) from error
        self._outage.end("The task store %s can be used again.", self._path, is_write=is_write)
        return value

    def _unavailable(self, error: sqlite3.Error | OSError, *, is_write: bool) -> StoreUnavailableError:
        """Return the error for requests that need the store, and log the first of several."""
        name = getattr(error, "sqlite_errorname", "")
        reason = str(error.strerror if isinstance(error, OSError) else error)
        if name in _REASONS:
            reason = f"{reason}: {_REASONS[name]}"
        if name not in _REASONS or reason not in self._reported:  # parts of a damaged file can be read meanwhile
            self._reported.add(reason)
            self._outage.begin(
                "The task store %s can't be used (%s). Requests that need it are answered with 503.",
                self._path,
                reason,
                is_write=is_write,
            )
        retry_after = 1 if name.startswith(_PASSING_ERRORS) else None
        nothing_written = not name.startswith("SQLITE_IOERR")  # SQLite undoes a transaction that fails otherwise
        return StoreUnavailableError(retry_after, store="task store", nothing_written=nothing_written)

    async def _insert(self, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        return await self._write(lambda connection: self._insert_row(connection, record, task, size))

    def _insert_row(self, connection: sqlite3.Connection, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        now = self._clock()
        existing = self._select(connection, task.key)
        if existing is not None and now < existing.removed:
            return existing
        if existing is not None or task.fingerprint:  # a row with this key may be there, and its time is up
            self._remove_old(connection, now)
        self._check_room(connection, task.key.owner, now)
        payer = task.payer or _UNKNOWN
        self._check_bytes(connection, payer, size, now)
        connection.execute(
            "INSERT INTO funcmcp_tasks_3"
            " (server, owner, id, position, state, call, due, live_until, removed, payer, bytes, queue, tool)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *self._row(task.key),
                position(record),
                to_json(record),
                task.call,
                record.due,
                record.expires,
                record.removed,
                payer,
                size,
                record.queue,
                record.tool,
            ),
        )
        self._count += 1
        return record

    def _check_room(self, connection: sqlite3.Connection, owner: str | None, now: float) -> None:
        """Remove old tasks from time to time; raise TasksFullError if there is no room for one more of an owner."""
        limits = self.limits
        if monotonic() >= self._count_until or self._count >= limits.total:
            self._remove_old(connection, now)
            query = "SELECT count(*), min(removed) FROM funcmcp_tasks_3 WHERE server = ?"
            self._count, first = connection.execute(query, (self._server,)).fetchone()
            self._count_until = monotonic() + _COUNT_INTERVAL
            if self._count >= limits.total:
                raise TasksFullError(seconds_until(first, now))
        if owner is None:
            return
        query = (
            "SELECT count(*), ifnull(min(removed), 0), count(live_until), ifnull(min(live_until), 0) FROM"
            " (SELECT removed, CASE WHEN live_until > ? THEN live_until END AS live_until FROM funcmcp_tasks_3"
            " WHERE server = ? AND owner = ? AND removed > ?)"
        )
        row = connection.execute(query, (now, self._server, owner, now)).fetchone()
        self._check_owned(OwnedTasks(*row), now)

    def _remove_old(self, connection: sqlite3.Connection, now: float) -> None:
        connection.execute("DELETE FROM funcmcp_tasks_3 WHERE server = ? AND removed <= ?", (self._server, now))

    def _check_bytes(self, connection: sqlite3.Connection, payer: str, growth: int, now: float) -> None:
        """Raise TasksFullError if there is no room for more bytes of a payer."""
        shares = {_ALL: self.limits.total_bytes}
        if payer != _UNKNOWN:
            shares = {payer: self.limits.bytes_per_principal, **shares}
        for name, share in shares.items():
            if self._bytes(connection, name) + growth <= share:
                continue
            self._remove_old(connection, now)
            if self._bytes(connection, name) + growth <= share:
                continue
            query = "SELECT min(removed) FROM funcmcp_tasks_3 WHERE server = ?"
            values = [self._server]
            if name != _ALL:
                query += " AND payer = ?"
                values.append(name)
            first = connection.execute(query, values).fetchone()[0] or now
            raise TasksFullError(seconds_until(first, now), is_owner_limit=name != _ALL, of_bytes=True)

    def _bytes(self, connection: sqlite3.Connection, payer: str) -> int:
        row = connection.execute(_BYTES, (self._server, payer)).fetchone()
        return 0 if row is None else int(row[0])

    async def _claim_due(self, count: int, only: TaskFilter) -> list[Claim]:
        ended = await self._read(self._ended_holders)
        # Without a lock: most looks find nothing.
        if not ended and not await self._read(lambda connection: self._due_rows(connection, 1, only)):
            return []
        return await self._write(lambda connection: self._claim_rows(connection, count, only, ended))

    def _ended_holders(self, connection: sqlite3.Connection) -> list[str]:
        """Return the processes with claims that have ended, if it is time to look for them."""
        if monotonic() < self._liveness_at:
            return []
        self._liveness_at = monotonic() + _LIVENESS_INTERVAL
        query = "SELECT DISTINCT holder FROM funcmcp_tasks_3 WHERE holder IS NOT NULL"
        holders = [holder for (holder,) in connection.execute(query)]
        return [holder for holder in holders if not self._lock.is_held(holder)]

    def _due_rows(
        self, connection: sqlite3.Connection, count: int, only: TaskFilter, claims: Sequence[Claim] = ()
    ) -> list[Any]:
        """Return owner, id, queue and tool of tasks that a worker can run in addition to its claims."""
        if only.queues is not None and not only.queues:
            return []
        values = {"server": self._server, "now": self._clock(), "uptime": monotonic(), "count": count}
        tools = {f"tool{index}": tool for index, tool in enumerate(only.full_tools(claims))}
        without_tools = f" AND tool NOT IN ({', '.join(f':{name}' for name in tools)})" if tools else ""
        queues = {f"queue{index}": queue for index, queue in enumerate(sorted(only.queues or ()))}
        in_queues = [f" AND queue = :{name}" for name in queues]
        if only.queues is None:
            in_queues = [""]
        parts = [
            _DUE.format(moment=moment, now=now, order=order, queue=queue, tools=without_tools)
            for order, (moment, now) in enumerate([("lease", ":uptime"), ("due", ":now")])
            for queue in in_queues
        ]
        query = f"{' UNION ALL '.join(parts)} ORDER BY kind, moment LIMIT :count"
        return [row[:4] for row in connection.execute(query, {**values, **tools, **queues})]

    def _claim_rows(
        self, connection: sqlite3.Connection, count: int, only: TaskFilter, ended: Sequence[str]
    ) -> list[Claim]:
        """Claim tasks that are due, after the leases of processes that have ended."""
        self._lock.hold()
        for holder in ended:
            connection.execute("UPDATE funcmcp_tasks_3 SET lease = 0 WHERE holder = ?", (holder,))
        claims: list[Claim] = []
        has_more = True
        while has_more and len(claims) < count:
            has_more = False
            for owner, task_id, queue, tool in self._due_rows(connection, count - len(claims), only, claims):
                if not only.accepts(queue, tool, claims):  # the tasks before it have taken the places of its tool
                    has_more = True
                    continue
                claim = self._claim_row(connection, TaskKey(owner or None, task_id))
                if claim is not None:
                    claims.append(claim)
        return claims

    def _claim_row(self, connection: sqlite3.Connection, key: TaskKey) -> Claim | None:
        now = self._clock()
        try:
            stored = self._select(connection, key)
        except UnreadableTaskError:  # it is for workers of the newer version
            connection.execute(_DELAY, (now + self.lease, monotonic() + self.lease, *self._row(key)))
            return None
        record = None if stored is None else current(stored, now)
        if stored is None or record is None:  # removed
            connection.execute(_DELAY, (None, None, *self._row(key)))
            return None
        (call,) = connection.execute(_CALL, self._row(key)).fetchone()
        changed = claimed(record, max(now, record.due or now), 0.0)
        self._update(connection, stored, changed or record, now)
        return None if changed is None else Claim(changed, call, now)

    def _apply(self, connection: sqlite3.Connection, key: TaskKey, transition: Transition) -> TaskRecord | None:
        now = self._clock()
        stored = self._select(connection, key)
        changed = successor(stored, now, transition)
        if stored is not None and changed is not None:
            self._update(connection, stored, changed, now)
        return changed

    def _select(self, connection: sqlite3.Connection, key: TaskKey) -> TaskRecord | None:
        """Return a record; raise UnreadableTaskError if this version can't read it."""
        row = connection.execute(_SELECT, self._row(key)).fetchone()
        if row is None:
            return None
        state, outcome, removed = row
        record = from_json(key, state, outcome)
        if record is None and self._clock() < removed:
            raise self._unreadable()
        return record

    def _update(self, connection: sqlite3.Connection, stored: TaskRecord, record: TaskRecord, now: float) -> None:
        """Replace the record of a task; raise TasksFullError if it grows and there is no room."""
        query = "SELECT payer, bytes FROM funcmcp_tasks_3 WHERE server = ? AND owner = ? AND id = ?"
        payer, size = connection.execute(query, self._row(record.key)).fetchone()
        changed = changed_bytes(size, stored, record)
        if changed > size:
            self._check_bytes(connection, payer, changed - size, now)
        outcome = record.outcome
        server, owner, task_id = self._row(record.key)
        values = {
            "server": server,
            "owner": owner,
            "id": task_id,
            "state": to_json(record),
            "outcome": None if outcome is None else outcome.text,
            "due": None if record.claimed else record.due,
            "live_until": None if record.over else record.expires,
            "removed": record.removed,
            "bytes": changed,
            "keeps_call": record.keeps_call,
            "holder": None,
            "token": None,
            "lease": None,
        }
        if record.claimed:
            values.update(holder=self._lock.name, token=record.token, lease=monotonic() + self.lease)
        connection.execute(_UPDATE, values)

    def _row(self, key: TaskKey) -> tuple[str, str, str]:
        return self._server, _ANONYMOUS if key.owner is None else key.owner, key.task_id


def _rows(connection: sqlite3.Connection, *, query: str, values: Sequence[object]) -> list[Any]:
    return connection.execute(query, values).fetchall()


def _create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables, unless they exist, and add what those of an earlier version lack."""
    connection.executescript(_TABLES)
    if not _missing_columns(connection):
        connection.executescript(_INDEXES)
        return
    connection.execute("BEGIN IMMEDIATE")  # another process may be about to do the same
    try:
        for declaration in _missing_columns(connection):
            connection.execute(f"ALTER TABLE funcmcp_tasks_3 ADD COLUMN {declaration}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.executescript(_INDEXES)


def _missing_columns(connection: sqlite3.Connection) -> list[str]:
    """Return the declarations of missing columns; none for a table that is not one of tasks."""
    names = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info('funcmcp_tasks_3')")}
    if "server" not in names:
        return []
    return [declaration for name, declaration in _COLUMNS.items() if name not in names]
