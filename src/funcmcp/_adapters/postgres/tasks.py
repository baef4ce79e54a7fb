"""Tasks in a table of PostgreSQL, which the workers of all machines share.

How it works: a row is a task. A write locks its row, applies the transition in Python, and stores the successor with a
random token of the writer (`version`); that takes two round trips. If the reply to a write is lost, the link ends the
first attempt and makes another one, which sees by the token whether the first was committed. A worker claims rows that
are due and that no other worker has locked (SKIP LOCKED), several in one transaction.

`due` is when a worker may take a task: when it became due, or when the lease of its claim ends, by the clock of the
server. A renewal moves it, without a new record. A process that claims tasks holds an advisory lock (`Presence`), whose
number is the `holder` of its tasks. Other processes see in `pg_locks` that a process has ended, and its tasks are due.
They wait for a moment before, in which a process that has only lost its connection gets its lock again.

A transaction that makes a task due notifies the workers (NOTIFY). They look for tasks several times a second as well.

The bytes and numbers of a caller's tasks are counted when a task is created or grows, while the transaction holds a
lock for this caller. All tasks of a server are counted once a second at most.

Needs ``pip install "funcmcp[postgres]"`` and PostgreSQL 14 or newer. The URL must name the server itself, or a pooler
that gives each client a connection of its own: with others, locks and NOTIFY do not work. While PostgreSQL can't be
reached, every method raises StoreUnavailableError in a bounded time.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from hashlib import sha256
from secrets import token_hex
from time import monotonic, time
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._adapters.postgres.link import PostgresLink
from funcmcp._adapters.postgres.presence import LOCKS, Presence
from funcmcp._objects.public_names import public
from funcmcp._protocol.durations import seconds_until
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.any_store import BaseTasks, OwnedTasks, successor
from funcmcp._state.tasks.record import Claim, TaskKey, changed_bytes, claimed, current, from_json, to_json
from funcmcp._state.tasks.store import Backlog, TasksFullError, UnreadableTask, position

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from funcmcp._adapters.postgres.link import Connection
    from funcmcp._state.tasks.any_store import Transition
    from funcmcp._state.tasks.record import NewTask, TaskRecord
    from funcmcp._state.tasks.store import TaskLimits
    from funcmcp._state.tasks.task_filter import TaskFilter

_COUNT_INTERVAL = 1.0
"""Seconds between two counts of all tasks. In between a process counts its own new ones only."""

_ABSENCE = 0.7
"""Seconds for which the lock of a process has to be missing until its tasks are due."""

_CALM = 3.0
"""Seconds after a restart of PostgreSQL, or a lost connection, in which no process counts as ended."""

_SCAN_ROWS = 500
"""Rows that a scan of all tasks reads at once."""

_ANONYMOUS = ""
_CALLERS = LOCKS + 1
"""The first key of the locks of callers."""

_TABLE = """
CREATE TABLE IF NOT EXISTS funcmcp_tasks_1 (
  server text NOT NULL, owner text NOT NULL, id text NOT NULL, position text COLLATE "C" NOT NULL,
  version text NOT NULL, state bytea NOT NULL, call bytea NOT NULL, outcome bytea,
  due double precision, live_until double precision, removed double precision NOT NULL,
  payer text, bytes bigint NOT NULL, holder integer, token text,
  PRIMARY KEY (server, owner, id)
);
"""
_COLUMNS = """
ALTER TABLE funcmcp_tasks_1 ADD COLUMN IF NOT EXISTS queue text NOT NULL DEFAULT 'default';
ALTER TABLE funcmcp_tasks_1 ADD COLUMN IF NOT EXISTS tool text NOT NULL DEFAULT '';
"""
"""What the table of an earlier version lacks. Rows that such a version inserts have the default values."""

_INDEXES = """
CREATE INDEX IF NOT EXISTS funcmcp_tasks_1_due ON funcmcp_tasks_1 (server, due) WHERE due IS NOT NULL;
CREATE INDEX IF NOT EXISTS funcmcp_tasks_1_queue ON funcmcp_tasks_1 (server, queue, due) WHERE due IS NOT NULL;
CREATE INDEX IF NOT EXISTS funcmcp_tasks_1_holder ON funcmcp_tasks_1 (holder) WHERE holder IS NOT NULL;
CREATE INDEX IF NOT EXISTS funcmcp_tasks_1_removed ON funcmcp_tasks_1 (server, removed);
CREATE INDEX IF NOT EXISTS funcmcp_tasks_1_position ON funcmcp_tasks_1 (server, owner, position);
CREATE INDEX IF NOT EXISTS funcmcp_tasks_1_payer ON funcmcp_tasks_1 (server, payer, removed) INCLUDE (bytes);
"""
_CLOCK = "extract(epoch FROM clock_timestamp())::double precision"
_NOW = "extract(epoch FROM statement_timestamp())::double precision"
_OF_TASK = "server = %(server)s AND owner = %(owner)s AND id = %(id)s"
_IS_DUE = f"server = %(server)s AND due <= {_NOW} AND tool <> ALL(%(full_tools)s)"
_SELECT = f"""
SELECT {_CLOCK}, version, state, outcome, call, payer, bytes, removed FROM funcmcp_tasks_1 WHERE {_OF_TASK}
"""
_INSERT = """
INSERT INTO funcmcp_tasks_1
  (server, owner, id, position, version, state, call, due, live_until, removed, payer, bytes, queue, tool)
