"""Tasks in Redis, which the workers of all machines share.

How it works: a task is a hash with the fields below, and a task that is due has one entry in a stream. Workers read the
stream as one consumer of one group, so an entry goes to one worker. While the tool runs, its entry is pending and the
worker resets its idle time (XCLAIM); an entry that is idle for longer than the lease goes to another worker
(XAUTOCLAIM).

    v  the version: a random token of the last write  s  the record as JSON         e  the id of its entry in the stream
    a  the token of the claim that holds the task     c  the call, until the end    o  the text of the outcome

A write reads the hash, applies the transition in Python, and stores the successor only if the version is still the
same. This one script also adds or removes the entry in the stream, so that record and queue never disagree. If the
reply to a write is lost, the write is sent again with the same token, and Redis replies as it did at first. Redis does
not look into any JSON: its Lua library would change it (``[]`` becomes ``{}``, and large integers lose digits).

The hash `sizes` has the bytes and the payer of each task, and the hash `bytes` their sums for each payer, and for all
under ``*``. Scripts change them with the task. Tasks that have expired leave the sums when another one is created, or
needs room.

A worker reads several entries and their tasks with one script, and stores their claims in one pipeline. The end of a
run is stored without reading the task again: the version that a claim writes is its token.

A process that creates a task and has room for a run claims the task with the script that creates it. Such a task has no
entry in the stream. It is among the delayed tasks, as one that is due when the lease lapses; a renewal moves that time.
If the process dies, the task gets an entry like any other delayed task.

Scripts that the requests of one iteration of the event loop need go to Redis in one pipeline (`SharedPipeline`).

A worker without work waits for an element of the list `signals`. Each new entry adds one, so one worker wakes up. A
signal may get lost with a worker: all workers read the stream once a second as well.

Needs ``pip install "funcmcp[redis]"`` and Redis 7.0 or newer. While Redis can't be reached, every method raises
StoreUnavailableError in a bounded time.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from functools import partial
from hashlib import sha1
from secrets import token_hex
from time import monotonic, time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

try:
    from redis.exceptions import NoScriptError, ResponseError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Redis needs: pip install "funcmcp[redis]"', name=error.name) from None

from funcmcp._adapters.redis.link import link_to
from funcmcp._adapters.redis.shared_pipeline import SharedPipeline
from funcmcp._public_names import public
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks import record as transitions
from funcmcp._state.tasks.any_store import MAX_CONFLICTS, BaseTasks, successor
from funcmcp._state.tasks.record import Claim, TaskKey, changed_bytes, claimed, from_json, to_json
from funcmcp._state.tasks.store import TasksFullError, position

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from redis.asyncio import Redis

    from funcmcp._adapters.redis.link import RedisLink
    from funcmcp._state.tasks.any_store import Transition
    from funcmcp._state.tasks.record import NewTask, Outcome, TaskRecord
    from funcmcp._state.tasks.store import TaskLimits

_STORE = "task store"
_WAIT = 1.0
"""Seconds for which a worker waits for a signal before it reads the stream again."""

_LAPSED_INTERVAL = 1.0
"""Seconds between two looks for tasks whose leases have lapsed."""

_REMEMBERED = 1000
"""Tasks that this process has ended last, which it need not read again."""

_REMEMBERED_BYTES = 16 * 1024
"""The size of their results; larger ones are read from Redis."""

_SCANNED = 200
"""Tasks that a scan of all tasks reads at once, more or less."""

_ANONYMOUS = "-"
_KEY = re.compile(r"(?P<owner>-|[0-9a-f]{1,64}):(?P<id>[A-Za-z0-9_-]{1,64})")
_OF_CALLER = 2
"""The scripts' number for a limit that the caller has reached."""
_OF_BYTES, _OF_LIVE = 1, 2
"""The scripts' numbers for limits of bytes, and of tasks that have not ended."""

_FIRST_ENTRY = b"0-0"
"""Where the search for lapsed entries begins, and ends."""


class _Script:
    """A script that Redis keeps by its digest."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = sha1(text.encode(), usedforsecurity=False).hexdigest()

    async def run(self, redis: Redis, keys: Sequence[str], *arguments: Any) -> Any:
        """Run the script; send its text only if Redis does not have it."""
        try:
            return await redis.evalsha(self.digest, len(keys), *keys, *arguments)
        except NoScriptError:
            return await redis.eval(self.text, len(keys), *keys, *arguments)


_WITHOUT_ROOM = "#!lua flags=allow-oom\n"
"""Begins scripts that a Redis without memory runs as well, from Redis 7.0 on. All do but `_CREATE`: finished work must
be stored, and tasks that end free memory."""

_ADD_ENTRY = """
local function add_entry(key, stream, signals, member)
  redis.call('HSET', key, 'e', redis.call('XADD', stream, '*', 'k', member))
  if redis.call('LLEN', signals) < 100 then redis.call('RPUSH', signals, '') end
  redis.call('PEXPIRE', signals, 2000)
