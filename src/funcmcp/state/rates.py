"""How many requests a caller may send in a time.

Each caller has a bucket of `burst` tokens that fills up at `per_second`, and a request takes one. All that has to be
remembered of a bucket is when it will be full again (the "generic cell rate algorithm"); a full one is none.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Rates(Protocol):
    """Decides how many requests a caller may send. It never fails."""

    async def take(self, caller: str, count: int = 1) -> float:
        """Count requests of a caller and return 0; or count none, and return the seconds until they would pass.

        Args:
            caller: a principal or an address, marked as one or the other.
            count: how many. More than the bucket holds are taken as all that it holds.
        """


class MemoryRates:
    """Rates of one process: several processes allow as many times more.

    Args:
        per_second: requests that a caller may send in the long run.
        burst: requests that it may send at once, after a rest.
        callers: how many are remembered. Beyond, whoever has sent nothing for the longest time begins anew.
        clock: returns seconds; monotonic.

    Raises:
        ValueError: a number is not positive.
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
        """By caller, when the bucket will be full; the one that was used last stands at the end."""

    async def take(self, caller: str, count: int = 1) -> float:
        """Do what `Rates.take` says."""
        now = self._clock()
        buckets = self._full_at
        full_at = max(now, buckets.get(caller, now)) + min(count * self._interval, self._span)
        wait = full_at - now - self._span
        if wait > 0:
            return wait
        buckets[caller] = full_at
        buckets.move_to_end(caller)
        if len(buckets) > self._callers:
            buckets.popitem(last=False)
        return 0.0

    def __len__(self) -> int:
        return len(self._full_at)


def spacing(per_second: float, burst: int) -> tuple[float, float]:
    """Return seconds between two requests, and those that an empty bucket takes to be full; raise ValueError."""
    if not 0 < per_second < math.inf:
        raise ValueError(f"per_second must be a number above 0; got {per_second}.")
    if burst < 1:
        raise ValueError(f"burst must be at least 1; got {burst}.")
    return 1 / per_second, burst / per_second
