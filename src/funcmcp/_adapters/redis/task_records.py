"""The records of tasks in Redis.

How it works: a write reads the hash of a task, applies the transition in Python, and stores the successor only if the
version is still the same (`REPLACE`). The scripts are in `task_scripts`. Those that the requests of one iteration of
the event loop need go to Redis in one pipeline (`SharedPipeline`).
"""

from __future__ import annotations

import re
from functools import partial
from secrets import token_hex
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from redis.exceptions import ResponseError

from funcmcp._adapters.redis.link import link_to
from funcmcp._adapters.redis.shared_pipeline import SharedPipeline
from funcmcp._adapters.redis.task_scripts import (
    CREATE,
    DELETE,
    LOAD,
    OF_BYTES,
    OF_CALLER,
    OF_LIVE,
    REPLACE,
    Call,
    run_all,
)
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.any_store import MAX_CONFLICTS, BaseTasks, successor
from funcmcp._state.tasks.queues import DEFAULT_QUEUE
from funcmcp._state.tasks.record import TaskKey, changed_bytes, from_json, to_json
from funcmcp._state.tasks.store import TasksFullError, UnreadableTask, position

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from types import UnionType

    from redis.asyncio import Redis

    from funcmcp._adapters.redis.link import RedisLink
    from funcmcp._adapters.redis.task_scripts import Script
    from funcmcp._state.tasks.any_store import Transition
    from funcmcp._state.tasks.record import Claim, NewTask, Outcome, TaskRecord
    from funcmcp._state.tasks.store import TaskLimits

_STORE = "task store"

_REMEMBERED = 1000
"""Tasks that this process has ended last, which it need not read again."""

_REMEMBERED_BYTES = 16 * 1024
"""The size of their results; larger ones are read from Redis."""

_SCANNED = 200
"""Tasks that a scan of all tasks reads at once, more or less."""

_OF_LANE = ("due", "delayed", "signals")
"""The parts of a lane, in the names of keys."""

_ANONYMOUS = "-"
_KEY = re.compile(r"(?P<owner>-|[0-9a-f]{1,64}):(?P<id>[A-Za-z0-9_-]{1,64})")


class Stored(NamedTuple):
    """A task as Redis has it.

    Attributes:
        now: The time of Redis when it was read.
        version: Of the record; empty if the task is new.
        record: None if this version of the server can't read it.
        entry: The id of its entry in the stream.
        call: If it was loaded.
        has_outcome: Whether the task has ended.
    """

    now: float
    version: bytes
    record: TaskRecord | None
    entry: bytes | None
    call: bytes
    has_outcome: bool = False


class Lane(NamedTuple):
    """Tasks that wait together, with the keys of Redis in which they do so.

    Attributes:
        queue: The queue of its tasks.
        tool: The tool of its tasks, if the tool has a limit of tasks that run at once; else empty.
        name: Empty for the lane that versions without queues use.
        stream: The entries of tasks that are due.
        delayed: Tasks that will be due.
        signals: Wake workers.
    """

    queue: str
    tool: str
    name: str
    stream: str
    delayed: str
    signals: str


