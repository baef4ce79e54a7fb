"""FastMCP's middleware that limits how many requests clients send."""

from __future__ import annotations

import inspect
import time
import warnings
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._compat.errors import FastMCPDeprecationWarning, McpError
from funcmcp._compat.middleware import CallNext, Middleware, MiddlewareContext
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_LIMIT_REACHED = -32000
_MAX_REMOVED = 64
"""Limiters of idle clients that one request removes, at most."""

_MAX_CLIENTS = 50_000
"""Clients whose requests are counted. A function of the author may name them by what the clients choose."""


@public("funcmcp.compat")
class RateLimitError(McpError):
    """A client sends too many requests.

    Args:
        message: The text for the client.
    """

    def __init__(self, message: str = "Rate limit exceeded") -> None:
        super().__init__(_LIMIT_REACHED, message)


@public("funcmcp.compat")
class TokenBucketRateLimiter:
    """Allows bursts, and a number of requests per second in the long run.

    Args:
        capacity: The number of tokens in a full bucket.
        refill_rate: Tokens that are added each second.
    """

    def __init__(self, capacity: int, refill_rate: float) -> None:
        self.capacity = capacity
        self.refill_rate = refill_rate
        self.tokens: float = capacity
        self.last_refill: float = time.monotonic()

    async def consume(self, tokens: int = 1) -> bool:
        """Take tokens out of the bucket, and return whether there were enough."""
        now = time.monotonic()
        self.tokens = min(self.capacity, self.tokens + (now - self.last_refill) * self.refill_rate)
        self.last_refill = now
        if self.tokens < tokens:
            return False
        self.tokens -= tokens
        return True


@public("funcmcp.compat")
class SlidingWindowRateLimiter:
    """Allows a number of requests in each window of time.

    Args:
        max_requests: The number of requests.
        window_seconds: The length of the window in seconds.
    """

    def __init__(self, max_requests: int, window_seconds: int) -> None:
        self.max_requests = max_requests
        self.window_seconds = window_seconds
        self.requests: deque[float] = deque()

    async def is_allowed(self) -> bool:
        """Count a request, and return whether it is within the limit."""
        now = time.monotonic()
        while self.requests and self.requests[0] < now - self.window_seconds:
            self.requests.popleft()
        if len(self.requests) >= self.max_requests:
            return False
        self.requests.append(now)
        return True


class _Limiters(OrderedDict[str, Any]):
    """The limiters by client. Those of clients that have been idle for long are removed, and the oldest of too many.

    Args:
        create: Makes the limiter of a client.
        idle_seconds: Seconds without a request after which a limiter is as a new one. None: never.
    """

    def __init__(self, create: Callable[[], Any], idle_seconds: float | None) -> None:
        super().__init__()
        self._create = create
        self._idle_seconds = idle_seconds
        self._last_used: dict[str, float] = {}

    def of(self, client: str) -> Any:
        """Return the limiter of a client."""
        now = time.monotonic()
        self._remove_idle(now)
        if client not in self:
            if len(self) >= _MAX_CLIENTS:
                self._remove(next(iter(self)))
            self[client] = self._create()
        self.move_to_end(client)
        self._last_used[client] = now
        return self[client]

    def _remove_idle(self, now: float) -> None:
        if self._idle_seconds is None:
            return
        for _ in range(min(_MAX_REMOVED, len(self))):
            client = next(iter(self))
            if self._last_used[client] >= now - self._idle_seconds:
                return
            self._remove(client)

    def _remove(self, client: str) -> None:
        del self[client], self._last_used[client]


class _ClientId(Protocol):
    """Returns the name of a request's client. May be async."""

    def __call__(self, context: Any, /) -> str | Awaitable[str]:
        """Return the name."""


async def _client_of(context: MiddlewareContext[Any], get_client_id: _ClientId | None) -> str:
    if get_client_id is None:
        return "global"
    client = get_client_id(context)
    return await client if inspect.isawaitable(client) else client


