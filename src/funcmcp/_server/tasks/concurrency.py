"""How many tasks a process runs at once, and how many of them a caller or a tool may have.

A caller has at most its share of the places, so that long tasks of one caller never keep everybody else's from running.
With ten places the share is eight. Places that a caller's share leaves over are *kept*: only tasks of others get them.
Tasks of unknown callers, such as the client on stdio, use places, but have no share.

A tool may have a limit of its own (`TaskOptions.concurrency`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

ToolLimits: TypeAlias = Callable[[], Mapping[str, int]]
"""Returns how many tasks of a tool run at once, for the tools that have such a limit."""

_KEPT_PART = 4
"""One in so many places is kept, and at least one if there are two."""


class Places:
    """The places of one process.

    Args:
        count: How many there are.
        limits: The limits of tools.

    Attributes:
        count: How many there are.
    """

    def __init__(self, count: int, limits: ToolLimits = dict) -> None:
        self.count = count
        self._limits = limits
        self._used = 0
        self._by_payer: Counter[str] = Counter()
        self._by_tool: Counter[str] = Counter()

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
        highest = max(self._by_payer.values(), default=0)
        return min(self.free, self.share - highest)

    def of_tools(self) -> dict[str, int]:
        """Return how many more tasks of each tool with a limit may run."""
        return {tool: max(0, limit - self._by_tool[tool]) for tool, limit in self._limits().items()}

    def has_room(self, payer: str | None, tool: str) -> bool:
        """Return whether a task of a caller and a tool may run; None is an unknown caller."""
        is_in_share = payer is None or self._by_payer[payer] < self.share
        return self.free > 0 and is_in_share and not self.is_full(tool)

    def is_full(self, tool: str) -> bool:
        """Return whether a tool has its limit of tasks."""
        limit = self._limits().get(tool)
        return limit is not None and self._by_tool[tool] >= limit

    def take(self, payer: str | None, tool: str) -> None:
        """Count a run."""
        self._used += 1
        self._by_tool[tool] += 1
        if payer is not None:
            self._by_payer[payer] += 1

    def give_back(self, payer: str | None, tool: str) -> None:
        """Count a run no more."""
        self._used -= 1
        self._by_tool[tool] -= 1
        if not self._by_tool[tool]:
            del self._by_tool[tool]
        if payer is not None:
            self._by_payer[payer] -= 1
            if not self._by_payer[payer]:
                del self._by_payer[payer]
