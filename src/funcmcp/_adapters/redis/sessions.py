"""Sessions in Redis, which all instances of a server share.

How it works: a session is a hash under ``PREFIX:session:ID``. Its fields are the handshake (`handshake`), the names of
the sets that count it (`owned` and, for an anonymous session of a known address, `at`), and the notes: `level:OWNER`
and `uri:OWNER:URI`, with an empty owner for the session itself. A sorted set of session ids by expiry counts the
sessions of each principal, another one all anonymous sessions, and others those of each address. The hash expires when
the session has been idle; each instance postpones that from time to time, not with each request (`_alive_until`),
because Redis writes every change to its disk. The scripts below are atomic and use the clock of Redis. The reads that
the requests of one iteration of the event loop need go to Redis in one pipeline.

Needs ``pip install "funcmcp[redis]"``. While Redis can't be reached, every method raises StoreUnavailableError in a
bounded time.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

try:
    from redis.exceptions import ResponseError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Redis needs: pip install "funcmcp[redis]"', name=error.name) from None

from funcmcp._adapters.redis.bus import RedisBus
from funcmcp._adapters.redis.link import link_to
from funcmcp._adapters.redis.shared_pipeline import SharedPipeline
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._protocol.levels import LEVELS
from funcmcp._state.records import value_of
from funcmcp._state.sessions.store import UNUSED_SECONDS, Handshake, Notes, SessionsFullError, SharedSessions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redis.asyncio import Redis

    from funcmcp._adapters.redis.link import RedisLink
    from funcmcp._state.seal import KeyRing
    from funcmcp._state.sessions.store import SessionKey

_ID = re.compile(r"[A-Za-z0-9_-]{44}")
_ID_BYTES = 33
_MAX_ALIVE = 10_000
_HANDSHAKE = "handshake"
_SETS = ("owned", "at")
"""Fields with the names of the sets that count a session."""

_CREATE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life = tonumber(ARGV[2])
for index = 2, #KEYS do
  if redis.call('ZCOUNT', KEYS[index], now, '+inf') >= tonumber(ARGV[2 + index]) then
    local first = redis.call('ZRANGEBYSCORE', KEYS[index], now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    return {index, first - now + 1}
  end
end
redis.call('HSET', KEYS[1], 'handshake', ARGV[1], 'owned', KEYS[2], 'at', KEYS[3] or '')
redis.call('PEXPIRE', KEYS[1], life)
for index = 2, #KEYS do
  redis.call('ZADD', KEYS[index], now + life, ARGV[3])
  redis.call('ZREMRANGEBYSCORE', KEYS[index], '-inf', '(' .. now)
  if not string.find(KEYS[index], ':anonymous$') then
    local last = redis.call('ZRANGE', KEYS[index], -1, -1, 'WITHSCORES')[2]
    redis.call('PEXPIREAT', KEYS[index], last)
  end
end
return {0, 0}
"""
"""Create a session and add it, with the time of its expiry, to the sets that count it.

KEYS: the hash, the set of its principal or of the anonymous sessions, and the set of its address. ARGV: handshake,
milliseconds to live, id, and the limits of the sets. If a set is full, return the index of its key and the milliseconds
until its first session expires; else 0 and 0. The write that takes memory comes first: a full Redis refuses no command
of a script that has begun to write. The set of a principal or an address expires with its last session. The set of
anonymous sessions has no expiry, so that an eviction policy for volatile keys can't remove the count.
"""

_KEEP_ALIVE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
for index = 2, #KEYS do
  redis.call('ZADD', KEYS[index], 'XX', now + ARGV[1], ARGV[2])
  if redis.call('PTTL', KEYS[index]) > 0 then redis.call('PEXPIRE', KEYS[index], ARGV[1]) end
end
"""
"""Postpone the expiry of a session. KEYS: the hash, and the sets that count it. ARGV: milliseconds to live, id."""

_END = """
for index = 2, #KEYS do redis.call('ZREM', KEYS[index], ARGV[1]) end
return redis.call('DEL', KEYS[1])
"""
"""End a session. KEYS: as of `_KEEP_ALIVE`. ARGV: id."""

_SET_IF_EXISTS = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
"""
"""Set a field of a session that exists. A session that has ended must not come back as a hash that never expires."""


class _Read(NamedTuple):
    """A session whose record is read.

    Attributes:
        key: The key of its hash.
        session_id: Its id.
        keep_alive: Whether its expiry is postponed.
    """

    key: str
    session_id: str
    keep_alive: bool


