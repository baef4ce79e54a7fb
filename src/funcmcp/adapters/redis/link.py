"""The way to a Redis server: every step takes a bounded time, and what fails does so in one way.

Connections that broke are made anew when they are next needed.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any

try:
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.exceptions import InvalidResponse, ResponseError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Redis needs: pip install "funcmcp[redis]"', name=error.name) from None

from funcmcp.server.log import logger
from funcmcp.state.sessions.store import StoreAwayError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_RETRIED: tuple[Any, ...] = (RedisConnectionError, RuntimeError, AttributeError)
"""Raised for a connection that broke while it was idle: asyncio raises ConnectionError, uvloop RuntimeError.

From Python 3.12 on, writelines() of asyncio's transport for a closed socket raises AttributeError.
"""

_CONNECTIONS = 32
"""Connections for steps of requests; more requests at once wait for one."""

_READERS = 8
"""Connections for what waits on Redis for messages, such as a bus."""

_REST = 0.25
"""Seconds for which nobody else has to find out that Redis is away."""

_QUIET = 60.0
"""Seconds between two lines about what Redis refuses: a full one may refuse something of every request."""


class RedisLink:
    """A way to Redis, which sessions, revocations and a bus can have in common.

    Args:
        url: ``redis://``, ``rediss://`` (TLS) or ``unix://``, with user and password where there are any.
        prefix: begins all keys and channels. Servers with the same prefix share their sessions.
        timeout: seconds that one step may take, connecting included.

    Raises:
        ValueError: the URL has another scheme.
    """

    def __init__(self, url: str, *, prefix: str = "funcmcp", timeout: float = 1.0) -> None:
        self.prefix = prefix
        self.timeout = timeout
        self._url = url
        self._redis = self._connect()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free = asyncio.Semaphore(_CONNECTIONS)
        self._away = False
        self._resting_until = 0.0
        self._quiet_until = 0.0

    async def do(self, work: Callable[[Redis], Awaitable[Any]], kind: Any = object) -> Any:
        """Run commands on Redis and return the result of *work*.

        Args:
            work: Sends the commands. It also decodes the reply, so that an unexpected one fails here.
            kind: The type of the result, or a union of types.

        Raises:
            StoreAwayError: Redis can't be reached, refuses, or replies with something else.
        """
        if monotonic() < self._resting_until:
            raise StoreAwayError
        redis = self._here()
        free = self._free
        try:
            if free.locked():
                async with asyncio.timeout(self.timeout):
                    await free.acquire()
            else:
                await free.acquire()  # it does not wait, so it needs no timer
        except TimeoutError as error:  # the requests of this process use all connections; Redis is not away
            raise StoreAwayError from error
        try:
            async with asyncio.timeout(self.timeout):
                result = await work(redis)
                if not isinstance(result, kind):
                    # A connection may be out of step: its next reply could be of another session.
                    await self._redis.connection_pool.disconnect(inuse_connections=False)
                    raise InvalidResponse("the reply is of another type")
        except Exception as error:
            # Not only RedisError and OSError: exceptions of the event loop and of the parser pass through the library.
            self.note_failure(error)
            raise StoreAwayError from error
        finally:
            free.release()
        if self._away:
            self.note_success()
        return result

    async def reach(self, work: Callable[[Redis], Awaitable[Any]], seconds: float) -> None:
        """Do something with Redis within *seconds*; raise what the client library or the event loop raises."""
        async with asyncio.timeout(seconds):
            await work(self._here())

    def note_failure(self, error: BaseException) -> None:
        """Say once that Redis is away, and spare others the wait for a moment; of what it only refuses, say so."""
        now = monotonic()
        if isinstance(error, ResponseError):
            if now >= self._quiet_until:
                self._quiet_until = now + _QUIET
                logger.warning("Redis refuses (%s); what needs it is answered with 503.", type(error).__name__)
            return
        self._resting_until = now + _REST
        if not self._away:
            self._away = True
            logger.warning("Redis fails (%s); what needs it is answered with 503.", type(error).__name__)

    def note_success(self) -> None:
        """Say once that Redis is back."""
        if self._away:
            self._away = False
            logger.warning("Redis is back.")

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        if self._loop is asyncio.get_running_loop():
            await self._redis.aclose()
            await self._redis.connection_pool.disconnect()

    def _here(self) -> Redis:
        """Return the client of the running event loop: connections belong to the loop that made them."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                self._redis = self._connect()
            self._loop = loop
            self._free = asyncio.Semaphore(_CONNECTIONS)
        return self._redis

    def _connect(self) -> Redis:
        pool = BlockingConnectionPool.from_url(
            self._url,
            max_connections=_CONNECTIONS + _READERS,
            timeout=self.timeout,
            socket_connect_timeout=None,  # steps have their time limit here: asyncio.wait_for, which the client library
            socket_timeout=None,  # would use, loses cancellations in Python 3.11
            protocol=2,
            retry=Retry(NoBackoff(), 1, _RETRIED),
        )
        return Redis(connection_pool=pool)


def link_to(redis: str | RedisLink) -> RedisLink:
    """Return a link: the given one, or a new one to a URL."""
    return RedisLink(redis) if isinstance(redis, str) else redis
