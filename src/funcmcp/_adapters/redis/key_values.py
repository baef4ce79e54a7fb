"""Sign-ins and state in Redis, which all instances of a server share.

Needs ``pip install "funcmcp[redis]"``. While Redis can't be reached, every method raises StoreUnavailableError in a
bounded time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from funcmcp._adapters.redis.link import link_to
from funcmcp._objects.public_names import public
from funcmcp._state.key_values import SIGN_INS, STATE

if TYPE_CHECKING:
    from funcmcp._adapters.redis.link import RedisLink
    from funcmcp._state.key_values import Purpose

_TAKE = """
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end
return 0
"""
_REPLACE = """
local value = redis.call('GET', KEYS[1])
if value == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  return 1
end
if value == ARGV[2] then return 1 end
return 0
"""
"""Both return 1 for a write that is sent again after its reply was lost: the key has the value that it writes."""

_MILLISECONDS = 1000


class RedisKeyValues:
    """Values of all instances that share a Redis. Their keys expire.

    Args:
        redis: A URL, or a `RedisLink`.

    Raises:
        ValueError: The URL has another scheme.
    """

    shared: bool = True
    _purpose: Purpose

    def __init__(self, redis: str | RedisLink) -> None:
        self._link = link_to(redis)

    async def get(self, key: str) -> str | None:
        """See `StateStore.get`."""
        value: bytes | None = await self._link.do(lambda redis: redis.get(self._name(key)), bytes | None)
        return None if value is None else value.decode("ascii")

    async def take(self, key: str, value: str, seconds: float) -> bool:
        """See `StateStore.take`."""
        arguments = (self._name(key), value, _milliseconds(seconds))
        taken: int = await self._link.do(lambda redis: redis.eval(_TAKE, 1, *arguments), int)
        return taken == 1

    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        """See `StateStore.replace`."""
        arguments = (self._name(key), old, new, _milliseconds(seconds))
        replaced: int = await self._link.do(lambda redis: redis.eval(_REPLACE, 1, *arguments), int)
        return replaced == 1

    async def remove(self, key: str) -> None:
        """See `StateStore.remove`."""
        await self._link.do(lambda redis: redis.delete(self._name(key)), int)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._link.aclose()

    def _name(self, key: str) -> str:
        return f"{self._link.prefix}:{self._purpose.key}:{key}"


@public("funcmcp.redis")
class RedisSignIns(RedisKeyValues):
    """Sign-ins of all instances that share a Redis.

    Their keys expire. A Redis that evicts keys with an expiry ends sign-ins early, and one that loses writes in a
    failover ends those that it has lost: their users sign in again.

    Args:
        redis: A URL, or a `RedisLink`.

    Raises:
        ValueError: The URL has another scheme.
    """

    _purpose = SIGN_INS


@public("funcmcp.redis")
class RedisState(RedisKeyValues):
    """The state of callers, for all instances that share a Redis.

    Its keys expire. A Redis that evicts keys with an expiry ends state early, and one that loses writes in a failover
    ends what it has lost.

    Args:
        redis: A URL, or a `RedisLink`.

    Raises:
        ValueError: The URL has another scheme.
    """

    _purpose = STATE


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * _MILLISECONDS))
