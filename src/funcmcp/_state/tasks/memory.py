"""Tasks in this process's memory. They end with the process.

How it works: the tasks of a queue and a tool that are due, or will be, are in a heap of their own. A claim takes the
first task of all heaps that its worker serves.
"""

from __future__ import annotations

import heapq
import math
from time import time
from typing import TYPE_CHECKING

from funcmcp._objects.public_names import public
from funcmcp._protocol.durations import seconds_until
from funcmcp._state.tasks.any_store import BaseTasks, successor
from funcmcp._state.tasks.record import Claim, changed_bytes, claimed, current
from funcmcp._state.tasks.store import MIB, Backlog, TaskLimits, TasksFullError, position

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence
    from typing import TypeAlias

    from funcmcp._state.tasks.any_store import Transition
    from funcmcp._state.tasks.record import NewTask, TaskKey, TaskRecord
    from funcmcp._state.tasks.task_filter import TaskFilter

    Heap: TypeAlias = list[tuple[float, int, TaskKey]]


@public("funcmcp.tasks")
class MemoryTasks(BaseTasks):
    """Tasks that live in one process.

    Args:
        limits: How much is kept.
        concurrency: Tasks that run at once.
        clock: Returns seconds since 1970.
    """

    shared = False
    first_pause: float = math.inf  # only this process makes tasks due
    longest_pause: float = math.inf

    def __init__(
        self,
        *,
        limits: TaskLimits | None = None,
        concurrency: int = 10,
        clock: Callable[[], float] = time,
    ) -> None:
        limits = limits or TaskLimits(total=10_000, total_bytes=64 * MIB, bytes_per_principal=6 * MIB)
        # A worker that died would have taken the tasks with it, so that no lease ends.
        super().__init__(limits=limits, concurrency=concurrency, lease=None, clock=clock)
        self._tasks: dict[TaskKey, _Task] = {}
        self._by_payer: dict[str, _Payer] = {}
        self._bytes = 0
        self._due: dict[tuple[str, str], Heap] = {}
        self._pushed = 0
        self._removals: Heap = []

    async def _insert(self, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        now = self._clock()
        self._remove_old(now)
        existing = self._tasks.get(task.key)
        if existing is not None:
            return existing.record
        self._check_room(task.key.owner, now)
        stored = _Task(record, task.call, task.payer)
        self._count(stored, size, now)
        self._tasks[task.key] = stored
        if task.payer is not None:
            payer = self._by_payer[task.payer]
            payer.keys[task.key] = None
            payer.live[task.key] = record.expires
        self._push(self._removals, record.removed, task.key)
        self._push_due(record)
        return record

    async def _load(self, key: TaskKey) -> TaskRecord | None:
        task = self._tasks.get(key)
        return None if task is None else task.record

    async def _load_call(self, key: TaskKey) -> bytes | None:
        task = self._tasks.get(key)
        return None if task is None else task.call

    async def _page(self, owner: str, after: str | None, size: int) -> Sequence[TaskRecord]:
        payer = self._by_payer.get(owner)
        if payer is None:
            return []
        now = self._clock()
        records = [current(self._tasks[key].record, now) for key in payer.keys]
        ordered = sorted((record for record in records if record is not None), key=position)
        return [record for record in ordered if after is None or position(record) > after][:size]

    async def _scan(self) -> AsyncIterator[TaskRecord]:
        for task in list(self._tasks.values()):
            yield task.record

    async def backlog(self) -> Backlog:
        """Return how many tasks wait for a worker; see `TaskStore.backlog`."""
        now = self._clock()
        due = [task.record.due for task in self._tasks.values() if task.record.due is not None]
        waiting = [moment for moment in due if moment <= now]
        return Backlog(len(waiting), max(0.0, now - min(waiting, default=now)))

    def __len__(self) -> int:
        self._remove_old(self._clock())
        return len(self._tasks)

    async def _change(self, key: TaskKey, transition: Transition) -> TaskRecord | None:
        task = self._tasks.get(key)
        return None if task is None else self._apply(task, self._clock(), transition)

    async def _delete(self, keys: Sequence[TaskKey]) -> None:
        for key in keys:
            if key in self._tasks:
                self._remove(key)

    async def _claim_due(self, count: int, only: TaskFilter) -> list[Claim]:
        now = self._clock()
        claims: list[Claim] = []
        while len(claims) < count:
            name = self._first_due(only, claims)
            if name is None or self._due[name][0][0] > now:
                break
            _, _, key = heapq.heappop(self._due[name])
            if not self._due[name]:
                del self._due[name]
            task = self._tasks.get(key)
            if task is None:
                continue
            call = task.call
            changed = self._apply(task, now, self._claimed)
            if changed is not None:  # else the entry is older than the last change, which has an entry of its own
                claims.append(Claim(changed, call, now))
        return claims

    def _first_due(self, only: TaskFilter, claims: Sequence[Claim]) -> tuple[str, str] | None:
        """Return queue and tool of the first of the tasks that a worker can run in addition to its claims."""
        heaps = [(heap[0], name) for name, heap in self._due.items() if only.accepts(*name, claims)]
        return min(heaps)[1] if heaps else None

    def _claimed(self, record: TaskRecord, now: float) -> TaskRecord | None:
        return claimed(record, now, self.lease)

    def _apply(self, task: _Task, now: float, transition: Transition) -> TaskRecord | None:
        """Apply a transition; return the new record, or None if nothing has changed."""
        changed = successor(task.record, now, transition)
        if changed is None:
            return None
        self._count(task, changed_bytes(task.size, task.record, changed), now)
        task.record = changed
        if changed.over:
            self._end(task)
        if changed.removed < changed.expires + changed.keep:
            self._push(self._removals, changed.removed, changed.key)
        self._push_due(changed)
        self._changed(changed)
        return changed

    def _end(self, task: _Task) -> None:
        """Drop what a task needs only until it has ended."""
        if not task.record.keeps_call:
            task.call = b""
        if task.payer is not None:
            self._by_payer[task.payer].live.pop(task.record.key, None)

    def _until_due(self, only: TaskFilter) -> float:
        name = self._first_due(only, ())
        return math.inf if name is None else max(0.0, self._due[name][0][0] - self._clock())

    def _push_due(self, record: TaskRecord) -> None:
        if record.due is not None and record.due < math.inf:
            heap = self._due.setdefault((record.queue, record.tool), [])
            self._push(heap, record.due, record.key)

    def _push(self, heap: Heap, moment: float, key: TaskKey) -> None:
        self._pushed += 1
        heapq.heappush(heap, (moment, self._pushed, key))

    def _remove_old(self, now: float) -> None:
        while self._removals and self._removals[0][0] <= now:
            _, _, key = heapq.heappop(self._removals)
            task = self._tasks.get(key)
            if task is None:
                continue
            if task.record.removed > now:
                self._push(self._removals, task.record.removed, key)
                continue
            self._remove(key)

    def _remove(self, key: TaskKey) -> None:
        task = self._tasks.pop(key)
        self._count(task, 0, 0.0)
        if task.payer is not None:
            payer = self._by_payer[task.payer]
            del payer.keys[key]
            payer.live.pop(key, None)
            if not payer.keys:
                del self._by_payer[task.payer]

    def _count(self, task: _Task, size: int, now: float) -> None:
        """Count a task with its bytes; raise TasksFullError if it grows and there is no room."""
        growth = size - task.size
        limits = self.limits
        payer = None if task.payer is None else self._by_payer.get(task.payer, _Payer())
        if payer is not None and growth > 0 and payer.bytes + growth > limits.bytes_per_principal:
            raise TasksFullError(self._wait_for(payer.keys, now), is_owner_limit=True, of_bytes=True)
        if growth > 0 and self._bytes + growth > limits.total_bytes:
            raise TasksFullError(seconds_until(self._removals[0][0] if self._removals else now, now), of_bytes=True)
        task.size = size
        self._bytes += growth
        if payer is not None and task.payer is not None:
            payer.bytes += growth
            self._by_payer[task.payer] = payer

    def _wait_for(self, keys: Iterable[TaskKey], now: float) -> int:
        """Return the seconds until the first of some tasks is removed."""
        return seconds_until(min((self._tasks[key].record.removed for key in keys), default=now), now)

    def _check_room(self, owner: str | None, now: float) -> None:
        """Raise TasksFullError if there is no room for one more task of an owner."""
        limits = self.limits
        if len(self._tasks) >= limits.total:
            raise TasksFullError(seconds_until(self._removals[0][0], now))
        owned = None if owner is None else self._by_payer.get(owner)
        if owned is None:
            return
        if len(owned.live) >= limits.live_per_principal:
            owned.live = {key: expires for key, expires in owned.live.items() if expires > now}
        if len(owned.live) >= limits.live_per_principal:
            raise TasksFullError(seconds_until(min(owned.live.values()), now), is_owner_limit=True, of_live=True)
        if len(owned.keys) >= limits.per_principal:
            raise TasksFullError(self._wait_for(owned.keys, now), is_owner_limit=True)


class _Payer:
    """The tasks of one principal, or of the anonymous callers at one address.

    Attributes:
        bytes: Their bytes.
        keys: All tasks, as the keys of a dict.
        live: When those expire that have not ended. Expired ones are removed when there is no room.
    """

    __slots__ = ("bytes", "keys", "live")

    def __init__(self) -> None:
        self.bytes = 0
        self.keys: dict[TaskKey, None] = {}
        self.live: dict[TaskKey, float] = {}


class _Task:
    """A task.

    Attributes:
        record: The record.
        call: See `NewTask`.
        payer: See `NewTask`.
        size: The bytes that count for the payer.
    """

    __slots__ = ("call", "payer", "record", "size")

    def __init__(self, record: TaskRecord, call: bytes, payer: str | None) -> None:
        self.record = record
        self.call = call
        self.payer = payer
        self.size = 0
