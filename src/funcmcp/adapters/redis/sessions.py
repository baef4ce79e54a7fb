"""Sessions in Redis, which every instance of a server knows, and revocations of signed sessions.

Needs ``pip install "funcmcp[redis]"``. While Redis is away, what needs it fails with StoreAwayError, in a bounded time.
"""

from __future__ import annotations

import re
import secrets
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

try:
    from redis.exceptions import ResponseError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Redis needs: pip install "funcmcp[redis]"', name=error.name) from None

from funcmcp.adapters.redis.bus import RedisBus
from funcmcp.adapters.redis.link import link_to
from funcmcp.protocol.codec import InvalidJSONError, RepeatedNameError, decode, encode
from funcmcp.protocol.levels import LEVELS
from funcmcp.state.sessions.ended import digest_of
from funcmcp.state.sessions.store import Handshake, Notes, SessionsFullError

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis.asyncio import Redis

    from funcmcp.adapters.redis.link import RedisLink
    from funcmcp.state.seal import KeyRing

_ID = re.compile(r"[A-Za-z0-9_-]{44}")
_ID_BYTES = 33
_REMEMBERED = 10_000
_HANDSHAKE = "handshake"
_RECORD_FIELDS = 4

_BEGIN = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life = tonumber(ARGV[2])
if redis.call('ZCOUNT', KEYS[2], now, '+inf') >= tonumber(ARGV[4]) then
  return redis.call('ZRANGEBYSCORE', KEYS[2], now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] - now + 1
end
redis.call('HSET', KEYS[1], 'handshake', ARGV[1], 'owned', KEYS[2])
redis.call('PEXPIRE', KEYS[1], life)
redis.call('ZADD', KEYS[2], now + life, ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. now)
if ARGV[5] == '1' then redis.call('PEXPIRE', KEYS[2], life) end
return 0
"""
"""Begin a session and enter it, with the time of its end, in the set of its principal or of the anonymous sessions.

If the set is full, return the milliseconds until its first session ends. The write that takes memory comes first: a
full Redis refuses nothing of a script that has begun to write. A principal's set expires with its last session. The set
of anonymous sessions has no expiry, so that a policy of eviction among volatile keys can't remove the count.
"""

_STAY = """
local owned = redis.call('HGET', KEYS[1], 'owned')
if owned then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', owned, 'XX', now + ARGV[1], ARGV[2])
  if redis.call('PTTL', owned) > 0 then redis.call('PEXPIRE', owned, ARGV[1]) end
end
"""

_END = """
local owned = redis.call('HGET', KEYS[1], 'owned')
if owned then redis.call('ZREM', owned, ARGV[1]) end
return redis.call('DEL', KEYS[1])
"""

_SET_IF_THERE = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
"""
"""A field of a session that has ended in the meantime must not bring it back, without an end."""

_REVOKE = """
local now = tonumber(redis.call('TIME')[1])
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  return now - redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return 1
"""
"""Enter a session in the set of revocations until its expiry; return 1, 0 if it is there already, or, if the set is
full, the negative number of seconds until its first entry expires.
"""