VALUES
  (%(server)s, %(owner)s, %(id)s, %(position)s, '', %(state)s, %(call)s, %(due)s, %(live_until)s, %(removed)s,
   %(payer)s, %(bytes)s, %(queue)s, %(tool)s)
ON CONFLICT DO NOTHING RETURNING pg_notify(%(channel)s, '')
"""
_UPDATE = f"""
UPDATE funcmcp_tasks_1 SET version = %(version)s, state = %(state)s, outcome = %(outcome)s,
  due = CASE WHEN token = %(token)s THEN due ELSE %(due)s END,
  holder = CASE WHEN token = %(token)s THEN holder ELSE %(holder)s END,
  token = %(token)s, live_until = %(live_until)s, removed = %(removed)s, bytes = %(bytes)s,
  call = CASE WHEN %(keeps_call)s THEN call ELSE ''::bytea END
WHERE {_OF_TASK}
"""
_RENEW = f"""
UPDATE funcmcp_tasks_1 SET due = {_NOW} + %(lease)s
WHERE {_OF_TASK} AND token = %(token)s AND live_until > {_NOW}
"""
_LOOK = f"""
SELECT {_CLOCK}, {_NOW} - extract(epoch FROM pg_postmaster_start_time())::double precision,
  EXISTS (SELECT FROM funcmcp_tasks_1 WHERE {_IS_DUE} AND (%(any_queue)s OR queue = ANY(%(queues)s))),
  ARRAY (
    SELECT DISTINCT holder FROM funcmcp_tasks_1 WHERE server = %(server)s AND holder <> %(holder)s EXCEPT
    SELECT objid::bigint::integer FROM pg_locks WHERE locktype = 'advisory' AND classid = %(locks)s AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  )
"""
_END_LEASES = "UPDATE funcmcp_tasks_1 SET due = 0, holder = NULL WHERE server = %(server)s AND holder = %(holder)s"
_CLAIMABLE_COLUMNS = f"due, queue, tool, owner, id, {_CLOCK}, version, state, outcome, call, payer, bytes, removed"
_CLAIMABLE = f"""
SELECT {_CLAIMABLE_COLUMNS} FROM funcmcp_tasks_1
WHERE {_IS_DUE} ORDER BY due LIMIT %(count)s FOR UPDATE SKIP LOCKED
"""
_CLAIMABLE_IN_QUEUES = f"""
SELECT claimable.* FROM unnest(%(queues)s::text[]) AS served (name), LATERAL (
  SELECT {_CLAIMABLE_COLUMNS} FROM funcmcp_tasks_1
  WHERE {_IS_DUE} AND queue = served.name ORDER BY due LIMIT %(count)s FOR UPDATE SKIP LOCKED
) AS claimable ORDER BY due LIMIT %(count)s
"""
_CLAIMED = f"""
SELECT owner, id, {_CLOCK}, version, state, outcome, call, payer, bytes, removed FROM funcmcp_tasks_1
WHERE server = %(server)s AND holder = %(holder)s AND version = %(version)s AND token IS NOT NULL
"""
_BACKLOG = f"""
SELECT count(*), greatest({_NOW} - min(due) FILTER (WHERE due > 0), 0) FROM funcmcp_tasks_1
WHERE server = %(server)s AND due <= {_NOW}
"""
_DELAY = f"UPDATE funcmcp_tasks_1 SET due = %(due)s WHERE {_OF_TASK}"
_DELETE = """
DELETE FROM funcmcp_tasks_1
WHERE server = %(server)s AND (owner, id) IN (SELECT * FROM unnest(%(owners)s::text[], %(ids)s::text[]))
"""
_REMOVE_OLD = f"DELETE FROM funcmcp_tasks_1 WHERE server = %(server)s AND removed <= {_NOW}"
_COUNT_ALL = (
    "SELECT count(*), coalesce(sum(bytes), 0)::bigint, min(removed) FROM funcmcp_tasks_1 WHERE server = %(server)s"
)
_COUNT_OWNED = f"""
SELECT count(*), coalesce(min(removed), 0), count(*) FILTER (WHERE live_until > {_NOW}),
  coalesce(min(live_until) FILTER (WHERE live_until > {_NOW}), 0)
