"""The scripts of tasks in Redis: every rule that Redis itself applies.

A task is a hash with the fields below. A task that is due has one entry in the stream of its lane, which names its
member of the other keys (`k`).

    v  the version: a random token of the last write  s  the record as JSON         e  the id of its entry in the stream
    a  the token of the claim that holds the task     c  the call, until the end    o  the text of the outcome

A script that writes compares the version, or the token of the claim, and changes record, stream and sums together, so
that they never disagree. If the reply to a write is lost, the write is sent again with the same token, and Redis
replies as it did at first. Redis does not look into any JSON: its Lua library would change it (``[]`` becomes ``{}``,
and large integers lose digits).

The hash `sizes` has the bytes and the payer of each task, and the hash `bytes` their sums for each payer, and for all
under ``*``. Scripts change them with the task. Tasks that have expired leave the sums when another one is created, or
needs room.
"""

from __future__ import annotations

from hashlib import sha1
from typing import TYPE_CHECKING, Any, NamedTuple

try:
    from redis.exceptions import NoScriptError, ResponseError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Redis needs: pip install "funcmcp[redis]"', name=error.name) from None

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import UnionType

    from redis.asyncio import Redis
    from redis.asyncio.connection import AbstractConnection

OF_CALLER = 2
"""The scripts' number for a limit that the caller has reached."""
OF_BYTES, OF_LIVE = 1, 2
"""The scripts' numbers for limits of bytes, and of tasks that have not ended."""


class Script:
    """A script that Redis keeps by its digest."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = sha1(text.encode(), usedforsecurity=False).hexdigest()


_WITHOUT_ROOM = "#!lua flags=allow-oom\n"
"""Begins scripts that a Redis without memory runs as well, from Redis 7.0 on. All do but `CREATE`: finished work must
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

