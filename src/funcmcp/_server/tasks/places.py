"""How many tasks a process runs at once, and how many of them a caller may have.

A caller has at most its share of the places, so that long tasks of one caller never keep everybody else's from running.
With ten places the share is eight. Places that a caller's share leaves over are *kept*: only tasks of others get them.
Tasks of unknown callers, such as the client on stdio, use places, but have no share.
"""

from __future__ import annotations

from collections import Counter

_KEPT_PART = 4
"""One in so many places is kept, and at least one if there are two."""


class Places:
    """The places of one process.

    Args:
        count: How many there are.

    Attributes:
        count: How many there are.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._used = 0
        self._by_payer: Counter[str] = Counter()

    @property
    def share(self) -> int:
        """How many of them one caller may have."""
        return max(1, self.count - max(1, self.count // _KEPT_PART))

    @property
    def free(self) -> int:
        """How many of them nobody has."""
        return self.count - self._used

    @property
    def open(self) -> int:
        """How many tasks may be claimed without knowing whose they are."""
        most = max(self._by_payer.values(), default=0)
        return min(self.free, self.share - most)

    def has_room(self, payer: str | None) -> bool:
        """Return whether a task of a caller may run; None is an unknown caller."""
        return self.free > 0 and (payer is None or self._by_payer[payer] < self.share)

    def take(self, payer: str | None) -> None:
        """Count a run."""
        self._used += 1
        if payer is not None:
            self._by_payer[payer] += 1

    def give_back(self, payer: str | None) -> None:
        """Count a run no more."""
        self._used -= 1
        if payer is not None:
            self._by_payer[payer] -= 1
            if not self._by_payer[payer]:
                del self._by_payer[payer]