FROM funcmcp_tasks_1 WHERE server = %(server)s AND owner = %(owner)s AND removed > {_NOW}
"""
_COUNT_PAYER = f"""
SELECT coalesce(sum(bytes), 0)::bigint, min(removed) FROM funcmcp_tasks_1
WHERE server = %(server)s AND payer = %(payer)s AND removed > {_NOW}
"""
_PAGE = f"""
SELECT id, state, outcome FROM funcmcp_tasks_1
WHERE server = %(server)s AND owner = %(owner)s AND position > %(after)s AND removed > {_NOW}
ORDER BY position LIMIT %(size)s
"""
_SCAN = f"""
SELECT owner, id, state, outcome FROM funcmcp_tasks_1
WHERE server = %(server)s AND (owner, id) > (%(owner)s, %(id)s) AND removed > {_NOW} ORDER BY owner, id LIMIT %(rows)s
"""


class _Row(NamedTuple):
    """A task as PostgreSQL has it.

    Attributes:
        now: The time of the server.
        version: The token of its last writer.
        record: None if this version can't read it.
        call: See `NewTask`.
        payer: See `NewTask`.
        bytes: That count for the payer.
        removed: When the task may be removed.
    """

    now: float
    version: str
    record: TaskRecord | None
    call: bytes
    payer: str | None
    bytes: int
    removed: float

    @property
    def is_unreadable(self) -> bool:
        """Whether the task exists, and this version can't read it."""
        return self.record is None and self.now < self.removed


