"""Tokens that are requested once at a time, and cached until shortly before they expire."""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple

from funcmcp._auth.principal import UpstreamTokenError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_FAILURE_SECONDS: Final = 5.0
_MAX_TOKENS: Final = 1024


class Issued(NamedTuple):
    """A token of an authorization server.

    Attributes:
        token: The token.
        until: When it is requested anew, in seconds since 1970.
    """

    token: str
    until: float

    def __repr__(self) -> str:
        return f"Issued(..., until={self.until!r})"


class _Failure(NamedTuple):
    error: UpstreamTokenError
    until: float


class TokenCache:
    """Tokens by caller, each requested once at a time.

    Args:
        clock: Returns seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time) -> None:
        self._clock = clock
        self._tokens: dict[tuple[str, ...], Issued | _Failure] = {}
        self._running: dict[tuple[str, ...], asyncio.Task[str]] = {}

    async def get(self, key: tuple[str, ...], request: Callable[[], Awaitable[Issued]]) -> str:
        """Return the token for a key, and request it unless it is there; raise UpstreamTokenError."""
        cached = self._tokens.get(key)
        if cached is not None and self._clock() < cached.until:
            if isinstance(cached, _Failure):
                raise UpstreamTokenError(cached.error.reason, str(cached.error))
            return cached.token
        running = self._running.get(key)
        if running is None or running.done() or running.get_loop() is not asyncio.get_running_loop():
            running = self._running[key] = asyncio.create_task(self._requested(key, request))
            running.add_done_callback(lambda task: self._end(key, task))
        # The shield keeps the shared request running if this caller is cancelled.
        return await asyncio.shield(running)

    async def finish(self, seconds: float) -> None:
        """Wait for requests whose callers have gone, so that what they bring is stored.

        Args:
            seconds: Maximum number of seconds.
        """
        loop = asyncio.get_running_loop()
        running = {task for task in self._running.values() if task.get_loop() is loop}
        if running:
            await asyncio.wait(running, timeout=seconds)

    def drop(self, key: tuple[str, ...], token: str) -> None:
        """Forget a token that an upstream has refused, unless it has been replaced already."""
        cached = self._tokens.get(key)
        if isinstance(cached, Issued) and cached.token == token:
            del self._tokens[key]

    async def _requested(self, key: tuple[str, ...], request: Callable[[], Awaitable[Issued]]) -> str:
        try:
            issued = await request()
        except UpstreamTokenError as error:
            self._remember(key, _Failure(error, self._clock() + _FAILURE_SECONDS))
            raise
        self._remember(key, issued)
        return issued.token

    def _remember(self, key: tuple[str, ...], value: Issued | _Failure) -> None:
        if len(self._tokens) >= _MAX_TOKENS:
            now = self._clock()
            self._tokens = {name: cached for name, cached in self._tokens.items() if now < cached.until}
        if len(self._tokens) >= _MAX_TOKENS:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[key] = value

    def _end(self, key: tuple[str, ...], task: asyncio.Task[str]) -> None:
        if self._running.get(key) is task:
            del self._running[key]
        if not task.cancelled():
            task.exception()  # a caller that was cancelled does not retrieve it