class RedisSessions:
    """Sessions that live in Redis; any instance serves any request of theirs.

    Args:
        redis: The URL of Redis, or a `RedisLink` with more options.
        idle: Seconds without a request after which a session ends.
        per_principal: Number of sessions of one principal at once. When it is reached, its new sessions are refused
            with 429.
        anonymous: Number of sessions without a principal at once. When it is reached, new ones are refused with 503.
        keys: Seal what clients carry between requests. The default is as in `funcmcp.state.SignedSessions`.

    Raises:
        ValueError: The URL has an unknown scheme.
    """

    pushes: bool = True

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
        self._kept_alive: dict[str, float] = {}
        """By session, until when nobody has to keep it alive. It lives a little longer than `idle`, so this need not
        be at each request: Redis writes what changes to its disk."""
        self._rest = idle / 10
        self._life = int((idle + self._rest) * 1000)
        self.bus = RedisBus(self._link)
        self.endings: list[Callable[[str], None]] = []

    async def create(self, handshake: Handshake) -> str:
        """Begin a session and return its id; raise SessionsFullError or StoreAwayError."""
        session_id = secrets.token_urlsafe(_ID_BYTES)
        owner, prefix = handshake.owner, self._link.prefix
        if owner is None:
            siblings, limit = f"{prefix}:anonymous", self._anonymous
        else:
            siblings, limit = f"{prefix}:owned:{owner}", self._per_principal
        record = encode([handshake.revision, handshake.capabilities, handshake.info, owner])
        arguments = (record, self._life, session_id, limit, int(owner is not None))
        wait: int = await self._link.do(
            lambda redis: redis.eval(_BEGIN, 2, self._key(session_id), siblings, *arguments), int
        )
        if wait:
            raise SessionsFullError(wait // 1000 + 1, own=owner is not None)
        return session_id

    async def get(self, session_id: str) -> Handshake | None:
        """Return a living session, or None; using it keeps it alive. Raise StoreAwayError.

        A record that this version can't read belongs to another version of the server, and is no session here.
        """
        if not _ID.fullmatch(session_id):
            return None
        now = monotonic()
        keep_alive = self._kept_alive.get(session_id, 0.0) <= now
        record = await self._link.do(partial(self._read, session_id=session_id, keep_alive=keep_alive), bytes | None)
        handshake = None if record is None else _handshake(record)
        if handshake is None:
            self._kept_alive.pop(session_id, None)
            for tell in self.endings:
                tell(session_id)
        elif keep_alive:
            if len(self._kept_alive) >= _REMEMBERED:
                self._kept_alive.clear()
            self._kept_alive[session_id] = now + self._rest
        return handshake

    async def _read(self, redis: Redis, *, session_id: str, keep_alive: bool) -> bytes | None:
        """Return the record of a session, or None if it does not exist or is not a hash."""
        key = self._key(session_id)
        pipeline = redis.pipeline(transaction=False)
        pipeline.hget(key, _HANDSHAKE)
        if keep_alive:
            pipeline.pexpire(key, self._life)
            pipeline.eval(_STAY, 1, key, self._life, session_id)
        record, *_ = await pipeline.execute(raise_on_error=False)  # a read-only Redis keeps nothing alive, but finds it
        if isinstance(record, ResponseError) and str(record).startswith("WRONGTYPE"):
            return None
        if isinstance(record, Exception):
            raise record
        facts: bytes | None = record
        return facts

    async def end(self, session_id: str) -> bool:
        """End a session for all instances; return whether there was one. Raise StoreAwayError."""
        if not _ID.fullmatch(session_id):
            return False
        key = self._key(session_id)
        ended: int = await self._link.do(lambda redis: redis.eval(_END, 1, key, session_id), int)
        return ended > 0

    async def notes(self, key: str) -> Notes:
        """Return what a session has chosen; raise StoreAwayError."""
        session, level, uri = self._fields(key)
        fields: dict[str, str] = await self._link.do(partial(_fields_of, key=session))
        uris = frozenset(name.removeprefix(uri) for name in fields if name.startswith(uri))
        chosen = fields.get(level)
        return Notes(chosen if chosen in LEVELS else None, uris)

    async def note_level(self, key: str, level: str) -> None:
        """Remember a log level for as long as the session lives; raise StoreAwayError."""
        session, field, _ = self._fields(key)
        await self._set(session, field, level)

    async def note_subscription(self, key: str, uri: str, *, wanted: bool) -> None:
        """Remember, or forget, the URI of a resource for as long as the session lives; raise StoreAwayError."""
        session, _, prefix = self._fields(key)
        if wanted:
            await self._set(session, prefix + uri, "")
        else:
            await self._link.do(lambda redis: redis.hdel(session, prefix + uri))

    async def _set(self, session: str, field: str, value: str) -> None:
        await self._link.do(lambda redis: redis.eval(_SET_IF_THERE, 1, session, field, value))

    def _fields(self, key: str) -> tuple[str, str, str]:
        """Return where notes are: the key in Redis, the field of a level, the beginning of fields of URIs."""
        session_id, _, whose = key.partition(" ")
        return self._key(session_id), f"level:{whose}", f"uri:{whose}:"

    def _key(self, session_id: str) -> str:
        return f"{self._link.prefix}:session:{session_id}"


async def _fields_of(redis: Redis, *, key: str) -> dict[str, str]:
    """Return the fields of a hash."""
    fields: Any = await redis.hgetall(key)
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in fields.items()}


def _handshake(record: bytes) -> Handshake | None:
    """Return what a record in Redis says, or None if this version did not write it.

    A record with more than this version knows is refused, too: what is unknown may restrict the session.
    """
    try:
        facts: Any = decode(record)
    except (InvalidJSONError, RepeatedNameError):
        return None
    if not isinstance(facts, list) or len(facts) != _RECORD_FIELDS:
        return None
    revision, capabilities, info, owner = facts
    if not isinstance(revision, str) or not isinstance(capabilities, dict) or not isinstance(info, dict):
        return None
    if owner is not None and not isinstance(owner, str):
        return None
    return Handshake(revision, capabilities, info, owner)


class RedisRevocations:
    """Remembers for all instances which signed sessions were ended, until they would have ended by themselves.

    They are one sorted set without an expiry, which a policy of eviction among volatile keys leaves alone.

    Args:
        redis: a URL, or a link that others use too.
        limit: how many revocations are kept at once (about 120 bytes each); one more is refused (503).
    """

    def __init__(self, redis: str | RedisLink, *, limit: int = 100_000) -> None:
        self._link = link_to(redis)
        self._limit = limit
        self._set = f"{self._link.prefix}:revoked"

    async def add(self, session_id: str, seconds: float) -> bool:
        """Remember a session; return whether it was not remembered before.

        Raises:
            SessionsFullError: there is no room for one more.
            StoreAwayError: Redis can't be reached.
        """
        digest, lifetime = digest_of(session_id), max(1, int(seconds) + 1)
        arguments = (digest, lifetime, self._limit)
        added: int = await self._link.do(lambda redis: redis.eval(_REVOKE, 1, self._set, *arguments), int)
        if added < 0:
            raise SessionsFullError(-added)
        return added == 1

    async def has(self, session_id: str) -> bool:
        """Tell whether a session is remembered; raise StoreAwayError."""
        digest = digest_of(session_id)
        expiry = await self._link.do(lambda redis: redis.zscore(self._set, digest), float | None)
        return expiry is not None
