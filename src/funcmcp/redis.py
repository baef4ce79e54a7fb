"""State that all instances of a server share in Redis. Needs ``pip install "funcmcp[redis]"``; see guides/scaling.md.

Each class takes a URL or a `RedisLink`, which several of them can share.

Example:
    ```python
    mcp = MCPServer("Orders", sessions=RedisSessions("redis://localhost:6379/0"))
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._adapters.redis.bus import RedisBus
    from funcmcp._adapters.redis.key_values import RedisSignIns, RedisState
    from funcmcp._adapters.redis.link import RedisLink
    from funcmcp._adapters.redis.rates import RedisRates
    from funcmcp._adapters.redis.revocations import RedisRevocations
    from funcmcp._adapters.redis.sessions import RedisSessions

__all__ = ["RedisBus", "RedisLink", "RedisRates", "RedisRevocations", "RedisSessions", "RedisSignIns", "RedisState"]

_HOMES = {
    "_adapters.redis.bus": ["RedisBus"],
    "_adapters.redis.key_values": ["RedisSignIns", "RedisState"],
    "_adapters.redis.link": ["RedisLink"],
    "_adapters.redis.rates": ["RedisRates"],
    "_adapters.redis.revocations": ["RedisRevocations"],
    "_adapters.redis.sessions": ["RedisSessions"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
