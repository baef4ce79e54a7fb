"""Sessions in Redis, which every instance of a server knows, and revocations of signed sessions.

Needs ``pip install "funcmcp[redis]"``. While Redis is away, what needs it fails with StoreAwayError, in a bounded time.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from funcmcp.adapters.redis_bus import RedisBus
from funcmcp.adapters.redis_link import link_to
from funcmcp.protocol.codec import decode, encode
from funcmcp.sessions.store import Handshake, Notes, SessionsFullError

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis.asyncio import Redis

    from funcmcp.adapters.redis_link import RedisLink

_ID = re.compile(r"[A-Za-z0-9_-]{44}")
_ID_BYTES = 33
_REMEMBERED = 10_000
_HANDSHAKE = "handshake"

_BEGIN = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life = tonumber(ARGV[2])
if KEYS[2] and redis.call('ZCOUNT', KEYS[2], now, '+inf') >= tonumber(ARGV[4]) then
  return redis.call('ZRANGEBYSCORE', KEYS[2], now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] - now + 1
end
redis.call('HSET', KEYS[1], 'handshake', ARGV[1])
redis.call('PEXPIRE', KEYS[1], life)
if KEYS[2] then
  redis.call('HSET', KEYS[1], 'owned', KEYS[2])
  redis.call('ZADD', KEYS[2], now + life, ARGV[3])
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. now)
  redis.call('PEXPIRE', KEYS[2], life)
end
return 0
"""
"""Begin a session, and enter it with its end among those of its principal; or return in how many milliseconds the
first of too many ends. What takes memory comes first: a full Redis refuses nothing of a script that has begun to write.
"""

_STAY = """
local owned = redis.call('HGET', KEYS[1], 'owned')
if owned then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', owned, 'XX', now + ARGV[1], ARGV[2])
  redis.call('PEXPIRE', owned, ARGV[1])
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


class RedisSessions:
    """Sessions that live in Redis; any instance serves any request of theirs.

    Args:
        redis: a URL, or a link that others use too. A link says more: prefix of the keys, time limits.
        idle: seconds without a request after which a session ends.
        per_principal: how many sessions of the same principal may live at once; one more is refused.
    """

    pushes: bool = True

    def __init__(self, redis: str | RedisLink, *, idle: float = 1800.0, per_principal: int = 5_000) -> None:
        self._link = link_to(redis)
        self._per_principal = per_principal
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
        keys = [self._key(session_id)]
        if handshake.owner is not None:
            keys.append(f"{self._link.prefix}:owned:{handshake.owner}")
        facts = encode([handshake.revision, handshake.capabilities, handshake.info, handshake.owner])
        life, most = self._life, self._per_principal
        wait: int = await self._link.do(
            lambda redis: redis.eval(_BEGIN, len(keys), *keys, facts, life, session_id, most)
        )
        if wait:
            raise SessionsFullError(wait // 1000 + 1, own=True)
        return session_id

    async def get(self, session_id: str) -> Handshake | None:
        """Return a living session, or None; using it keeps it alive. Raise StoreAwayError."""
        if not _ID.fullmatch(session_id):
            return None
        now = monotonic()
        if self._kept_alive.get(session_id, 0.0) > now:
            facts = await self._link.do(lambda redis: redis.hget(self._key(session_id), _HANDSHAKE))
        else:
            facts = await self._link.do(partial(self._keep_alive, session_id=session_id))
            if len(self._kept_alive) >= _REMEMBERED:
                self._kept_alive.clear()
            self._kept_alive[session_id] = now + self._rest
        if facts is None:
            self._kept_alive.pop(session_id, None)
            for tell in self.endings:
                tell(session_id)
            return None
        return Handshake(*decode(facts))

    async def _keep_alive(self, redis: Redis, *, session_id: str) -> bytes | None:
        key = self._key(session_id)
        pipeline = redis.pipeline(transaction=False)
        pipeline.hget(key, _HANDSHAKE)
        pipeline.pexpire(key, self._life)
        pipeline.eval(_STAY, 1, key, self._life, session_id)
        found, *_ = await pipeline.execute(raise_on_error=False)  # a read-only Redis keeps nothing alive, but finds it
        if isinstance(found, Exception):
            raise found
        facts: bytes | None = found
        return facts

    async def end(self, session_id: str) -> bool:
        """End a session for all instances; return whether there was one. Raise StoreAwayError."""
        if not _ID.fullmatch(session_id):
            return False
        key = self._key(session_id)
        ended: int = await self._link.do(lambda redis: redis.eval(_END, 1, key, session_id))
        return ended > 0

    async def notes(self, key: str) -> Notes:
        """Return what a session has chosen; raise StoreAwayError."""
        session, level, uri = self._fields(key)
        found: dict[bytes, bytes] = await self._link.do(lambda redis: redis.hgetall(session))
        fields = {name.decode(): value.decode() for name, value in found.items()}
        uris = frozenset(name.removeprefix(uri) for name in fields if name.startswith(uri))
        return Notes(fields.get(level), uris)

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


class RedisRevocations:
    """Remembers for all instances which signed sessions were ended, until they would have ended by themselves.

    Args:
        redis: a URL, or a link that others use too.
    """

    def __init__(self, redis: str | RedisLink) -> None:
        self._link = link_to(redis)

    async def add(self, session_id: str, seconds: float) -> bool:
        """Remember a session; return whether it was not remembered before. Raise StoreAwayError."""
        key = self._key(session_id)
        added = await self._link.do(lambda redis: redis.set(key, "", nx=True, ex=max(1, int(seconds) + 1)))
        return bool(added)

    async def has(self, session_id: str) -> bool:
        """Tell whether a session is remembered; raise StoreAwayError."""
        key = self._key(session_id)
        found: int = await self._link.do(lambda redis: redis.exists(key))
        return found > 0

    def _key(self, session_id: str) -> str:
        return f"{self._link.prefix}:ended:{hashlib.sha256(session_id.encode()).hexdigest()}"