@public("funcmcp.tasks")
class PostgresTasks(BaseTasks):
    """Tasks that live in PostgreSQL.

    Servers with the same name and database share their tasks; servers with other names never see them. The table
    `funcmcp_tasks_1` is created if it does not exist.

    Args:
        url: A URL, such as ``postgresql://user:password@host/database``, or a connection string of libpq.
        limits: How much is kept.
        concurrency: Tasks that this process runs at once; 0 if it only creates them.
        lease: Seconds after which another worker may take a task whose worker does not answer any more. If PostgreSQL
            sees that a process has ended, that takes two seconds at most.
        timeout: Seconds that one step may take.
    """

    first_pause: float = 0.4
    longest_pause: float = 0.4

    def __init__(
        self,
        url: str,
        *,
        limits: TaskLimits | None = None,
        concurrency: int = 10,
        lease: float = 15.0,
        timeout: float = 3.0,
    ) -> None:
        super().__init__(limits=limits, concurrency=concurrency, lease=lease, clock=self._server_time)
        self._link = PostgresLink(url, timeout=timeout, prepare=_create_tables)
        self._presence = Presence(self._link, self._notified)
        self._skew: float | None = None
        self._channel = ""
        self._unconfirmed = ""
        self._missing: dict[int, float] = {}
        self._count, self._bytes, self._first_removed = 0, 0, 0.0
        self._counted_until = 0.0
        self.bind("")

    def bind(self, server: str) -> None:
        """Use the tasks of the server of this name; others may have theirs in the same database."""
        super().bind(server)
        self._channel = f"funcmcp_tasks_{sha256(server.encode()).hexdigest()[:16]}"

    async def create(self, task: NewTask) -> TaskRecord:
        """Create a task that is due at once, at the time of PostgreSQL; raise TasksFullError."""
        if self._skew is None:
            await self._link.do(self._note_time)
        return await super().create(task)

    async def renew(self, claim: Claim) -> bool:
        """Extend the lease of a claim. False: the task is over, or another worker has it."""
        values = {**self._values(claim.key), "token": claim.token, "lease": self.lease}
        return await self._link.do(partial(_changes_a_row, query=_RENEW, values=values))

    async def backlog(self) -> Backlog:
        """Return how many tasks wait for a worker; see `TaskStore.backlog`."""
        ((waiting, oldest),) = await self._link.do(partial(_rows, query=_BACKLOG, values={"server": self._server}))
        return Backlog(waiting, oldest)

    async def aclose(self) -> None:
        """Release tasks that no worker has begun, and close the connections."""
        if self._unconfirmed:
            version, self._unconfirmed = self._unconfirmed, ""
            with contextlib.suppress(StoreUnavailableError):
                await self._link.settle()
                for claim in await self._link.do(partial(self._claimed_rows, version=version)):
                    await self.release(claim)
        await self._presence.aclose()
        await self._link.aclose()

    async def _insert(self, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        stored = await self._link.do(lambda connection: self._insert_row(connection, record, task, size))
        self._count += 1
        self._bytes += size
        return stored

    async def _load(self, key: TaskKey) -> TaskRecord | None:
        row = await self._link.do(lambda connection: self._select(connection, key))
        if row is not None and row.is_unreadable:
            raise self._unreadable()
        return None if row is None else row.record

    async def _load_call(self, key: TaskKey) -> bytes | None:
        row = await self._link.do(lambda connection: self._select(connection, key))
        return None if row is None else row.call

    async def _change(self, key: TaskKey, transition: Transition) -> TaskRecord | None:
        version = token_hex(8)
        changed = await self._link.do(lambda connection: self._apply(connection, key, transition, version))
        if changed is not None:
            self._changed(changed)
        return changed

    async def _delete(self, keys: Sequence[TaskKey]) -> None:
        names = [self._values(key) for key in keys]
        values = {
            "server": self._server,
            "owners": [name["owner"] for name in names],
            "ids": [name["id"] for name in names],
        }
        await self._link.do(partial(_changes_a_row, query=_DELETE, values=values))

    async def _claim_due(self, count: int, only: TaskFilter) -> Sequence[Claim]:
        if not await self._presence.start(self._channel):
            raise StoreUnavailableError(store="task store", nothing_written=True)
        if not self._unconfirmed and not await self._link.do(partial(self._is_any_due, only=only)):
            return []
        version, self._unconfirmed = self._unconfirmed or token_hex(8), ""
        try:
            return await self._link.do(partial(self._claim_rows, count=count, only=only, version=version))
        except BaseException:
            self._unconfirmed = version  # it may be committed: the next call, or `aclose`, finds out
            raise

    async def _page(self, owner: str, after: str | None, size: int) -> Sequence[TaskRecord]:
        values = {"server": self._server, "owner": owner, "after": after or "", "size": size}
        rows = await self._link.do(partial(_rows, query=_PAGE, values=values))
        records = [from_json(TaskKey(owner, task_id), state, outcome) for task_id, state, outcome in rows]
        return self._readable(records)

    async def _scan(self) -> AsyncIterator[TaskRecord | UnreadableTask]:
        values: dict[str, Any] = {"server": self._server, "owner": "", "id": "", "rows": _SCAN_ROWS}
        while rows := await self._link.do(partial(_rows, query=_SCAN, values=values)):
            for owner, task_id, state, outcome in rows:
                key = TaskKey(owner or None, task_id)
                yield from_json(key, state, outcome) or UnreadableTask(key, over=outcome is not None)
                values = {**values, "owner": owner, "id": task_id}

    def _server_time(self) -> float:
        """Return the time of PostgreSQL: the clocks of machines need not agree."""
        return time() + (self._skew or 0.0)

    async def _note_time(self, connection: Connection) -> None:
        ((now,),) = await _rows(connection, query=f"SELECT {_CLOCK}", values={})
        self._skew = now - time()

    def _notified(self, channel: str) -> None:
        if channel == self._channel:
            self.wake()

    async def _insert_row(self, connection: Connection, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        values = {
            **self._values(task.key),
            "position": position(record),
            "state": to_json(record),
            "call": task.call,
            "due": record.due,
            "live_until": record.expires,
            "removed": record.removed,
            "payer": task.payer,
            "bytes": size,
            "queue": record.queue,
            "tool": record.tool,
            "channel": self._channel,
        }
        async with connection.pipeline(), connection.transaction():
            await self._lock(connection, task.payer or task.key.task_id)
            existing = await self._select(connection, task.key)
            if existing is not None and existing.is_unreadable:
                raise self._unreadable()
            if existing is not None and existing.record is not None and existing.now < existing.record.removed:
                return existing.record
            if existing is not None:
                await connection.execute(_REMOVE_OLD, values)
            await self._check_number(connection, values)
            await self._check_bytes(connection, task.payer, size)
            await connection.execute(_INSERT, values)
        return record

    async def _apply(
        self, connection: Connection, key: TaskKey, transition: Transition, version: str
    ) -> TaskRecord | None:
        async with connection.pipeline(), connection.transaction():
            row = await self._select(connection, key, " FOR UPDATE")
            if row is None or row.version == version:  # a first attempt was committed, and its reply was lost
                return None if row is None else row.record
            if row.is_unreadable:
                raise self._unreadable()
            changed = successor(row.record, row.now, transition)
            if row.record is None or changed is None:
                return None
            await self._update(connection, row, row.record, changed, version)
            if changed.due is not None and changed.due <= row.now and not changed.claimed:
                await connection.execute("SELECT pg_notify(%s, '')", (self._channel,))
            return changed

    async def _is_any_due(self, connection: Connection, *, only: TaskFilter) -> bool:
        """Return whether a task is due; end the leases of processes that have ended."""
        values = {**self._filter_values(only, ()), "holder": self._presence.holder, "locks": LOCKS}
        ((now, uptime, is_any_due, missing),) = await _rows(connection, query=_LOOK, values=values)
        self._skew = now - time()
        moment = monotonic()
        if uptime < _CALM or moment < self._presence.lost_at + _CALM:
            missing = []
        self._missing = {holder: self._missing.get(holder, moment) for holder in missing}
        ended = [holder for holder, since in self._missing.items() if moment >= since + _ABSENCE]
        for holder in ended:
            await connection.execute(_END_LEASES, {**values, "holder": holder})
        return bool(is_any_due or ended)

    async def _claimed_rows(self, connection: Connection, *, version: str) -> list[Claim]:
        """Return the claims that an earlier attempt of a writer has committed."""
        values = {"server": self._server, "holder": self._presence.holder, "version": version}
        claims = []
        for owner, task_id, *row in await _rows(connection, query=_CLAIMED, values=values):
            stored = _row(TaskKey(owner or None, task_id), row)
            if stored.record is not None:
                claims.append(Claim(stored.record, stored.call, stored.now))
        return claims

    async def _claim_rows(self, connection: Connection, *, count: int, only: TaskFilter, version: str) -> list[Claim]:
        async with connection.pipeline(), connection.transaction():
            claims = await self._claimed_rows(connection, version=version)
            if claims:
                return claims
            while len(claims) < count:
                rows = await self._due_rows(connection, only, claims, count - len(claims))
                left_out = 0
                for _, queue, tool, owner, task_id, *row in rows:
                    if not only.accepts(queue, tool, claims):  # the tasks before it have taken the places of its tool
                        left_out += 1
                        continue
                    key = TaskKey(owner or None, task_id)
                    claim = await self._claim_row(connection, key, _row(key, row), version)
                    if claim is not None:
                        claims.append(claim)
                if not left_out:
                    break
        return claims

    async def _due_rows(
        self, connection: Connection, only: TaskFilter, claims: Sequence[Claim], count: int
    ) -> Sequence[Any]:
        """Return so many rows of tasks that are due, which a worker can run in addition to its claims."""
        query = _CLAIMABLE if only.queues is None else _CLAIMABLE_IN_QUEUES
        return await _rows(connection, query=query, values={**self._filter_values(only, claims), "count": count})

    def _filter_values(self, only: TaskFilter, claims: Sequence[Claim]) -> dict[str, Any]:
        """Return the values of `_IS_DUE`, for the tasks that a worker can run in addition to its claims."""
        return {
            "server": self._server,
            "any_queue": only.queues is None,
            "queues": sorted(only.queues or ()),
            "full_tools": only.full_tools(claims),
        }

    async def _claim_row(self, connection: Connection, key: TaskKey, row: _Row, version: str) -> Claim | None:
        if row.record is None:  # it is for workers of the newer version
            await connection.execute(_DELAY, {**self._values(key), "due": row.now + self.lease})
            return None
        # `due` of the row counts: a renewal does not change the record.
        record = current(replace(row.record, due=row.now) if row.record.due is not None else row.record, row.now)
        if record is None:  # to be removed
            await connection.execute(_DELAY, {**self._values(key), "due": None})
            return None
        changed = claimed(record, row.now, self.lease)
        await self._update(connection, row, row.record, changed or record, version)
        return None if changed is None else Claim(changed, row.call, row.now)

    async def _select(self, connection: Connection, key: TaskKey, lock: str = "") -> _Row | None:
        values = self._values(key)
        if "\x00" in key.task_id:
            return None
        rows = await _rows(connection, query=_SELECT + lock, values=values)
        return _row(key, rows[0]) if rows else None

    async def _update(
        self, connection: Connection, row: _Row, before: TaskRecord, record: TaskRecord, version: str
    ) -> None:
        """Replace the record of a task; raise TasksFullError if it grows and there is no room."""
        size = changed_bytes(row.bytes, before, record)
        if size > row.bytes:
            await self._lock(connection, row.payer or record.key.task_id)
            await self._check_bytes(connection, row.payer, size - row.bytes)
        outcome = record.outcome
        values = {
            **self._values(record.key),
            "version": version,
            "state": to_json(record),
            "outcome": None if outcome is None else outcome.text,
            "due": record.due,
            "holder": self._presence.holder if record.claimed else None,
            "token": record.token if record.claimed else None,
            "live_until": None if record.over else record.expires,
            "removed": record.removed,
            "bytes": size,
            "keeps_call": record.keeps_call,
        }
        await connection.execute(_UPDATE, values)

    async def _check_number(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Raise TasksFullError if there is no room for one more task of an owner."""
        if monotonic() >= self._counted_until or self._count >= self.limits.total:
            await self._count_all(connection)
        if self._count >= self.limits.total:
            raise TasksFullError(seconds_until(self._first_removed, self._clock()))
        if values["owner"] != _ANONYMOUS:
            ((total, first_removed, live, first_expiry),) = await _rows(connection, query=_COUNT_OWNED, values=values)
            self._check_owned(OwnedTasks(total, first_removed, live, first_expiry), self._clock())

    async def _check_bytes(self, connection: Connection, payer: str | None, growth: int) -> None:
        """Raise TasksFullError if there is no room for more bytes of a payer."""
        now = self._clock()
        if payer is not None:
            values = {"server": self._server, "payer": payer}
            ((size, first_removed),) = await _rows(connection, query=_COUNT_PAYER, values=values)
            if size + growth > self.limits.bytes_per_principal:
                raise TasksFullError(seconds_until(first_removed or now, now), is_owner_limit=True, of_bytes=True)
        if self._bytes + growth > self.limits.total_bytes:
            await self._count_all(connection)
        if self._bytes + growth > self.limits.total_bytes:
            raise TasksFullError(seconds_until(self._first_removed or now, now), of_bytes=True)

    async def _count_all(self, connection: Connection) -> None:
        """Remove old tasks, and count all others; note the time of the server."""
        await self._note_time(connection)
        values = {"server": self._server}
        await connection.execute(_REMOVE_OLD, values)
        ((self._count, self._bytes, first_removed),) = await _rows(connection, query=_COUNT_ALL, values=values)
        self._first_removed = first_removed or 0.0
        self._counted_until = monotonic() + _COUNT_INTERVAL

    async def _lock(self, connection: Connection, payer: str) -> None:
        """Lock the payer: other transactions that create its tasks or make them larger wait until this one ends."""
        key = int.from_bytes(sha256(f"{self._server} {payer}".encode()).digest()[:4], signed=True)
        await connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_CALLERS, key))

    def _values(self, key: TaskKey) -> dict[str, Any]:
        owner = _ANONYMOUS if key.owner is None else key.owner
        return {"server": self._server, "owner": owner, "id": key.task_id}


async def _create_tables(connection: Connection) -> None:
    """Create the tables, or add what those of an earlier version lack. Complete ones need no right to do so."""
    query = (
        "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('funcmcp_tasks_1') AND attname = 'tool')"
    )
    ((is_complete,),) = await _rows(connection, query=query, values={})
    if not is_complete:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (LOCKS,))  # two of them at once fail
            await connection.execute(_TABLE)
            await connection.execute(_COLUMNS)
            await connection.execute(_INDEXES)


async def _rows(connection: Connection, *, query: str, values: Mapping[str, Any]) -> list[Any]:
    cursor = await connection.execute(query, values, binary=True)
    return await cursor.fetchall()


async def _changes_a_row(connection: Connection, *, query: str, values: Mapping[str, Any]) -> bool:
    cursor = await connection.execute(query, values)
    return cursor.rowcount > 0


def _row(key: TaskKey, values: Sequence[Any]) -> _Row:
    """Return a task from the columns of `_SELECT`."""
    now, version, state, outcome, call, payer, size, removed = values
    return _Row(now, version, from_json(key, state, outcome), call, payer, size, removed)