@public("funcmcp.redis")
class RedisSessions(SharedSessions):
    """Sessions in Redis. Any instance serves any of their requests.

    Args:
        redis: The URL of Redis, or a `RedisLink` with more options.
        idle: Seconds without a request after which a session ends. A session whose client sends nothing after
            `initialize` ends after five minutes at most.
        per_principal: Number of sessions of one principal at once. When it is reached, its new sessions are refused
            with 429.
        anonymous: Number of sessions without a principal at once. When it is reached, new ones are refused with 503.
            An address has half of it.
        keys: Seal what clients carry between requests. The default is as in `funcmcp.state.SignedSessions`.

    Raises:
        ValueError: The URL has an unknown scheme.
    """

    def __init__(
        self,
        redis: str | RedisLink,
        *,
        idle: float = 1800.0,
        per_principal: int = 5_000,
        anonymous: int = 10_000,
        keys: KeyRing | None = None,
    ) -> None:
        self.keys = keys
        self._link = link_to(redis)
        self._per_principal = per_principal
        self._anonymous = anonymous
        self._per_address = max(1, anonymous // 2)
        self._alive_until: dict[str, float] = {}
        """By session id, the time until which its expiry need not be postponed."""
        self._renewal_interval = idle / 10
        self._lifetime = int((idle + self._renewal_interval) * 1000)
        self._unused_lifetime = min(self._lifetime, int(UNUSED_SECONDS * 1000))
        self._reads: SharedPipeline[_Read] = SharedPipeline(self._link, self._read_all)
        self.bus: RedisBus = RedisBus(self._link)
        self.endings: list[Callable[[str], None]] = []

    async def create(self, handshake: Handshake) -> str:
        """Create a session and return its id; raise SessionsFullError or StoreUnavailableError."""
        session_id = secrets.token_urlsafe(_ID_BYTES)
        handshake = handshake.reduced()
        record = encode([handshake.revision, handshake.capabilities, handshake.info, handshake.owner])
        sets = self._sets(handshake)
        keys = [self._key(session_id), *sets]
        arguments: list[Any] = [record, self._unused_lifetime, session_id, *sets.values()]
        full, wait = await self._link.do(lambda redis: redis.eval(_CREATE, len(keys), *keys, *arguments), list)
        if full:
            is_owner_limit = keys[full - 1] != f"{self._link.prefix}:anonymous"
            raise SessionsFullError(wait // 1000 + 1, is_owner_limit=is_owner_limit)
        return session_id

    def _sets(self, handshake: Handshake) -> dict[str, int]:
        """Return the limits of the sets that count a session, by their keys."""
        prefix = self._link.prefix
        if handshake.owner is not None:
            return {f"{prefix}:owned:{handshake.owner}": self._per_principal}
        sets = {f"{prefix}:anonymous": self._anonymous}
        if handshake.address is not None:
            sets[f"{prefix}:at:{handshake.address}"] = self._per_address
        return sets

    async def get(self, session_id: str) -> Handshake | None:
        """Return the handshake of a session, or None; postpone its expiry. Raise StoreUnavailableError.

        A record that this version can't read belongs to another version of the server. It is not a session here.
        """
        if not _ID.fullmatch(session_id):
            return None
        now = monotonic()
        keep_alive = self._alive_until.get(session_id, 0.0) <= now
        record = await self._reads.do(_Read(self._key(session_id), session_id, keep_alive))
        handshake = None if record is None else _handshake(record)
        if handshake is None:
            self._alive_until.pop(session_id, None)
            for on_end in self.endings:
                on_end(session_id)
        elif keep_alive:
            if len(self._alive_until) >= _MAX_ALIVE:
                self._alive_until.clear()
            self._alive_until[session_id] = now + self._renewal_interval
        return handshake

    async def _read_all(self, redis: Redis, reads: Sequence[_Read]) -> list[Any] | None:
        """Return the records of sessions, None for each that does not exist or is not a hash.

        There may be exceptions among them. None stands for replies of which one is of another type than it has to be.
        """
        if len(reads) == 1 and not reads[0].keep_alive:
            replies = [await _read_one(redis, reads[0].key)]
        else:
            pipeline = redis.pipeline(transaction=False)
            for read in reads:
                if read.keep_alive:
                    pipeline.hmget(read.key, [_HANDSHAKE, *_SETS])
                else:
                    pipeline.hget(read.key, _HANDSHAKE)
            replies = await pipeline.execute(raise_on_error=False)
        if not all(_is_valid(read, reply) for read, reply in zip(reads, replies, strict=True)):
            return None
        for index, reply in enumerate(replies):
            if isinstance(reply, list):
                replies[index], *sets = reply
                if reply is not None:
                    await self._postpone(redis, reads[index], sets)
        return [_record_in(reply) for reply in replies]

    async def _postpone(self, redis: Redis, read: _Read, sets: Sequence[bytes | None]) -> None:
        """Postpone the expiry of a session. A read-only Redis can't postpone, but reads."""
        keys: list[Any] = [read.key, *filter(None, sets)]
        with contextlib.suppress(ResponseError):
            await redis.eval(_KEEP_ALIVE, len(keys), *keys, self._lifetime, read.session_id)

    async def end(self, session_id: str) -> bool:
        """End a session for all instances; return whether it existed. Raise StoreUnavailableError."""
        if not _ID.fullmatch(session_id):
            return False
        ended: int = await self._link.do(partial(_end, key=self._key(session_id), session_id=session_id), int)
        return ended > 0

    async def notes(self, key: SessionKey) -> Notes:
        """Return the notes of a session, or of a part of it; raise StoreUnavailableError."""
        fields: dict[str, str] = await self._link.do(partial(_fields_of, key=self._key(key.session_id)))
        prefix = _uri_field(key, "")
        uris = frozenset(name.removeprefix(prefix) for name in fields if name.startswith(prefix))
        level = fields.get(_level_field(key))
        if level not in LEVELS:
            level = None
        return Notes(level, uris)

    async def note_level(self, key: SessionKey, level: str) -> None:
        """Store a log level for the lifetime of the session; raise StoreUnavailableError."""
        await self._set(key.session_id, _level_field(key), level)

    async def note_subscription(self, key: SessionKey, uri: str, *, subscribe: bool) -> None:
        """Add or remove the URI of a resource for the lifetime of the session; raise StoreUnavailableError."""
        field = _uri_field(key, uri)
        if subscribe:
            await self._set(key.session_id, field, "")
        else:
            await self._link.do(lambda redis: redis.hdel(self._key(key.session_id), field))

    async def _set(self, session_id: str, field: str, value: str) -> None:
        await self._link.do(lambda redis: redis.eval(_SET_IF_EXISTS, 1, self._key(session_id), field, value))

    def _key(self, session_id: str) -> str:
        return f"{self._link.prefix}:session:{session_id}"


def _level_field(key: SessionKey) -> str:
    return f"level:{key.owner or ''}"


def _uri_field(key: SessionKey, uri: str) -> str:
    return f"uri:{key.owner or ''}:{uri}"


async def _end(redis: Redis, *, key: str, session_id: str) -> Any:
    """Remove a session from its hash and the sets that count it; return the number of hashes that existed."""
    sets: Any = await redis.hmget(key, list(_SETS))
    keys: list[Any] = [key, *filter(None, sets)]
    return await redis.eval(_END, len(keys), *keys, session_id)


async def _fields_of(redis: Redis, *, key: str) -> dict[str, str]:
    """Return the fields of a hash."""
    fields: Any = await redis.hgetall(key)
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in fields.items()}


async def _read_one(redis: Redis, key: str) -> Any:
    """Return the reply of Redis, as a pipeline does, in two thirds of its CPU time."""
    try:
        return await redis.hget(key, _HANDSHAKE)
    except ResponseError as error:
        return error


def _is_valid(read: _Read, reply: Any) -> bool:
    """Return whether a reply is of the type that it has to be. Each command may also be refused."""
    if isinstance(reply, list) and read.keep_alive:
        return len(reply) == 1 + len(_SETS) and all(isinstance(field, bytes | None) for field in reply)
    return isinstance(reply, Exception) or (isinstance(reply, bytes | None) and not read.keep_alive)


def _record_in(reply: Any) -> Any:
    """Return the record in a reply; None for a key that is not a hash."""
    if isinstance(reply, ResponseError) and str(reply).startswith("WRONGTYPE"):
        return None
    return reply


def _handshake(record: bytes) -> Handshake | None:
    """Return the handshake in a record, or None if this version can't read it.

    This version and 0.1 write a list. A list with further values is refused, because a value that this version can't
    read may restrict the session. A later version may write names (`funcmcp._state.records`), with which it may add
    members that do not restrict it.
    """
    match value_of(record):
        case [str(revision), dict(capabilities), dict(info), str() | None as owner]:
            return Handshake(revision, capabilities, info, owner)
        case {
            "v": 1,
            "revision": str(revision),
            "capabilities": dict(capabilities),
            "info": dict(info),
            "owner": str() | None as owner,
        }:
            return Handshake(revision, capabilities, info, owner)
    return None
