"""How much a server takes on at once, in one process, and how it says that it is too much.

Source: RFC 9110 section 10.2.3 (Retry-After), RFC 6585 section 4 (429).
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from funcmcp.protocol.codec import MAX_DEPTH
from funcmcp.protocol.errors import INTERNAL_ERROR, MCPError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LATER = 60
"""Seconds after which a stream may have ended: nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one process takes; see docs/limits.md for the answer to what is more.

    Attributes:
        message_bytes: of an HTTP body, a line of stdin or a frame of a WebSocket.
        message_seconds: in which an HTTP body has to come; on `funcmcp run` and `mcp.run()` the whole request.
        nesting: levels of objects and arrays in a message, 64 at most.
        header_bytes: of all names and values of an HTTP request's header.
        requests: that are under way at once. A `subscriptions/listen` counts as a stream instead.
        streams: that are open at once: GET, `subscriptions/listen`, HTTP+SSE and WebSocket.
        streams_per_principal: of those, the ones of the same principal.

    Raises:
        ValueError: a limit is not positive, or `nesting` is above 64.
    """

    message_bytes: int = 4 * 1024 * 1024
    message_seconds: float = 30.0
    nesting: int = MAX_DEPTH
    header_bytes: int = 64 * 1024
    requests: int = 1000
    streams: int = 10_000
    streams_per_principal: int = 1000

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if not 0 < value < math.inf:
                raise ValueError(f"Limits.{option.name} must be a number above 0; got {value}.")
        if self.nesting > MAX_DEPTH:
            raise ValueError(f"Limits.nesting may be {MAX_DEPTH} at most; got {self.nesting}.")


class LimitReachedError(MCPError):
    """There is no room for a request now; as a JSON-RPC error it has ``{"retryAfter": seconds}`` as its data.

    Args:
        message: what there is too much of, in a sentence for the client.
        retry_after: seconds until it is worth to try again; the answer says whole ones, at least one.
        own: whether it is the caller's own share that is used up, and not what all callers have together.
    """

    def __init__(self, message: str, retry_after: float, *, own: bool = False) -> None:
        self.retry_after = max(1, math.ceil(retry_after))
        self.own = own
        super().__init__(INTERNAL_ERROR, message, {"retryAfter": self.retry_after})


class Load:
    """How many requests are under way in this process.

    Args:
        limits: say how many may be.

    Attributes:
        most: how many may be.
        arriving: HTTP requests that are not answered yet, whatever they are about.
        running: JSON-RPC requests that run, on any transport. A run can outlast the HTTP request that began it.
    """

    __slots__ = ("arriving", "most", "running")

    def __init__(self, limits: Limits) -> None:
        self.most = limits.requests
        self.arriving = 0
        self.running = 0

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Don't count a run for the length of a ``with`` block: it does nothing but wait."""
        self.running -= 1
        try:
            yield
        finally:
            self.running += 1

    def full(self) -> LimitReachedError:
        """Return what to say to one more."""
        return LimitReachedError("The server is busy; try again later.", 1)


class Streams:
    """How many streams are open in this process.

    Args:
        limits: say how many may be.
    """

    def __init__(self, limits: Limits) -> None:
        self._most = limits.streams
        self._each = limits.streams_per_principal
        self._open = 0
        self._owned: dict[str, int] = {}

    def check(self, owner: str | None) -> None:
        """Raise LimitReachedError if there is no room for one more of an owner; None is nobody in particular."""
        if self._open >= self._most:
            raise LimitReachedError("Too many streams are open; try again later.", _LATER)
        if owner is not None and self._owned.get(owner, 0) >= self._each:
            raise LimitReachedError("Too many of your streams are open; end one.", _LATER, own=True)

    @contextmanager
    def one_more(self, owner: str | None) -> Iterator[None]:
        """Count a stream that passed the check, for the length of a ``with`` block."""
        self._count(owner, 1)
        try:
            yield
        finally:
            self._count(owner, -1)

    def _count(self, owner: str | None, change: int) -> None:
        self._open += change
        if owner is not None:
            self._owned[owner] = self._owned.get(owner, 0) + change
            if not self._owned[owner]:
                del self._owned[owner]
