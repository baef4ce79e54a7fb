"""Which tasks a worker can run now.

How it works: a task has the queue of its tool, which never changes. A worker serves all queues, or some, and it has so
many places for a tool. It passes both with each claim, so that a store leaves the other tasks to other workers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from funcmcp._state.tasks.record import Claim


@public("funcmcp.tasks")
@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks a worker can run now.

    Attributes:
        queues: The queues that it serves; None for all.
        places: How many more tasks of a tool it can run, by the name of the tool. Other tools have no such limit.
    """

    queues: Set[str] | None = None
    places: Mapping[str, int] = field(default_factory=dict)

    def accepts(self, queue: str, tool: str, claims: Sequence[Claim] = ()) -> bool:
        """Return whether the worker can run a task.

        Args:
            queue: Of the task.
            tool: The same.
            claims: What the worker gets with the same claim.
        """
        if self.queues is not None and queue not in self.queues:
            return False
        return tool not in self.places or self._has_place(tool, claims)

    def full_tools(self, claims: Sequence[Claim] = ()) -> list[str]:
        """Return the tools for whose tasks the worker has no place left.

        Args:
            claims: As of `accepts`.
        """
        return [tool for tool in self.places if not self._has_place(tool, claims)]

    def _has_place(self, tool: str, claims: Sequence[Claim]) -> bool:
        return sum(claim.record.tool == tool for claim in claims) < self.places[tool]


ANY_TASK = TaskFilter()
"""Of a worker that serves all queues, and whose tools have no limits."""