class RedisRecords(BaseTasks):
    """A store of tasks in Redis without a queue: everything but claims.

    Args:
        redis: A URL, or a link.
        limits: How much is kept.
        concurrency: Tasks that this process runs at once.
        lease: Seconds after which another worker may take a task.
    """

    def __init__(self, redis: str | RedisLink, *, limits: TaskLimits | None, concurrency: int, lease: float) -> None:
        super().__init__(limits=limits, concurrency=concurrency, lease=lease, clock=self._redis_time)
        self._link = link_to(redis)
        self._skew: float | None = None
        self._scripts: SharedPipeline[Call] = SharedPipeline(self._link, run_all, store=_STORE)
        self._ended: dict[TaskKey, TaskRecord] = {}
        self.bind("")

    def bind(self, server: str) -> None:
        """Use the tasks of the server of this name; others may have theirs in the same Redis."""
        self._prefix = f"{self._link.prefix}:{quote(server, safe='')}:tasks"
        self._lane_names = f"{self._prefix}:lanes"
        self._lanes: dict[str, Lane] = {}
        self._lane("")
        self._all = f"{self._prefix}:all"
        self._sizes = f"{self._prefix}:sizes"
        self._sums = f"{self._prefix}:bytes"

    async def create(self, task: NewTask) -> TaskRecord:
        """Create a task that is due at once, at the time of Redis; raise TasksFullError."""
        if self._skew is None:
            await self._load_stored(task.key)
        return await super().create(task)

    async def finish(self, claim: Claim, outcome: Outcome) -> TaskRecord | None:
        """End the task; see `TaskStore.finish`."""
        record = await super().finish(claim, outcome)
        if record is not None and len(outcome.text) <= _REMEMBERED_BYTES:
            self._ended[record.key] = record
            if len(self._ended) > _REMEMBERED:
                del self._ended[next(iter(self._ended))]
        return record

    async def aclose(self) -> None:
        """Close the connections."""
        await self._scripts.aclose()
        await self._link.aclose()

    async def _create(self, record: TaskRecord, task: NewTask, size: int) -> bool:
        """Store a new task; raise TasksFullError and StoreUnavailableError.

        Returns:
            Whether the task has no other worker. It may have one if a reply was lost, and this call came again later.
        """
        limits, lane = self.limits, self._lane_of(record)
        arguments = (
            to_json(record),
            task.call,
            member_of(record.key),
            _milliseconds(record.expires),
            _milliseconds(record.removed),
            position(record),
            record.key.task_id,
            *(limits.total, limits.per_principal, limits.live_per_principal),
            record.token if record.claimed else "",
            int(self.lease * 1000),
            size,
            task.payer or "",
            *(limits.total_bytes, limits.bytes_per_principal),
            _milliseconds(record.due) if record.due is not None and record.due > record.created else "",
            lane.name,
        )
        keys = self._keys(record)
        if lane.name:
            keys.append(self._lane_names)
        reply = await self._run(CREATE, int | list, keys, arguments)
        if isinstance(reply, int):
            return reply == 0
        full, wait, kind = reply
        raise TasksFullError(
            int(wait) // 1000 + 1,
            is_owner_limit=full == OF_CALLER,
            of_bytes=kind == OF_BYTES,
            of_live=kind == OF_LIVE,
        )

    async def _load(self, key: TaskKey) -> TaskRecord | None:
        """Return a record. Those that this process has ended need not be read: they never change."""
        if self._remembers(key):
            return self._ended[key]
        stored = await self._load_stored(key)
        if stored is not None and stored.record is None:
            raise self._unreadable()
        return None if stored is None else stored.record

    async def _load_call(self, key: TaskKey) -> bytes | None:
        stored = await self._load_stored(key, "c")
        return None if stored is None else stored.call

    async def _page(self, owner: str, after: str | None, size: int) -> Sequence[TaskRecord]:
        names: list[bytes] = await self._do(
            lambda redis: redis.zrange(f"{self._prefix}:of:{owner}", 0, self.limits.per_principal), list
        )
        positions = sorted(name.decode() for name in names)
        page = [name for name in positions if after is None or name > after][:size]
        keys = [TaskKey(owner, name.partition(".")[2]) for name in page]
        records: dict[TaskKey, TaskRecord | None] = {key: self._ended[key] for key in keys if self._remembers(key)}
        missing = [key for key in keys if key not in records]
        for key, stored in zip(missing, await self._load_all(missing) if missing else (), strict=True):
            if stored is not None:
                records[key] = stored.record
        return self._readable(records[key] for key in keys if key in records)

    async def _scan(self) -> AsyncIterator[TaskRecord | UnreadableTask]:
        cursor = 0
        while True:
            cursor, members = await self._do(partial(_scanned, key=self._all, cursor=cursor), (list, tuple))
            keys = [key for member, _ in members if (key := key_of(member)) is not None]
            loaded = await self._load_all(keys) if keys else []
            for key, stored in zip(keys, loaded, strict=True):
                if stored is not None:
                    yield stored.record or UnreadableTask(key, over=stored.has_outcome)
            if cursor == 0:
                return

    def _changed(self, record: TaskRecord) -> None:
        """Do nothing: an entry of the stream wakes one of all workers."""

    async def _change(self, key: TaskKey, transition: Transition) -> TaskRecord | None:
        for _ in range(MAX_CONFLICTS):
            stored = await self._load_stored(key)
            if stored is not None and stored.record is None:
                raise self._unreadable()
            changed = None if stored is None else successor(stored.record, stored.now, transition)
            if stored is None or changed is None:
                return None
            if await self._store(stored, changed):
                return changed
        raise StoreUnavailableError(store=_STORE)

    async def _delete(self, keys: Sequence[TaskKey]) -> None:
        records = [(key, await self._load(key)) for key in keys]
        for key, record in records:
            self._ended.pop(key, None)
            if record is not None:
                arguments = (member_of(key), position(record), key.task_id)
                await self._run(DELETE, int, self._keys(record), arguments)

    async def _end_run(self, claim: Claim, transition: Transition) -> TaskRecord | None:
        """Apply a transition to the record of a claim, without reading it first if nobody has changed it."""
        now = self._clock()
        changed = transition(claim.record, now)
        stored = Stored(now, claim.token.encode(), claim.record, None, b"")
        if changed is not None and await self._store(stored, changed):
            return changed
        return await self._change(claim.key, transition)

    async def _store(self, stored: Stored, changed: TaskRecord) -> bool:
        """Replace a record; return whether it was still the same. Raise TasksFullError if it grows without room."""
        keys, arguments = self._replacement(stored, changed)
        reply = await self._run(REPLACE, int | list, keys, arguments)
        if isinstance(reply, int):
            return reply == 1
        full, wait = reply
        raise TasksFullError(int(wait) // 1000 + 1, is_owner_limit=full == OF_CALLER, of_bytes=True)

    def _replacement(self, stored: Stored, changed: TaskRecord) -> tuple[list[str], list[Any]]:
        """Return the keys and arguments of `REPLACE`."""
        key = changed.key
        arguments: list[Any] = [
            stored.version,
            _milliseconds(changed.expires),
            to_json(changed),
            changed.token if changed.claimed else "",
            _place(stored, changed),
            member_of(key),
            changed_bytes(0, stored.record or changed, changed),
            *(self.limits.total_bytes, self.limits.bytes_per_principal),
            _next_version(stored, changed),
        ]
        if changed.outcome is not None:
            arguments += [changed.outcome.text, _milliseconds(changed.removed), position(changed), key.task_id]
            arguments.append("keeps" if changed.keeps_call else "drops")
        return self._keys(changed), arguments

    async def _load_stored(self, key: TaskKey, *fields: str) -> Stored | None:
        """Return a task, and note the time of Redis."""
        if not _KEY.fullmatch(member_of(key)):
            return None
        now, (reply,) = await self._fields_of([key], fields)
        if isinstance(reply, ResponseError):
            self._link.note_failure(reply)
            raise StoreUnavailableError(store=_STORE, nothing_written=True) from reply
        return stored_of(key, now, reply)

    async def _load_all(self, keys: Sequence[TaskKey], *fields: str) -> list[Stored | None]:
        """Return tasks whose keys are valid, and note the time of Redis. What is not a hash is not a task."""
        now, replies = await self._fields_of(keys, fields)
        return [
            None if isinstance(reply, ResponseError) else stored_of(key, now, reply)
            for key, reply in zip(keys, replies, strict=True)
        ]

    async def _fields_of(self, keys: Sequence[TaskKey], fields: Sequence[str]) -> tuple[float, list[Any]]:
        """Return the time of Redis and the replies of `LOAD` for some tasks."""
        milliseconds, *replies = await self._run(LOAD, list, [self._hash(key) for key in keys], fields)
        return self._note_time(milliseconds), replies

    def _remembers(self, key: TaskKey) -> bool:
        """Return whether this process has ended a task and still has its record."""
        ended = self._ended.get(key)
        return ended is not None and self._clock() < ended.removed

    def _note_time(self, milliseconds: int) -> float:
        """Return the time of Redis in seconds, and note how the clock of this machine differs from it."""
        now = milliseconds / 1000
        self._skew = now - time()
        return now

    def _redis_time(self) -> float:
        """Return the time of Redis: the clocks of machines need not agree."""
        return time() + (self._skew or 0.0)

    async def _run(self, script: Script, kind: type | UnionType, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        """Run a script and return its reply, which is of this type; raise StoreUnavailableError."""
        return await self._scripts.do(Call(script, kind, keys, arguments))

    async def _do(self, work: Callable[[Redis], Awaitable[Any]], kind: Any) -> Any:
        """Do what `RedisLink.do` says; name the store in the error, which the client gets."""
        try:
            return await self._link.do(work, kind)
        except StoreUnavailableError as error:
            raise StoreUnavailableError(store=_STORE) from error

    def _keys(self, record: TaskRecord) -> list[str]:
        """Return the keys of `CREATE` and `REPLACE`."""
        lane = self._lane_of(record)
        shared = [lane.stream, lane.delayed, lane.signals, self._all, self._sizes, self._sums]
        return [self._hash(record.key), *shared, *self._sets(record.key)]

    def _lane_of(self, record: TaskRecord) -> Lane:
        """Return the lane of a task: that of its queue, or one for its tool if the tool has a limit."""
        if record.limited:
            return self._lane(f"{record.queue}/{quote(record.tool, safe='')}")
        return self._lane("" if record.queue == DEFAULT_QUEUE else record.queue)

    def _lane(self, name: str) -> Lane:
        """Return a lane. This process knows it from then on."""
        lane = self._lanes.get(name)
        if lane is None:
            queue, _, tool = name.partition("/")
            keys = [f"{self._prefix}:{kind}:{name}" if name else f"{self._prefix}:{kind}" for kind in _OF_LANE]
            lane = self._lanes[name] = Lane(queue or DEFAULT_QUEUE, unquote(tool), name, *keys)
        return lane

    def _hash(self, key: TaskKey) -> str:
        return f"{self._prefix}:task:{member_of(key)}"

    def _hash_of_member(self, member: bytes) -> bytes:
        return f"{self._prefix}:task:".encode() + member

    def _sets(self, key: TaskKey) -> list[str]:
        """Return the keys of the sets with the tasks of an owner; none for anonymous callers."""
        if key.owner is None:
            return []
        return [f"{self._prefix}:of:{key.owner}", f"{self._prefix}:live:{key.owner}"]


async def _scanned(redis: Redis, *, key: str, cursor: int) -> tuple[int, list[tuple[bytes, float]]]:
    """Return members of a sorted set, and the cursor for the next ones; 0 after the last ones."""
    reply: Any = await redis.zscan(key, cursor, count=_SCANNED)
    return reply[0], reply[1]


def key_of(member: bytes) -> TaskKey | None:
    """Return the key that an entry of the stream names."""
    match = _KEY.fullmatch(member.decode(errors="replace"))
    if match is None:
        return None
    return TaskKey(None if match["owner"] == _ANONYMOUS else match["owner"], match["id"])


def stored_of(key: TaskKey, now: float, reply: Sequence[Any]) -> Stored | None:
    """Return a task from its fields."""
    version, state, outcome, entry, *fields = reply
    if version is None or state is None:
        return None
    call = fields[0] if fields and fields[0] is not None else b""
    return Stored(now, version, from_json(key, state, outcome), entry, call, has_outcome=outcome is not None)


def _next_version(stored: Stored, changed: TaskRecord) -> str:
    """Return the version of a record that replaces another: the token of a new claim, else any text."""
    before = stored.record
    if before is not None and before.token != changed.token:
        return changed.token
    return token_hex(8)


def _place(stored: Stored, changed: TaskRecord) -> str:
    """Return what becomes of the entry in the stream; see `REPLACE`."""
    if changed.due is None:
        return "leaves"
    before = stored.record
    if changed.claimed or (before is not None and not before.claimed and before.due == changed.due):
        return "stays"
    return "due" if changed.due <= stored.now else _milliseconds(changed.due)


def member_of(key: TaskKey) -> str:
    return f"{_ANONYMOUS if key.owner is None else key.owner}:{key.task_id}"


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))