CREATE = Script(
    _ADD_ENTRY
    + _ROOM
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then
  if ARGV[11] == '' or redis.call('HGET', KEYS[1], 'v') == ARGV[11] then return 0 end
  return 3
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function full(key, limit)
  if redis.call('ZCOUNT', key, now, '+inf') < tonumber(limit) then return nil end
  return until_first(key, now)
end
local wait = full(KEYS[5], ARGV[8])
if wait then return {1, wait, 0} end
if #KEYS > 8 then
  wait = full(KEYS[9], ARGV[10])
  if wait then return {2, wait, 2} end
  wait = full(KEYS[8], ARGV[9])
  if wait then return {2, wait, 0} end
end
remove_old(KEYS[5], KEYS[6], KEYS[7], now)
local owner = is_full(KEYS[7], ARGV[14], ARGV[13], ARGV[15], ARGV[16])
if owner > 0 then return {owner, until_first(owner == 2 and KEYS[8] or KEYS[5], now), 1} end
redis.call('HSET', KEYS[1], 'v', ARGV[11], 's', ARGV[1], 'c', ARGV[2], 'a', ARGV[11])
if ARGV[18] ~= '' then redis.call('SADD', KEYS[#KEYS], ARGV[18]) end
if ARGV[17] ~= '' then
  redis.call('ZADD', KEYS[3], ARGV[17], ARGV[3])
elseif ARGV[11] == '' then
  add_entry(KEYS[1], KEYS[2], KEYS[4], ARGV[3])
else
  redis.call('ZADD', KEYS[3], now + ARGV[12], ARGV[3])
end
redis.call('PEXPIREAT', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[5], ARGV[5], ARGV[3])
count_task(KEYS[6], KEYS[7], ARGV[3], ARGV[14], 0, tonumber(ARGV[13]))
if #KEYS > 8 then
  redis.call('ZADD', KEYS[8], ARGV[5], ARGV[6])
  redis.call('ZADD', KEYS[9], ARGV[4], ARGV[7])
  for _, key in ipairs({KEYS[8], KEYS[9]}) do
    redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. now)
    redis.call('PEXPIREAT', key, redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
  end
end
return 0
"""
)
"""Create a task that is due or claimed, unless there is no room. A task that exists already is left as it is: ids are
random, so it is of the same call, whose reply was lost.

KEYS: task, stream, delayed tasks, signals, all tasks, sizes, sums; of a principal also its tasks and its live tasks;
if the lane has a name, also the names of lanes. ARGV: record, call, member, expiry, removal, position, id, limits of
the three sets, token of the claim with which the task is created (empty if none), milliseconds of the lease, bytes,
payer (empty if unknown), limits of the bytes of all tasks and of the payer's, when the task is due (empty for at once),
and the name of the lane. Return 0; or 3 if the task exists, and another worker has claimed it; or 1 (all) or 2 (the
caller's), the milliseconds until there may be room, and what is full (1 for bytes, 2 for live tasks, 0 for tasks).
Expired tasks leave the sums first. Otherwise the first write is the one that takes memory: a full Redis refuses nothing
of a script that has begun to write.
"""

LOAD = Script("""
local time = redis.call('TIME')
local reply = {time[1] * 1000 + math.floor(time[2] / 1000)}
for index, key in ipairs(KEYS) do
  reply[index + 1] = redis.pcall('HMGET', key, 'v', 's', 'o', 'e', unpack(ARGV))
end
return reply
""")
"""Return the time, and for each task its version, record, outcome, entry, and the fields in ARGV.

The reply for a key that is not a hash is an error.
"""

REPLACE = Script(
    _WITHOUT_ROOM
    + _ADD_ENTRY
    + _ROOM
    + """
local fields = redis.call('HMGET', KEYS[1], 'v', 'e')
if fields[1] == ARGV[10] then return 1 end
if fields[1] ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now >= tonumber(ARGV[2]) then return 0 end
local old, payer, new = 0, '', 0
if ARGV[7] ~= '0' or #ARGV > 10 then
  old, payer = size_of(KEYS[6], ARGV[6])
  new = ARGV[15] == 'drops' and tonumber(ARGV[7]) or old + ARGV[7]
  if new > old and is_full(KEYS[7], payer, new - old, ARGV[8], ARGV[9]) > 0 then
    remove_old(KEYS[5], KEYS[6], KEYS[7], now)
    local owner = is_full(KEYS[7], payer, new - old, ARGV[8], ARGV[9])
    if owner > 0 then return {owner, until_first(owner == 2 and KEYS[8] or KEYS[5], now)} end
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
  if ARGV[15] == 'drops' then redis.call('HDEL', KEYS[1], 'c') end
  redis.call('PEXPIREAT', KEYS[1], ARGV[12])
  redis.call('ZADD', KEYS[5], 'XX', ARGV[12], ARGV[6])
  if #KEYS > 7 then
    redis.call('ZADD', KEYS[8], 'XX', ARGV[12], ARGV[13])
    redis.call('ZREM', KEYS[9], ARGV[14])
  end
end
return 1
"""
)
"""Replace a record whose version is still the same and that has not expired.

KEYS: as of `CREATE`. ARGV: version, expiry, record, token of the claim, what becomes of the entry ('stays',
'leaves', 'due', or the time when it is due), member, the bytes by which the task grows (those that are left of a task
that ends and does not keep its call), limits of the bytes of all tasks and of the payer's, the next version; of a task
that ends also outcome, removal, position, id, and whether it 'keeps' or 'drops' its call. Return 1, also if this write
was done already; or 0 if the record has changed or expired; or, if there is no room, 1 (of all) or 2 (of the caller)
and the milliseconds until there may be.
"""

DELETE = Script(
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
"""Remove a task. KEYS: as of `CREATE`. ARGV: member, position, id."""

RENEW = Script(
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

TAKE = Script(
    _WITHOUT_ROOM
    + """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count = tonumber(ARGV[1])
local taken = {}
local function take(entries, is_new)
  for _, entry in ipairs(entries) do
    local fields = entry and entry[2] or {}
    local member, delivery = '', 1
    for index = 1, #fields, 2 do
      if fields[index] == 'k' then member = fields[index + 1] end
    end
    if entry and not is_new then
      delivery = redis.call('XPENDING', KEYS[1], 'workers', entry[1], entry[1], 1)[1][4]
    end
    if entry then taken[#taken + 1] = {entry[1], member, delivery} end
  end
end
local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
if groups.err or #groups == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[1], 'workers', '0', 'MKSTREAM')
end
local cursor = ARGV[3]
if ARGV[2] ~= '' then
  for _ = 1, 20 do
    local step = redis.call(
      'XAUTOCLAIM', KEYS[1], 'workers', 'worker', ARGV[2], cursor, 'COUNT', count - #taken)
    cursor = step[1]
    take(step[2], false)
    if cursor == '0-0' or #taken >= count then break end
  end
end
if #taken < count then
  local new = redis.call(
    'XREADGROUP', 'GROUP', 'workers', 'worker', 'COUNT', count - #taken, 'STREAMS', KEYS[1], '>')
  if new then take(new[1][2], true) end
end
if #taken < count then redis.call('DEL', KEYS[3]) end
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)
return {now, cursor, due, taken}
"""
)
"""Give entries to this worker, and find delayed tasks that are due now.

KEYS: stream, delayed tasks, signals. ARGV: number of entries, the milliseconds of the lease to take lapsed entries
first (empty to leave them), and the entry at which to begin to look for these. Return the time, where to continue, the
members of delayed tasks that are due, and for each entry its id, its member and how often it was delivered. A step of
XAUTOCLAIM looks at ten times as many entries as it may return.
"""

CLAIM = Script(
    _WITHOUT_ROOM
    + """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local members = ',"expires":([%d.]+),"attempts":(%d+),"attempt":(%d+),"token":"%x*","starts":(%d+),'
  .. '"claimed":%l+,"due":[%d.]+,"v":1}$'
local function claimed(record, token)
  local tail = string.sub(record, -400)
  local first, _, expires, attempts, attempt, starts = string.find(tail, members)
  if not first or tonumber(starts) >= tonumber(attempts) or now >= expires * 1000 then return nil end
  return string.sub(record, 1, #record - #tail + first - 1) .. string.format(
    ',"expires":%s,"attempts":%s,"attempt":%d,"token":"%s","starts":%d,"claimed":true,"due":%.3f,"v":1}',
    expires, attempts, attempt + 1, token, starts + 1, now / 1000)
end
local reply = {now}
for index = 2, #KEYS do
  local entry, delivery, token = unpack(ARGV, 3 * index - 5, 3 * index - 3)
  local fields = redis.pcall('HMGET', KEYS[index], 'v', 's', 'c', 'e', 'o')
  if fields.err or not fields[1] or not fields[2] then
    reply[index] = 0
  elseif fields[1] == token then
    reply[index] = {fields[2], fields[3] or ''}
  else
    local pending = redis.pcall('XPENDING', KEYS[1], 'workers', entry, entry, 1)[1]
    if not pending or pending[4] ~= tonumber(delivery) then
      reply[index] = 1
    else
      local record = fields[4] == entry and not fields[5] and claimed(fields[2], token)
      if record then
        redis.call('HSET', KEYS[index], 'v', token, 's', record, 'a', token)
        reply[index] = {record, fields[3] or ''}
      else
        reply[index] = fields[1]
      end
    end
  end
end
return reply
"""
)
"""Claim the tasks of entries that this worker has; a claim that was made already is the same again.

KEYS: stream, and the tasks. ARGV: for each task the id of its entry, the number of this delivery of the entry, and the
token of the claim. Return the time, and for each task the record and the call. The reply for a task is 0 if it does not
exist, and 1 if the entry went to another worker meanwhile. It is the version if the claim needs more than the last
members of the record (`record.to_json`): an older version of the server wrote it, or the task may not start again, or
the entry is not that of the task. The pattern can't match text within a string: a quote there has a backslash before
it.
"""

ADD_DUE = Script(
    _WITHOUT_ROOM
    + _ADD_ENTRY
    + """
for index, member in ipairs(ARGV) do
  local key = KEYS[3 + index]
  if redis.call('ZREM', KEYS[2], member) == 1 and redis.call('EXISTS', key) == 1 then
    add_entry(key, KEYS[1], KEYS[3], member)
  end
end
return #ARGV
"""
)
"""Add entries for delayed tasks that are due, unless another worker has done so.

KEYS: stream, delayed tasks, signals, and the tasks. ARGV: the members of the tasks.
"""

BACKLOG = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local waiting, oldest = 0, 0
local function count(tasks, since)
  if tasks > 0 then waiting, oldest = waiting + tasks, math.max(oldest, now - since) end
end
local delayed = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
if delayed[2] then count(redis.call('ZCOUNT', KEYS[2], '-inf', now), delayed[2]) end
local begin, taken = '-', 0
local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
if not groups.err and #groups > 0 then
  for index = 1, #groups[1], 2 do
    if groups[1][index] == 'last-delivered-id' then begin = '(' .. groups[1][index + 1] end
  end
  taken = redis.call('XPENDING', KEYS[1], 'workers')[1]
  for _, entry in ipairs(redis.call('XPENDING', KEYS[1], 'workers', 'IDLE', ARGV[1], '-', '+', 1000)) do
    count(1, now - entry[3] + ARGV[1])
  end
end
local first = redis.call('XRANGE', KEYS[1], begin, '+', 'COUNT', 1)[1]
if first then count(redis.call('XLEN', KEYS[1]) - taken, string.match(first[1], '%d+')) end
return {waiting, oldest}
""")
"""Count the tasks that are due and that no worker has: entries that nobody has read, at most 1,000 entries whose leases
have lapsed, and delayed tasks that are due.

KEYS: stream, delayed tasks. ARGV: the milliseconds of the lease. Return their number, and the milliseconds since the
first of them became due.
"""

DROP = Script(
    _WITHOUT_ROOM
    + """
redis.call('XACK', KEYS[1], 'workers', unpack(ARGV))
return redis.call('XDEL', KEYS[1], unpack(ARGV))
"""
)


class Call(NamedTuple):
    """A script to run.

    Attributes:
        script: The script.
        kind: The type of its reply, or a union of types.
        keys: Its keys.
        arguments: Its other arguments.
    """

    script: Script
    kind: type | UnionType
    keys: Sequence[str]
    arguments: Sequence[Any]


async def run_all(redis: Redis, calls: Sequence[Call]) -> list[Any] | None:
    """Return the replies of scripts, among them exceptions; None if one is of another type than it has to be."""
    replies = await _exchange(redis, [_packed("EVALSHA", call.script.digest, call) for call in calls])
    unknown = [index for index, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        texts = [_packed("EVAL", calls[index].script.text, calls[index]) for index in unknown]
        for index, reply in zip(unknown, await _exchange(redis, texts), strict=True):
            replies[index] = reply
    for call, reply in zip(calls, replies, strict=True):
        if not isinstance(reply, (call.kind, Exception)):
            return None
    return replies


async def _exchange(redis: Redis, commands: Sequence[bytes]) -> list[Any]:
    """Return the replies to commands, which are sent at once; a refusal is an exception among them.

    A pipeline of the client library takes twice the CPU time: it encodes each word of a command by itself.
    """

    async def send_and_read() -> list[Any]:
        await connection.send_packed_command(commands)
        return [await _reply(connection) for _ in commands]

    pool: Any = redis.connection_pool  # the client library does not declare the types of its methods
    connection = await pool.get_connection()
    try:
        replies: list[Any] = await connection.retry.call_with_retry(
            send_and_read, lambda _error: connection.disconnect()
        )
    finally:
        await pool.release(connection)
    return replies


async def _reply(connection: AbstractConnection) -> Any:
    """Return the next reply; a refusal is an exception."""
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error


def _packed(name: str, script: str, call: Call) -> bytes:
    """Return the command that runs a script, as the protocol of Redis has it."""
    command = [name, script, len(call.keys), *call.keys, *call.arguments]
    texts = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    return b"*%d\r\n" % len(texts) + b"".join([b"$%d\r\n%b\r\n" % (len(text), text) for text in texts])
