"""FastMCP's middleware that keeps connections open."""

from __future__ import annotations

from funcmcp._compat.middleware import Middleware
from funcmcp._objects.public_names import public


@public("funcmcp.compat")
class PingMiddleware(Middleware):
    """Does nothing: the transports of funcmcp themselves keep event streams open.

    Args:
        interval_ms: Milliseconds between two pings. Ignored.

    Raises:
        ValueError: `interval_ms` is not above 0.
    """

    def __init__(self, interval_ms: int = 30_000) -> None:
        if interval_ms <= 0:
            raise ValueError("interval_ms must be positive")
        self.interval_ms = interval_ms
