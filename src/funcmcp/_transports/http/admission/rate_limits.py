"""Rate limits: how many requests and messages a caller may send in a time.

Source: RFC 6585 section 4 (429); RFC 9110 section 10.2.3 (Retry-After).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from funcmcp._server.limits import LimitReachedError
from funcmcp._transports.http.admission.caller import rated_caller_of
from funcmcp._transports.http.status import limit_reached

if TYPE_CHECKING:
    from funcmcp._state.rates import Rates
    from funcmcp._transports.http.messages import HttpRequest, HttpResponse


class RateLimit:
    """Counts the requests and messages of callers.

    Args:
        rates: The rates of callers.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates

    async def refusal(self, request: HttpRequest, count: int = 1) -> HttpResponse | None:
        """Count a request, or *count* messages in it; return its refusal if it comes too early, or None."""
        try:
            await self.take(request, count)
        except LimitReachedError as error:
            return limit_reached(error)
        return None

    async def take(self, request: HttpRequest, count: int) -> None:
        """Count messages; raise LimitReachedError if they come too early."""
        seconds = await self._rates.take(rated_caller_of(request), count)
        if seconds:
            raise _too_early(seconds)

    async def wait(self, request: HttpRequest, count: int = 1) -> None:
        """Count messages, and wait until the caller may send them. A WebSocket has no status for a refusal."""
        caller = rated_caller_of(request)
        seconds = await self._rates.take(caller, count)
        while seconds:
            await asyncio.sleep(seconds)  # another connection of the caller may use up the rate in the meantime
            seconds = await self._rates.take(caller, count)


def _too_early(seconds: float) -> LimitReachedError:
    return LimitReachedError("Too many requests; slow down.", seconds, is_caller_limit=True)
