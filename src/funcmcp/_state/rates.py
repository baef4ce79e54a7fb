"""Rates: the number of requests that a caller may send per second.

How it works: each caller has a bucket of `burst` tokens, which is refilled with `per_second` tokens per second. A
request takes a token. The only state of a bucket is the time when it will be full again (the "generic cell rate
algorithm"), and a full bucket needs no state. `MemoryRates` stores these times for a limited number of callers, and
forgets the one that has been inactive for longest.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable


@public("funcmcp.state")
class Rates(Protocol):
    """Limits the requests of each caller. Its methods raise no exceptions."""

    async def take(self, caller: str, count: int = 1) -> float:
        """Count requests of a caller and return 0, or count none of them and return the seconds to wait.

        Args:
            caller: A principal or an address, with a prefix that distinguishes the two.
            count: Number of requests. A number larger than the bucket counts as a full bucket.
        """


_ROUNDING = 1e-6
"""Seconds by which sums of times may be wrong. Without this tolerance a full bucket may refuse a request."""


@public("funcmcp.state")
class MemoryRates:
    """Rates in the memory of one process. With several processes, each one allows the full rate.

    Args:
        per_second: Requests per second that a caller may send on average.
        burst: Requests that a caller may send at once after a pause.
        callers: Maximum number of callers with a bucket. Beyond it, the caller that has been inactive for longest gets
            a full bucket.
        clock: A monotonic clock in seconds.

    Raises:
        ValueError: A number is not positive.
    """

    def __init__(
        self,
        per_second: float,
        burst: int,
        *,
        callers: int = 50_000,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._interval, self._span = spacing(per_second, burst)
        if callers < 1:
            raise ValueError(f"callers must be at least 1; got {callers}.")
        self._callers = callers
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()
        """The times when the buckets will be full, by caller, in the order of the last request."""

    async def take(self, caller: str, count: int = 1) -> float:
        """See `Rates.take`."""
        now = self._clock()
        buckets = self._full_at
        full_at = max(now, buckets.get(caller, now)) + min(count * self._interval, self._span)
        wait = full_at - now - self._span
        if wait > _ROUNDING:
            return wait
        buckets[caller] = full_at
        buckets.move_to_end(caller)
        if len(buckets) > self._callers:
            buckets.popitem(last=False)
        return 0.0

    def wait_of(self, caller: str) -> float:
        """Return the seconds that a caller has to wait until its next request; 0 if it need not. Nothing is counted."""
        now = self._clock()
        wait = max(now, self._full_at.get(caller, now)) + self._interval - now - self._span
        return wait if wait > _ROUNDING else 0.0

    def __len__(self) -> int:
        return len(self._full_at)


def spacing(per_second: float, burst: int) -> tuple[float, float]:
    """Return the seconds between two requests and the seconds to fill an empty bucket; raise ValueError."""
    if not 0 < per_second < math.inf:
        raise ValueError(f"per_second must be a number above 0; got {per_second}.")
    if burst < 1:
        raise ValueError(f"burst must be at least 1; got {burst}.")
    return 1 / per_second, burst / per_second