end
"""
"""Begins scripts that add entries to the stream. A signal is of no use to workers that read the stream meanwhile."""

_ROOM = """
local function count(sums, payer, growth)
  if redis.call('HINCRBY', sums, payer, growth) == 0 then redis.call('HDEL', sums, payer) end
end
local function count_task(sizes, sums, member, payer, old, new)
  if new == 0 then
    redis.call('HDEL', sizes, member)
  else
    redis.call('HSET', sizes, member, string.format('%d', new) .. ' ' .. payer)
  end
  count(sums, '*', string.format('%d', new - old))
  if payer ~= '' then count(sums, payer, string.format('%d', new - old)) end
end
local function size_of(sizes, member)
  local size, payer = string.match(redis.call('HGET', sizes, member) or '', '^(%d+) (.*)$')
  return tonumber(size or 0), payer or ''
end
local function remove_old(all, sizes, sums, now)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', all, '-inf', '(' .. now, 'LIMIT', 0, 1000)) do
    redis.call('ZREM', all, member)
    local size, payer = size_of(sizes, member)
    if size > 0 then count_task(sizes, sums, member, payer, size, 0) end
  end
end
local function is_full(sums, payer, growth, total, share)
  local used = redis.call('HMGET', sums, payer, '*')
  if payer ~= '' and (used[1] or 0) + growth > tonumber(share) then return 2 end
  if (used[2] or 0) + growth > tonumber(total) then return 1 end
  return 0
end
local function until_first(key, now)
  local first = redis.call('ZRANGEBYSCORE', key, now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  return (first or now) - now
end
"""
"""Begins scripts that count the bytes of tasks."""

_CREATE = _Script(
    _ADD_ENTRY
    + _ROOM
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then
  if ARGV[11] == '' or redis.call('HGET', KEYS[1], 'v') == ARGV[11] then return {0, 0, 0} end
  return {3, 0, 0}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function full(key, limit)
  if redis.call('ZCOUNT', key, now, '+inf') < tonumber(limit) then return nil end
  return until_first(key, now)
end
local wait = full(KEYS[5], ARGV[8])
if wait then return {1, wait, 0} end
if #KEYS > 7 then
  wait = full(KEYS[9], ARGV[10])
  if wait then return {2, wait, 2} end
  wait = full(KEYS[8], ARGV[9])
  if wait then return {2, wait, 0} end
end
remove_old(KEYS[5], KEYS[6], KEYS[7], now)
local owner = is_full(KEYS[7], ARGV[14], ARGV[13], ARGV[15], ARGV[16])
if owner > 0 then return {owner, until_first(owner == 2 and KEYS[8] or KEYS[5], now), 1} end
redis.call('HSET', KEYS[1], 'v', ARGV[11], 's', ARGV[1], 'c', ARGV[2], 'a', ARGV[11])
if ARGV[11] == '' then
  add_entry(KEYS[1], KEYS[2], KEYS[4], ARGV[3])
else
  redis.call('ZADD', KEYS[3], now + ARGV[12], ARGV[3])
end
redis.call('PEXPIREAT', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[5], ARGV[5], ARGV[3])
count_task(KEYS[6], KEYS[7], ARGV[3], ARGV[14], 0, tonumber(ARGV[13]))
if #KEYS > 7 then
  redis.call('ZADD', KEYS[8], ARGV[5], ARGV[6])
  redis.call('ZADD', KEYS[9], ARGV[4], ARGV[7])
  for _, key in ipairs({KEYS[8], KEYS[9]}) do
    redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. now)
    redis.call('PEXPIREAT', key, redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
  end
end
return {0, 0, 0}
"""
)
"""Create a task that is due or claimed, unless there is no room. A task that exists already is left as it is: ids are
random, so it is of the same call, whose reply was lost.

KEYS: task, stream, delayed tasks, signals, all tasks, sizes, sums; of a principal also its tasks and its live tasks.
ARGV: record, call, member, expiry, removal, position, id, limits of the three sets, token of the claim with which
the task is created (empty if none), milliseconds of the lease, bytes, payer (empty if unknown), limits of the bytes of
all tasks and of the payer's. Return 0; or 1 (all) or 2 (the caller's), the milliseconds until there may be room, and
what is full (1 for bytes, 2 for live tasks, 0 for tasks); or 3 if the task exists, and another worker has claimed it.
Expired tasks leave the sums first. Otherwise the first write is the one that takes memory: a full Redis refuses
nothing of a script that has begun to write.
"""

_LOAD = _Script("""
local time = redis.call('TIME')
local reply = {time[1] * 1000 + math.floor(time[2] / 1000)}
for index, key in ipairs(KEYS) do
  reply[index + 1] = redis.call('HMGET', key, 'v', 's', 'o', 'e', unpack(ARGV))
end
return reply
""")
"""Return the time, and for each task its version, record, outcome, entry, and the fields in ARGV."""

_REPLACE = _Script(
    _WITHOUT_ROOM
    + _ADD_ENTRY
    + _ROOM
    + """
local fields = redis.call('HMGET', KEYS[1], 'v', 'e')
if fields[1] == ARGV[10] then return {1, 0} end
if fields[1] ~= ARGV[1] then return {0, 0} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now >= tonumber(ARGV[2]) then return {0, 0} end
local old, payer, new = 0, '', 0
if ARGV[7] ~= '0' or #ARGV > 10 then
  old, payer = size_of(KEYS[6], ARGV[6])
  new = #ARGV > 10 and tonumber(ARGV[7]) or old + ARGV[7]
  if new > old and is_full(KEYS[7], payer, new - old, ARGV[8], ARGV[9]) > 0 then
    remove_old(KEYS[5], KEYS[6], KEYS[7], now)
    local owner = is_full(KEYS[7], payer, new - old, ARGV[8], ARGV[9])
    if owner > 0 then return {-owner, until_first(owner == 2 and KEYS[8] or KEYS[5], now)} end
  end
end
redis.call('HSET', KEYS[1], 'v', ARGV[10], 's', ARGV[3], 'a', ARGV[4])
if new ~= old then count_task(KEYS[6], KEYS[7], ARGV[6], payer, old, new) end
if ARGV[5] ~= 'stays' then
  redis.call('ZREM', KEYS[3], ARGV[6])
  if fields[2] then
    redis.call('HDEL', KEYS[1], 'e')
    redis.call('XACK', KEYS[2], 'workers', fields[2])
    redis.call('XDEL', KEYS[2], fields[2])
  end
  if ARGV[5] == 'due' then
    add_entry(KEYS[1], KEYS[2], KEYS[4], ARGV[6])
  elseif ARGV[5] ~= 'leaves' then
    redis.call('ZADD', KEYS[3], ARGV[5], ARGV[6])
  end
end
if #ARGV > 10 then
  redis.call('HSET', KEYS[1], 'o', ARGV[11])
  redis.call('HDEL', KEYS[1], 'c')
  redis.call('PEXPIREAT', KEYS[1], ARGV[12])
  redis.call('ZADD', KEYS[5], 'XX', ARGV[12], ARGV[6])
  if #KEYS > 7 then
    redis.call('ZADD', KEYS[8], 'XX', ARGV[12], ARGV[13])
    redis.call('ZREM', KEYS[9], ARGV[14])
  end
end
return {1, 0}
"""
)
"""Replace a record whose version is still the same and that has not expired.

KEYS: as of `_CREATE`. ARGV: version, expiry, record, token of the claim, what becomes of the entry ('stays',
'leaves', 'due', or the time when it is due), member, the bytes by which the task grows (those that are left of a task
that ends), limits of the bytes of all tasks and of the payer's, the next version; of a task that ends also
outcome, removal, position, id. Return 1 and 0, also if this write was done already; or 0 and 0 if the record has
changed or expired; or, if there is no room, -1 (of all) or -2 (of the caller) and the milliseconds until there may be.
"""

_DELETE = _Script(
    _WITHOUT_ROOM
    + _ROOM
    + """
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[5], ARGV[1])
local size, payer = size_of(KEYS[6], ARGV[1])
if size > 0 then count_task(KEYS[6], KEYS[7], ARGV[1], payer, size, 0) end
if #KEYS > 7 then
  redis.call('ZREM', KEYS[8], ARGV[2])
  redis.call('ZREM', KEYS[9], ARGV[3])
end
return 1
"""
)
"""Remove a task. KEYS: as of `_CREATE`. ARGV: member, position, id."""

_RENEW = _Script(
    _WITHOUT_ROOM
    + """
local fields = redis.call('HMGET', KEYS[1], 'a', 'e')
if fields[1] ~= ARGV[1] then return 0 end
if fields[2] then return #redis.call('XCLAIM', KEYS[2], 'workers', 'worker', 0, fields[2], 'JUSTID') end
if not redis.call('ZSCORE', KEYS[3], ARGV[2]) then return 0 end
local time = redis.call('TIME')
redis.call('ZADD', KEYS[3], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3], ARGV[2])
return 1
"""
)
"""Extend a lease; return 0 if the claim is not valid any more.

KEYS: task, stream, delayed tasks. ARGV: token of the claim, member, milliseconds of the lease.
"""

_TAKE = _Script(
    _WITHOUT_ROOM
    + _ADD_ENTRY
    + """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count = tonumber(ARGV[1])
local reply = {now}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[2], member)
  if redis.call('EXISTS', ARGV[2] .. member) == 1 then
    add_entry(ARGV[2] .. member, KEYS[1], KEYS[3], member)
  end
end
local function take(entries)
  for _, entry in ipairs(entries) do
    local fields = entry and entry[2] or {}
    local member = ''
    for index = 1, #fields, 2 do
      if fields[index] == 'k' then member = fields[index + 1] end
    end
    local values = redis.pcall('HMGET', ARGV[2] .. member, 'v', 's', 'o', 'e', 'c')
    if values.err then values = {false, false, false, false, false} end
    if entry then reply[#reply + 1] = {entry[1], member, values} end
  end
end
local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
if groups.err or #groups == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[1], 'workers', '0', 'MKSTREAM')
end
local cursor = ARGV[4]
if ARGV[3] ~= '' then
  for _ = 1, 20 do
    local step = redis.call(
      'XAUTOCLAIM', KEYS[1], 'workers', 'worker', ARGV[3], cursor, 'COUNT', count - #reply + 1)
    cursor = step[1]
    take(step[2])
    if cursor == '0-0' or #reply - 1 >= count then break end
  end
end
local lapsed = #reply - 1
if lapsed < count then
  local new = redis.call(
    'XREADGROUP', 'GROUP', 'workers', 'worker', 'COUNT', count - lapsed, 'STREAMS', KEYS[1], '>')
  if new then take(new[1][2]) end
end
if #reply - 1 < count then redis.call('DEL', KEYS[3]) end
reply[1] = {now, cursor}
return reply
"""
)
"""Add entries for delayed tasks that are due now, and give entries to this worker.

KEYS: stream, delayed tasks, signals. ARGV: number of entries, what the keys of tasks begin with, the milliseconds of
the lease to take lapsed entries first (empty to leave them), and the entry at which to begin to look for these. Return
the time and where to continue, and for each entry its id, its member, and version,
record, outcome, entry and call of its task. A step of XAUTOCLAIM looks at ten times as many entries as it may return.
"""

_DROP = _Script(
    _WITHOUT_ROOM
    + """
redis.call('XACK', KEYS[1], 'workers', unpack(ARGV))
return redis.call('XDEL', KEYS[1], unpack(ARGV))
"""
)


class _Call(NamedTuple):
    """A script to run.

    Attributes:
        script: The script.
        kind: The type of its reply.
        keys: Its keys.
        arguments: Its other arguments.
    """

    script: _Script
    kind: type
    keys: Sequence[str]
    arguments: Sequence[Any]


class _Stored(NamedTuple):
    """A task as Redis has it.

    Attributes:
        now: The time of Redis when it was read.
        version: Of the record; empty if the task is new.
        record: None if this version of the server can't read it.
        entry: The id of its entry in the stream.
        call: If it was loaded.
    """

    now: float
    version: bytes
    record: TaskRecord | None
    entry: bytes | None
    call: bytes


class _Taken(NamedTuple):
    """An entry of the stream that this worker has.

    Attributes:
        entry: Its id.
        key: Of its task; None if it names none.
        stored: The task; None if it does not exist.
    """

    entry: bytes
    key: TaskKey | None
    stored: _Stored | None


class _Replacement(NamedTuple):
    """A write of a record.

    Attributes:
        stored: The task before.
        changed: The record after.
        keys: The keys of `_REPLACE`.
        arguments: Its other arguments, with the next version.
    """

    stored: _Stored
    changed: TaskRecord
    keys: Sequence[str]
    arguments: Sequence[Any]


@public("funcmcp.tasks")
class RedisTasks(BaseTasks):
    """Tasks that live in Redis.

    Servers with the same name, Redis and prefix share their tasks; servers with other names never see them.

    Args:
        redis: A URL, or a link that sessions and other things use, too.
        limits: How much is kept.
        concurrency: Tasks that this process runs at once; 0 if it only creates them.
        lease: Seconds after which another worker may take a task whose worker does not answer any more.
    """

    def __init__(
        self,
        redis: str | RedisLink,
        *,
        limits: TaskLimits | None = None,
        concurrency: int = 10,
        lease: float = 15.0,
    ) -> None:
        super().__init__(limits=limits, concurrency=concurrency, lease=lease, clock=self._redis_time)
        self._link = link_to(redis)
        self._lapsed_at = 0.0
        self._cursor = _FIRST_ENTRY
        self._skew: float | None = None
        self._scripts: SharedPipeline[_Call] = SharedPipeline(self._link, _run_all, store=_STORE)
        self._ended: dict[TaskKey, TaskRecord] = {}
        self._room = 0
        self._creating = 0
        self._created: list[Claim] = []
        self._unconfirmed: Sequence[_Replacement] = ()
        self._hands_over = False
        self._wakeup: asyncio.Future[None] | None = None
        self._signal: asyncio.Task[None] | None = None
        self.bind("")

    def bind(self, server: str) -> None:
        """Use the tasks of the server of this name; others may have theirs in the same Redis."""
        self._prefix = f"{self._link.prefix}:{quote(server, safe='')}:tasks"
        self._stream = f"{self._prefix}:due"
        self._delayed = f"{self._prefix}:delayed"
        self._signals = f"{self._prefix}:signals"
        self._all = f"{self._prefix}:all"
        self._sizes = f"{self._prefix}:sizes"
        self._sums = f"{self._prefix}:bytes"

    async def create(self, task: NewTask) -> TaskRecord:
        """Create a task that is due at once, at the time of Redis; raise TasksFullError."""
        if self._skew is None:
            await self._load_stored(task.key)
        return await super().create(task)

    async def _insert(self, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        """Store a new task.

        If a `claim` of this process waits and has room, the task is created as claimed, and is what that `claim`
        returns.
        """
        if self._room <= self._creating + len(self._created):
            await self._create(record, task, size)
            return record
        record = transitions.first_claim(record)
        self._creating += 1
        try:
            is_own = await self._create(record, task, size)
        finally:
            self._creating -= 1
        if not is_own:
            return record
        claim = Claim(record, task.call, record.created)
        if self._hands_over:
            self._created.append(claim)
            self._wake_claim()
        else:
            await self.release(claim)  # the worker has stopped meanwhile
        return record

    async def _create(self, record: TaskRecord, task: NewTask, size: int) -> bool:
        """Store a new task; raise TasksFullError and StoreUnavailableError.

        Returns:
            Whether the task has no other worker. It may have one if a reply was lost, and this call came again later.
        """
        limits = self.limits
        arguments = (
            to_json(record),
            task.call,
            _member(record.key),
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
        )
        keys = self._keys(record.key)
        full, wait, kind = await self._run(_CREATE, list, keys, arguments)
        if full in {1, _OF_CALLER}:
            raise TasksFullError(
                int(wait) // 1000 + 1,
                is_owner_limit=full == _OF_CALLER,
                of_bytes=kind == _OF_BYTES,
                of_live=kind == _OF_LIVE,
            )
        return not full

    async def _load(self, key: TaskKey) -> TaskRecord | None:
        """Return a record. Those that this process has ended need not be read: they never change."""
        ended = self._ended.get(key)
        if ended is not None and self._clock() < ended.removed:
            return ended
        stored = await self._load_stored(key)
        return None if stored is None else stored.record

    async def claim(self, count: int) -> Sequence[Claim]:
        """Give this worker tasks that are due; see `TaskStore.claim`.

        While an earlier wait for a signal lasts, nothing can be due but tasks that this process creates: the stream is
        not read.
        """
        self._hands_over = True
        if self._unconfirmed:
            claims = await self._claim_unconfirmed()
            if claims:
                return claims
        room = count - self._creating
        if not self._created and room > 0 and not self._waits_for_signal():
            share = (room + 1) // 2
            self._room = count - share
            try:
                taken = await self._take(share)
            finally:
                self._room = 0
            if taken:
                return taken
            self._signal = asyncio.ensure_future(self._await_signal())
        if not self._created:
            await self._await_task(count)
        created, self._created = self._created, []
        return created

    def wake(self) -> None:
        """End a `claim` that waits. Until the next one, tasks that this process creates are for all workers."""
        self._hands_over = False
        self._wake_claim()

    async def renew(self, claim: Claim) -> bool:
        """Extend the lease of a claim; see `TaskStore.renew`."""
        keys = (self._hash(claim.key), self._stream, self._delayed)
        arguments = (claim.token, _member(claim.key), int(self.lease * 1000))
        renewed: int = await self._run(_RENEW, int, keys, arguments)
        return renewed > 0

    async def finish(self, claim: Claim, outcome: Outcome) -> TaskRecord | None:
        """End the task; see `TaskStore.finish`."""
        record = await super().finish(claim, outcome)
        if record is not None and len(outcome.text) <= _REMEMBERED_BYTES:
            self._ended[record.key] = record
            if len(self._ended) > _REMEMBERED:
                del self._ended[next(iter(self._ended))]
        return record

    async def _page(self, owner: str, after: str | None, size: int) -> Sequence[TaskRecord]:
        names: list[bytes] = await self._do(
            lambda redis: redis.zrange(f"{self._prefix}:of:{owner}", 0, self.limits.per_principal), list
        )
        positions = sorted(name.decode() for name in names)
        page = [name for name in positions if after is None or name > after][:size]
        keys = [TaskKey(owner, name.partition(".")[2]) for name in page]
        records = await asyncio.gather(*(self._load(key) for key in keys))
        return [record for record in records if record is not None]

    async def _scan(self) -> AsyncIterator[TaskRecord]:
        cursor = 0
        while True:
            cursor, members = await self._do(partial(_scanned, key=self._all, cursor=cursor), (list, tuple))
            keys = [key for member, _ in members if (key := _key_of(member)) is not None]
            loaded = await self._load_all(keys) if keys else []
            for record in [stored.record for stored in loaded if stored is not None and stored.record is not None]:
                yield record
            if cursor == 0:
                return

    async def aclose(self) -> None:
        """Release tasks that no worker has begun, and close the connections."""
        self.wake()
        created, self._created = self._created, []
        with contextlib.suppress(StoreUnavailableError):
            for claim in created:
                await self.release(claim)
        signal, self._signal = self._signal, None
        if signal is not None and signal.get_loop() is asyncio.get_running_loop():
            signal.cancel()
            await asyncio.wait([signal])
        await self._scripts.aclose()
        await self._link.aclose()

    def _changed(self, record: TaskRecord) -> None:
        """Do nothing: an entry of the stream wakes one of all workers."""

    async def _change(self, key: TaskKey, transition: Transition) -> TaskRecord | None:
        changed = await self._replace(key, transition)
        return None if changed is None else changed.record

    async def _delete(self, keys: Sequence[TaskKey]) -> None:
        records = [(key, await self._load(key)) for key in keys]
        for key, record in records:
            self._ended.pop(key, None)
            if record is not None:
                arguments = (_member(key), position(record), key.task_id)
                await self._run(_DELETE, int, self._keys(key), arguments)

    async def _end_run(self, claim: Claim, transition: Transition) -> TaskRecord | None:
        """Apply a transition to the record of a claim, without reading it first if nobody has changed it."""
        now = self._clock()
        changed = transition(claim.record, now)
        stored = _Stored(now, claim.token.encode(), claim.record, None, b"")
        if changed is not None and await self._store(stored, changed):
            return changed
        return await self._change(claim.key, transition)

    async def _replace(self, key: TaskKey, transition: Transition, *, entry: bytes | None = None) -> _Stored | None:
        """Apply a transition and return the successor with the call; None if nothing has changed.

        Args:
            key: Of the task.
            transition: See `BaseTasks`.
            entry: The entry of the stream that brought the task here.
        """
        for _ in range(MAX_CONFLICTS):
            stored = await self._load_stored(key, "c")
            changed = _successor(stored, transition, entry)
            if stored is None or changed is None:
                return None
            if await self._store(stored, changed):
                return stored._replace(record=changed)
        raise StoreUnavailableError(store="task store")

    async def _store(self, stored: _Stored, changed: TaskRecord) -> bool:
        """Replace a record; return whether it was still the same. Raise TasksFullError if it grows without room."""
        keys, arguments = self._replacement(stored, changed)
        replaced, wait = await self._run(_REPLACE, list, keys, arguments)
        if replaced < 0:
            raise TasksFullError(int(wait) // 1000 + 1, is_owner_limit=replaced == -_OF_CALLER, of_bytes=True)
        return bool(replaced)

    def _replacement(self, stored: _Stored, changed: TaskRecord) -> tuple[list[str], list[Any]]:
        """Return the keys and arguments of `_REPLACE`."""
        key = changed.key
        arguments: list[Any] = [
            stored.version,
            _milliseconds(changed.expires),
            to_json(changed),
            changed.token if changed.claimed else "",
            _place(stored, changed),
            _member(key),
            changed_bytes(0, stored.record or changed, changed),
            *(self.limits.total_bytes, self.limits.bytes_per_principal),
            _next_version(stored, changed),
        ]
        if changed.outcome is not None:
            arguments += [changed.outcome.text, _milliseconds(changed.removed), position(changed), key.task_id]
        return self._keys(key), arguments

    async def _load_stored(self, key: TaskKey, *fields: str) -> _Stored | None:
        """Return a task, and note the time of Redis."""
        if not _KEY.fullmatch(_member(key)):
            return None
        (stored,) = await self._load_all([key], *fields)
        return stored

    async def _load_all(self, keys: Sequence[TaskKey], *fields: str) -> list[_Stored | None]:
        """Return tasks whose keys are valid, and note the time of Redis."""
        names = [self._hash(key) for key in keys]
        milliseconds, *replies = await self._run(_LOAD, list, names, fields)
        now = self._note_time(milliseconds)
        return [_stored(key, now, reply) for key, reply in zip(keys, replies, strict=True)]

    def _note_time(self, milliseconds: int) -> float:
        """Return the time of Redis in seconds, and note how the clock of this machine differs from it."""
        now = milliseconds / 1000
        self._skew = now - time()
        return now

    def _redis_time(self) -> float:
        """Return the time of Redis: the clocks of machines need not agree."""
        return time() + (self._skew or 0.0)

    def _waits_for_signal(self) -> bool:
        signal = self._signal
        return signal is not None and not signal.done() and signal.get_loop() is asyncio.get_running_loop()

    def _wake_claim(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    async def _await_task(self, count: int) -> None:
        """Wait until this process has created a task, or until the wait for a signal ends."""
        self._wakeup = asyncio.get_running_loop().create_future()
        self._room = count
        try:
            await self._wakeup
        finally:
            self._room = 0
            self._wakeup = None

    async def _await_signal(self) -> None:
        """Wait for a signal for a second at most, and pass it on if this worker does not wait for it any more."""
        signals: list[Any] = []

        async def pop(redis: Redis) -> None:
            signals.append(await redis.blpop([self._signals], timeout=_WAIT))

        async def push(redis: Redis) -> int:
            length: int = await redis.rpush(self._signals, b"")
            return length

        try:
            await self._link.reach(pop, _WAIT + self._link.timeout)
            self._link.note_success()
            if signals != [None] and self._wakeup is None:
                await self._do(push, int)
        except StoreUnavailableError:
            pass  # all workers read the stream once a second
        except Exception as error:  # noqa: BLE001 - as in RedisLink.do: exceptions of the event loop and the parser
            self._link.note_failure(error)
        self._wake_claim()

    async def _take(self, count: int) -> list[Claim]:
        """Claim tasks in the stream, at most so many.

        Once a second, it also takes those whose workers have not renewed their leases.
        """
        lease = ""
        if monotonic() >= self._lapsed_at:
            lease = str(int(self.lease * 1000))
            self._lapsed_at = monotonic() + min(self.lease / 3, _LAPSED_INTERVAL)
        keys = (self._stream, self._delayed, self._signals)
        arguments = (count, f"{self._prefix}:task:", lease, self._cursor)
        try:
            (milliseconds, cursor), *rows = await self._run(_TAKE, list, keys, arguments)
        except StoreUnavailableError:
            self._lapsed_at = 0.0
            raise
        self._cursor = cursor
        if cursor != _FIRST_ENTRY:
            self._lapsed_at = 0.0  # there may be more
        now = self._note_time(milliseconds)
        return await self._claim_all([_taken(now, row) for row in rows]) if rows else []

    async def _claim_all(self, taken: Sequence[_Taken]) -> list[Claim]:
        """Give the tasks of entries to this worker.

        If Redis fails meanwhile, entries without a claim stay pending, and are due again when their lease lapses.
        """
        replacements: list[_Replacement] = []
        unclaimed: list[tuple[bytes, TaskKey]] = []
        useless: list[bytes] = []
        for entry, key, stored in taken:
            changed = _successor(stored, _claimed_by_entry, entry)
            if key is None or stored is None:
                useless.append(entry)
            elif changed is None:
                unclaimed.append((entry, key))
            else:
                replacements.append(_Replacement(stored, changed, *self._replacement(stored, changed)))
        if useless:
            await self._drop(useless)
        claims: list[Claim] = []
        replies = await self._store_all(replacements) if replacements else []
        for write, replaced in zip(replacements, replies, strict=True):
            if replaced:
                claims.append(_claim(write.stored, write.changed))
            elif write.stored.entry is not None:
                unclaimed.append((write.stored.entry, write.changed.key))
        return claims + await self._claim_singly(unclaimed, optional=bool(claims))

    async def _claim_singly(self, entries: Sequence[tuple[bytes, TaskKey]], *, optional: bool) -> list[Claim]:
        """Give tasks to this worker one by one.

        Args:
            entries: Entries whose tasks have changed, or can't be claimed.
            optional: Return what there is if Redis fails, as the worker already has other claims.
        """
        claims: list[Claim] = []
        for entry, key in entries:
            try:
                claim = await self._claim(entry, key)
            except StoreUnavailableError:
                if not claims and not optional:
                    raise
                break
            if claim is not None:
                claims.append(claim)
        return claims

    async def _store_all(self, replacements: Sequence[_Replacement]) -> list[bool]:
        """Replace records in one pipeline; return for each whether Redis has done so.

        If Redis does not reply, it may have done so: `_claim_unconfirmed` sends the same writes again.
        """

        async def send(redis: Redis) -> list[Any]:
            pipeline = redis.pipeline(transaction=False)
            for write in replacements:
                pipeline.evalsha(_REPLACE.digest, len(write.keys), *write.keys, *write.arguments)
            return await pipeline.execute(raise_on_error=False)

        self._unconfirmed = replacements
        replies = await self._do(send, list)
        self._unconfirmed = ()
        return [reply == [1, 0] for reply in replies]

    async def _claim_unconfirmed(self) -> list[Claim]:
        """Return the claims of an earlier `claim` to which Redis has not replied, as far as they are still valid."""
        writes = self._unconfirmed
        replies = await self._store_all(writes)
        return [
            _claim(write.stored, write.changed) for write, replaced in zip(writes, replies, strict=True) if replaced
        ]

    async def _claim(self, entry: bytes, key: TaskKey) -> Claim | None:
        """Give the task of one entry to this worker. An entry that stands for no task to run is removed."""
        stored = await self._replace(key, _claimed_by_entry, entry=entry)
        if stored is not None and stored.record is not None:
            return _claim(stored, stored.record)
        stored = await self._load_stored(key)
        if stored is not None and stored.record is None:
            return None  # another version wrote it, and may read it: it gets the entry when the lease lapses
        await self._drop([entry])
        return None

    async def _drop(self, entries: Sequence[bytes]) -> None:
        """Remove entries of the stream."""
        await self._run(_DROP, int, (self._stream,), entries)

    async def _run(self, script: _Script, kind: type, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        """Run a script and return its reply, which is of this type; raise StoreUnavailableError."""
        return await self._scripts.do(_Call(script, kind, keys, arguments))

    async def _do(self, work: Callable[[Redis], Awaitable[Any]], kind: Any) -> Any:
        """Do what `RedisLink.do` says; name the store in the error, which the client gets."""
        try:
            return await self._link.do(work, kind)
        except StoreUnavailableError as error:
            raise StoreUnavailableError(store=_STORE) from error

    def _keys(self, key: TaskKey) -> list[str]:
        """Return the keys of `_CREATE` and `_REPLACE`."""
        shared = [self._stream, self._delayed, self._signals, self._all, self._sizes, self._sums]
        return [self._hash(key), *shared, *self._sets(key)]

    def _hash(self, key: TaskKey) -> str:
        return f"{self._prefix}:task:{_member(key)}"

    def _sets(self, key: TaskKey) -> list[str]:
        """Return the keys of the sets with the tasks of an owner; none for anonymous callers."""
        if key.owner is None:
            return []
        return [f"{self._prefix}:of:{key.owner}", f"{self._prefix}:live:{key.owner}"]


async def _run_all(redis: Redis, calls: Sequence[_Call]) -> list[Any] | None:
    """Return the replies of scripts, among them exceptions; None if one is of another type than it has to be."""
    replies: list[Any]
    if len(calls) == 1:
        (call,) = calls
        replies = [await call.script.run(redis, call.keys, *call.arguments)]
    else:
        pipeline = redis.pipeline(transaction=False)
        for call in calls:
            pipeline.evalsha(call.script.digest, len(call.keys), *call.keys, *call.arguments)
        replies = await pipeline.execute(raise_on_error=False)
    for index, (call, reply) in enumerate(zip(calls, replies, strict=True)):
        if isinstance(reply, NoScriptError):
            try:
                replies[index] = await call.script.run(redis, call.keys, *call.arguments)
            except ResponseError as error:
                replies[index] = error
    for call, reply in zip(calls, replies, strict=True):
        if not isinstance(reply, (call.kind, Exception)):
            return None
    return replies


async def _scanned(redis: Redis, *, key: str, cursor: int) -> tuple[int, list[tuple[bytes, float]]]:
    """Return members of a sorted set, and the cursor for the next ones; 0 after the last ones."""
    reply: Any = await redis.zscan(key, cursor, count=_SCANNED)
    return reply[0], reply[1]


def _key_of(member: bytes) -> TaskKey | None:
    """Return the key that an entry of the stream names."""
    match = _KEY.fullmatch(member.decode(errors="replace"))
    if match is None:
        return None
    return TaskKey(None if match["owner"] == _ANONYMOUS else match["owner"], match["id"])


def _taken(now: float, row: Sequence[Any]) -> _Taken:
    """Return an entry from the reply of `_TAKE`."""
    entry, member, reply = row
    key = _key_of(member)
    return _Taken(entry, key, None if key is None else _stored(key, now, reply))


def _stored(key: TaskKey, now: float, reply: Sequence[Any]) -> _Stored | None:
    """Return a task from its fields."""
    version, state, outcome, entry, *fields = reply
    if version is None or state is None:
        return None
    call = fields[0] if fields and fields[0] is not None else b""
    return _Stored(now, version, from_json(key, state, outcome), entry, call)


def _successor(
    stored: _Stored | None,
    transition: Transition,
    entry: bytes | None,
) -> TaskRecord | None:
    """Return what a transition makes of a task; None if it changes nothing.

    Args:
        stored: The task.
        transition: See `BaseTasks`.
        entry: The entry of the stream that brought the task here.
    """
    if stored is None or (entry is not None and stored.entry != entry):
        return None
    return successor(stored.record, stored.now, transition)


def _claimed_by_entry(record: TaskRecord, now: float) -> TaskRecord | None:
    """Claim a task. The lease is the idle time of its entry: the record is due for whoever has the entry."""
    return claimed(record, now, 0.0)


def _claim(stored: _Stored, changed: TaskRecord) -> Claim:
    """Return the claim of a task after `_REPLACE`."""
    return Claim(changed, stored.call, stored.now)


def _next_version(stored: _Stored, changed: TaskRecord) -> str:
    """Return the version of a record that replaces another: the token of a new claim, else any text."""
    before = stored.record
    if before is not None and before.token != changed.token:
        return changed.token
    return token_hex(8)


def _place(stored: _Stored, changed: TaskRecord) -> str:
    """Return what becomes of the entry in the stream; see `_REPLACE`."""
    if changed.due is None:
        return "leaves"
    before = stored.record
    if changed.claimed or (before is not None and not before.claimed and before.due == changed.due):
        return "stays"
    return "due" if changed.due <= stored.now else _milliseconds(changed.due)


def _member(key: TaskKey) -> str:
    return f"{_ANONYMOUS if key.owner is None else key.owner}:{key.task_id}"


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))
