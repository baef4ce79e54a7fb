"""Rates in Redis, which all instances of a server share.

Needs ``pip install "funcmcp[redis]"``. While Redis can't be reached, each process counts separately. A rate limit
protects the server, so a failure of Redis must neither stop the server nor remove the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._adapters.redis.link import link_to
from funcmcp._objects.public_names import public
from funcmcp._state.rates import MemoryRates, spacing
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from funcmcp._adapters.redis.link import RedisLink

_TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full_at = math.max(now, tonumber(redis.call('GET', KEYS[1]) or 0)) + math.min(ARGV[1] * ARGV[2], ARGV[3])
local wait = full_at - now - ARGV[3]
if wait > 0 then return math.ceil(wait) end
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000))
return 0
"""
"""Do the same as `MemoryRates`, in microseconds of Redis's clock. The key of a full bucket expires."""

_MICROSECONDS = 1_000_000


@public("funcmcp.redis")
class RedisRates:
    """Rates of all instances that share a Redis.

    Args:
        redis: a URL, or a link that others use too.
        per_second: requests that a caller may send in the long run.
        burst: requests that it may send at once, after a rest.

    Raises:
        ValueError: a number is not positive, or the URL has another scheme.
    """

    def __init__(self, redis: str | RedisLink, per_second: float, burst: int) -> None:
        interval, span = spacing(per_second, burst)
        self._spacing = int(interval * _MICROSECONDS), int(span * _MICROSECONDS)
        self._link = link_to(redis)
        self._alone = MemoryRates(per_second, burst)

    async def take(self, caller: str, count: int = 1) -> float:
        """Do what `Rates.take` says."""
        key = f"{self._link.prefix}:rate:{caller}"
        try:
            wait: int = await self._link.do(lambda redis: redis.eval(_TAKE, 1, key, count, *self._spacing), int)
        except StoreUnavailableError:
            return await self._alone.take(caller, count)
        return wait / _MICROSECONDS
