"""A connection pool to a Redis server: every step has a time limit, and every failure is a StoreUnavailableError.

How it works: a *step* is some commands with their replies (`RedisLink.do`). At most `_CONNECTIONS` steps run at once;
others wait for a connection within their time limit. When a step fails, Redis counts as away: for `_FAILURE_PAUSE`
seconds other steps fail at once and do not wait, too. A reply of an error type means that Redis refuses the command but
is there. Both are logged once when they begin, and the return of Redis is logged. A long read, such as that of the bus,
uses `reach`, which has connections of its own. Broken connections are opened again when they are next needed.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

try:
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import AskError, ClusterCrossSlotError, InvalidResponse, ResponseError
    from redis.exceptions import ConnectionError as RedisConnectionError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Redis needs: pip install "funcmcp[redis]"', name=error.name) from None

from funcmcp._adapters.redis.masters import is_cluster, pool_options
from funcmcp._objects.public_names import public
from funcmcp._server.log import logger
from funcmcp._state.outage import Outage
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_RETRIED: tuple[Any, ...] = (RedisConnectionError, RuntimeError, AttributeError)
"""Raised for a connection that broke while it was idle: asyncio raises ConnectionError, uvloop RuntimeError.

From Python 3.12 on, writelines() of asyncio's transport for a closed socket raises AttributeError.
"""

_CONNECTIONS = 32
"""Connections for steps. Further steps wait for one."""

_READERS = 8
"""Connections for long reads, such as that of a bus."""

_FAILURE_PAUSE = 0.25
"""Seconds after a failure in which other steps fail at once."""

_WARNING_INTERVAL = 60.0
"""Seconds between two warnings about refused commands: a full Redis may refuse one of every request."""


_CLUSTER_ERRORS = (AskError, ClusterCrossSlotError)
"""Errors of a node of a Redis Cluster for keys that another node has. MovedError is a subclass of AskError."""

_CLUSTER_ADVICE = " This Redis is a node of a cluster: write redis+cluster:// in the URL; see docs/guides/scaling.md."


class _Connections(NamedTuple):
    """The connections of one event loop.

    Attributes:
        redis: The client, with its pool of connections.
        free: Counts the connections that are free for steps.
    """

    redis: Redis
    free: asyncio.Semaphore


@public("funcmcp.redis")
class RedisLink:
    """A connection pool to Redis, which sessions, revocations, rates and a bus can share.

    Args:
        url: The URL of Redis: ``redis://``, ``rediss://`` (TLS) or ``unix://``, with user and password if necessary;
            with Sentinel ``redis+sentinel://host:port,host:port/service/database``; of a Redis Cluster
            ``redis+cluster://host:port,host:port`` (with TLS ``rediss+...``).
        prefix: The beginning of all keys. Servers with the same prefix share their sessions. On a Redis Cluster it is
            in braces, so that all keys are in one slot.
        timeout: Seconds that one step may take, connecting included.

    Raises:
        ValueError: The URL has another scheme, or a part is missing.
    """

    def __init__(self, url: str, *, prefix: str = "funcmcp", timeout: float = 1.0) -> None:
        self.prefix: str = f"{{{prefix}}}" if is_cluster(url) and "{" not in prefix else prefix
        self.timeout = timeout
        self._url = url
        self._redis = self._connect()
        self._has_loop = False
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connections] = WeakKeyDictionary()
        self._outage = Outage()
        self._paused_until = 0.0
        self._next_warning = 0.0

    async def do(self, work: Callable[[Redis], Awaitable[Any]], kind: Any = object) -> Any:
        """Run commands on Redis and return the result of *work*.

        Args:
            work: Sends the commands. It also decodes the reply, so that an unexpected one fails here.
            kind: The type of the result, or a union of types.

        Raises:
            StoreUnavailableError: Redis can't be reached, refuses a command, or replies with another type.
        """
        if monotonic() < self._paused_until:
            raise StoreUnavailableError(nothing_written=True)
        redis, free = self._connections()
        deadline = asyncio.get_running_loop().time() + self.timeout
        has_waited = free.locked()
        try:
            if has_waited:
                async with asyncio.timeout_at(deadline):
                    await free.acquire()
            else:
                await free.acquire()  # this does not wait, so it needs no timer
        except TimeoutError as error:  # the requests of this process use all connections; Redis is not away
            raise StoreUnavailableError(nothing_written=True) from error
        try:
            async with asyncio.timeout_at(deadline):
                result = await work(redis)
                if not isinstance(result, kind):
                    # A connection may be out of step: its next reply could be of another session.
                    await redis.connection_pool.disconnect(inuse_connections=False)
                    raise InvalidResponse("the reply is of another type")
        except Exception as error:
            # Not only RedisError and OSError: exceptions of the event loop and of the parser pass through the library.
            if not (has_waited and isinstance(error, TimeoutError)):  # the wait for a connection may have taken long
                self.note_failure(error)
            raise StoreUnavailableError from error
        finally:
            free.release()
        self.note_success()
        return result

    async def reach(self, work: Callable[[Redis], Awaitable[Any]], seconds: float) -> None:
        """Run *work* within *seconds*; raise the exceptions of the client library and of the event loop."""
        async with asyncio.timeout(seconds):
            await work(self._connections().redis)

    def note_failure(self, error: BaseException) -> None:
        """Log a failure, once, and let other steps fail at once for a moment. A refused command is logged only."""
        now = monotonic()
        if isinstance(error, ResponseError):
            if now >= self._next_warning:
                self._next_warning = now + _WARNING_INTERVAL
                logger.warning(
                    "Redis refuses a command (%s). Requests that need Redis are answered with 503.%s",
                    _code_of(error),
                    _CLUSTER_ADVICE if isinstance(error, _CLUSTER_ERRORS) and not is_cluster(self._url) else "",
                )
            return
        self._paused_until = now + _FAILURE_PAUSE
        self._outage.begin("Redis fails (%s). Requests that need Redis are answered with 503.", type(error).__name__)

    def note_success(self) -> None:
        """Log the return of Redis, once."""
        self._outage.end("Redis is back.")

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        connections = self._by_loop.get(asyncio.get_running_loop())
        if connections is not None:
            await connections.redis.aclose()
            await connections.redis.connection_pool.disconnect()

    def _connections(self) -> _Connections:
        """Return the connections of the running event loop. Several loops may run at once, each in a thread."""
        loop = asyncio.get_running_loop()
        connections = self._by_loop.get(loop)
        if connections is None:
            redis = self._connect() if self._has_loop else self._redis
            self._has_loop = True
            connections = self._by_loop[loop] = _Connections(redis, asyncio.Semaphore(_CONNECTIONS))
        return connections

    def _connect(self) -> Redis:
        options: dict[str, Any] = {
            "max_connections": _CONNECTIONS + _READERS,
            "timeout": self.timeout,
            # `do` and `reach` limit the time: asyncio.wait_for(), which the client library would use, loses
            # cancellations in Python 3.11.
            "socket_connect_timeout": None,
            "socket_timeout": None,
            "protocol": 2,
            "retry": Retry(NoBackoff(), 1, _RETRIED),
        }
        pool = BlockingConnectionPool(
            **{**options, **pool_options(self._url, prefix=self.prefix, timeout=self.timeout)}
        )
        return Redis(connection_pool=pool)


def _code_of(error: ResponseError) -> str:
    """Return the code of a refusal, such as MISCONF, or the name of its class. Its text may contain data."""
    code = str(error).partition(" ")[0]
    return code if type(error) is ResponseError and code.isalpha() and code.isupper() else type(error).__name__


def link_to(redis: str | RedisLink) -> RedisLink:
    """Return *redis* if it is a link, or else a new link to this URL; raise TypeError if it is neither."""
    if not isinstance(redis, str | RedisLink):
        raise TypeError(f"A store in Redis needs a URL, such as 'redis://localhost', or a link; got {redis!r:.60}.")
    return RedisLink(redis) if isinstance(redis, str) else redis