@public("funcmcp.compat")
class RateLimitingMiddleware(Middleware):
    """Refuses requests above a number per second; see `TokenBucketRateLimiter`.

    Args:
        max_requests_per_second: The requests per second in the long run.
        burst_capacity: The requests of a burst. By default it is twice the number per second.
        get_client_id: Returns the name of a request's client, each of which has a limit of its own. May be async. None:
            all clients share one limit.
        global_limit: Whether all clients share one limit whatever `get_client_id` returns.
    """

    def __init__(
        self,
        max_requests_per_second: float = 10.0,
        burst_capacity: int | None = None,
        get_client_id: _ClientId | None = None,
        global_limit: bool = False,  # noqa: FBT001, FBT002 - as in FastMCP
    ) -> None:
        if burst_capacity is not None and burst_capacity < 1:
            _warn_of_capacity(burst_capacity, max_requests_per_second)
        smallest = 1 if max_requests_per_second > 0 else 0
        self.max_requests_per_second = max_requests_per_second
        self.burst_capacity: int = burst_capacity or max(smallest, int(max_requests_per_second * 2))
        self.get_client_id = get_client_id
        self.global_limit = global_limit
        idle_seconds: float | None = None  # a bucket that is never refilled must be kept
        if self.burst_capacity <= 0:
            idle_seconds = 0
        elif max_requests_per_second > 0:
            idle_seconds = self.burst_capacity / max_requests_per_second
        self.limiters: _Limiters = _Limiters(self._limiter, idle_seconds)
        if global_limit:
            self.global_limiter: TokenBucketRateLimiter = self._limiter()

    def _limiter(self) -> TokenBucketRateLimiter:
        return TokenBucketRateLimiter(self.burst_capacity, self.max_requests_per_second)

    async def _get_client_identifier(self, context: MiddlewareContext[Any]) -> str:
        return await _client_of(context, self.get_client_id)

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Refuse the request if the limit is reached."""
        if self.global_limit:
            if not await self.global_limiter.consume():
                raise RateLimitError("Global rate limit exceeded")
            return await call_next(context)
        client = await self._get_client_identifier(context)
        if not await self.limiters.of(client).consume():
            raise RateLimitError(f"Rate limit exceeded for client: {client}")
        return await call_next(context)


def _warn_of_capacity(capacity: int, per_second: float) -> None:
    advice = "Pass burst_capacity=1 for no bursts."
    if per_second <= 0:
        advice = "To refuse every request, omit burst_capacity."
    warnings.warn(
        f"burst_capacity={capacity!r} of RateLimitingMiddleware is below 1. {advice}",
        FastMCPDeprecationWarning,
        stacklevel=3,
    )


@public("funcmcp.compat")
class SlidingWindowRateLimitingMiddleware(Middleware):
    """Refuses requests above a number in each window of time.

    Args:
        max_requests: The number of requests.
        window_minutes: The length of the window in minutes.
        get_client_id: Returns the name of a request's client, each of which has a limit of its own. May be async. None:
            all clients share one limit.
    """

    def __init__(self, max_requests: int, window_minutes: int = 1, get_client_id: _ClientId | None = None) -> None:
        self.max_requests = max_requests
        self.window_seconds: int = window_minutes * 60
        self.get_client_id = get_client_id
        self.limiters: _Limiters = _Limiters(self._limiter, max(0, self.window_seconds))

    def _limiter(self) -> SlidingWindowRateLimiter:
        return SlidingWindowRateLimiter(self.max_requests, self.window_seconds)

    async def _get_client_identifier(self, context: MiddlewareContext[Any]) -> str:
        return await _client_of(context, self.get_client_id)

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Refuse the request if the limit is reached."""
        client = await self._get_client_identifier(context)
        if not await self.limiters.of(client).is_allowed():
            raise RateLimitError(
                f"Rate limit exceeded: {self.max_requests} requests per {self.window_seconds // 60} minutes for "
                f"client: {client}"
            )
        return await call_next(context)
