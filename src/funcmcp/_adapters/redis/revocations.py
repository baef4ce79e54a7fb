"""Revocations of signed sessions in Redis, which all instances of a server share.

The revocations are one sorted set without an expiry, so that an eviction policy for volatile keys does not remove it.

Needs ``pip install "funcmcp[redis]"``. While Redis can't be reached, every method raises StoreUnavailableError in a
bounded time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._adapters.redis.link import link_to
from funcmcp._objects.public_names import public
from funcmcp._state.sessions.ended import digest_of
from funcmcp._state.sessions.store import SessionsFullError

if TYPE_CHECKING:
    from funcmcp._adapters.redis.link import RedisLink

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
"""Add a session to the set of revocations until its expiry. Return 1; 0 if the set has it already; or, if the set is
full, the negative number of seconds until its first entry expires.
"""


@public("funcmcp.redis")
class RedisRevocations:
    """Records ended signed sessions for all instances, until they would have expired.

    Args:
        redis: A URL, or a `RedisLink`.
        limit: The number of records (about 120 bytes each). Another one is refused (503).
    """

    def __init__(self, redis: str | RedisLink, *, limit: int = 100_000) -> None:
        self._link = link_to(redis)
        self._limit = limit
        self._set = f"{self._link.prefix}:revoked"

    async def add(self, session_id: str, seconds: float) -> bool:
        """Record a session for a number of seconds; return whether it was not recorded before.

        Raises:
            SessionsFullError: There is no room for another record.
            StoreUnavailableError: Redis can't be reached.
        """
        digest, lifetime = digest_of(session_id), max(1, int(seconds) + 1)
        arguments = (digest, lifetime, self._limit)
        added: int = await self._link.do(lambda redis: redis.eval(_REVOKE, 1, self._set, *arguments), int)
        if added < 0:
            raise SessionsFullError(-added)
        return added == 1

    async def has(self, session_id: str) -> bool:
        """Return whether a session is recorded; raise StoreUnavailableError."""
        digest = digest_of(session_id)
        expiry = await self._link.do(lambda redis: redis.zscore(self._set, digest), float | None)
        return expiry is not None
