"""Tasks in this process's memory. They end with the process."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
from time import time
from typing import TYPE_CHECKING

from funcmcp._protocol.durations import seconds_until
from funcmcp._public_names import public
from funcmcp._state.tasks.record import Claim, changed_bytes, claimed, current, new_bytes, new_record
from funcmcp._state.tasks.store import MIB, TaskLimits, TasksFullError, TransitionStore, check_concurrency, position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from funcmcp._state.tasks.record import NewTask, TaskKey, TaskRecord

_WAIT = 1.0
"""Seconds for which `claim` waits."""


@public("funcmcp.tasks")
class MemoryTasks(TransitionStore):
    """Tasks that live in one process.

    Args:
        limits: How much is kept.
        concurrency: Tasks that run at once.
        clock: Returns seconds since 1970.
    """

    shared = False
    pulls = True
    lease: float = math.inf  # a worker that died would have taken the tasks with it

    def __init__(
        self,
        *,
        limits: TaskLimits | None = None,
        concurrency: int = 10,
        clock: Callable[[], float] = time,
    ) -> None:
        self.limits: TaskLimits = limits or TaskLimits(total=10_000, total_bytes=64 * MIB, bytes_per_principal=6 * MIB)
        check_concurrency(concurrency)
        self.concurrency = concurrency
        self._clock = clock
        self._tasks: dict[TaskKey, _Task] = {}
        self._by_payer: dict[str, _Payer] = {}
        self._bytes = 0
        self._due: list[tuple[float, int, TaskKey]] = []
        self._pushed = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self._removals: list[tuple[float, int, TaskKey]] = []

    def bind(self, server: str) -> None:
        """Do nothing: the tasks are those of one server."""

    async def create(self, task: NewTask) -> TaskRecord:
        """Do what `TaskStore.create` says."""
        now = self._clock()
        self._remove_old(now)
        self._check_room(task.key.owner, now)
        record = new_record(task, now)
        stored = _Task(record, task.call, task.payer)
        self._count(stored, new_bytes(record, task.call), now)
        self._tasks[task.key] = stored
        if task.payer is not None:
            payer = self._by_payer[task.payer]
            payer.keys[task.key] = None
            payer.live[task.key] = record.expires
        self._push(self._removals, record.removed, task.key)
        self._make_due(record)
        return record

    async def read(self, key: TaskKey) -> TaskRecord | None:
        """Do what `TaskStore.read` says."""
        task = self._tasks.get(key)
        return None if task is None else current(task.record, self._clock())

    async def claim(self, count: int) -> Sequence[Claim]:
        """Do what `TaskStore.claim` says."""
        claims = self._claim_due(count)
        if not claims:
            await self._wait()
            claims = self._claim_due(count)
        return claims

    def wake(self) -> None:
        """Do what `TaskStore.wake` says."""
        for wake in self._waiting:
            if not wake.done():
                wake.set_result(None)

    async def page(self, owner: str | None, after: str | None, size: int) -> Sequence[TaskRecord]:
        """Do what `TaskStore.page` says."""
        now = self._clock()
        payer = None if owner is None else self._by_payer.get(owner)
        if payer is None:
            return []
        records = [current(self._tasks[key].record, now) for key in payer.keys]
        ordered = sorted((record for record in records if record is not None), key=position)
        return [record for record in ordered if after is None or position(record) > after][:size]

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    def __len__(self) -> int:
        self._remove_old(self._clock())
        return len(self._tasks)

    async def _change(
        self, key: TaskKey, transition: Callable[[TaskRecord, float], TaskRecord | None]
    ) -> TaskRecord | None:
        now = self._clock()
        task = self._tasks.get(key)
        record = None if task is None else current(task.record, now)
        changed = None if record is None else transition(record, now)
        if task is None or changed is None:
            return None
        self._count(task, changed_bytes(task.size, task.record, changed), now)
        task.record = changed
        if changed.over:
            self._end(task)
        if changed.removed < changed.expires + changed.keep:
            self._push(self._removals, changed.removed, key)
        self._make_due(changed)
        return changed

    def _claim_due(self, count: int) -> list[Claim]:
        now = self._clock()
        claims: list[Claim] = []
        while self._due and self._due[0][0] <= now and len(claims) < count:
            _, _, key = heapq.heappop(self._due)
            task = self._tasks.get(key)
            record = None if task is None else current(task.record, now)
            changed = None if record is None else claimed(record, now, self.lease)
            if task is None or changed is None:
                continue  # the entry is older than the last change of the task, which has an entry of its own
            claims.append(Claim(changed, task.call, now))
            self._count(task, changed_bytes(task.size, task.record, changed), now)
            task.record = changed
            if changed.over:
                self._end(task)
            self._make_due(changed)
        return claims

    def _end(self, task: _Task) -> None:
        """Drop what a task needs only until it has ended."""
        task.call = b""
        if task.payer is not None:
            self._by_payer[task.payer].live.pop(task.record.key, None)

    async def _wait(self) -> None:
        """Wait until a task becomes due, for a second at most."""
        seconds = _WAIT
        if self._due:
            seconds = min(seconds, max(0.0, self._due[0][0] - self._clock()))
        wake = asyncio.get_running_loop().create_future()
        self._waiting.add(wake)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await wake
        finally:
            self._waiting.discard(wake)

    def _make_due(self, record: TaskRecord) -> None:
        if record.due is None or record.due == math.inf:
            return
        self._push(self._due, record.due, record.key)
        if not record.claimed:
            self.wake()

    def _push(self, heap: list[tuple[float, int, TaskKey]], moment: float, key: TaskKey) -> None:
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
            del self._tasks[key]
            self._count(task, 0, now)
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
            raise TasksFullError(seconds_until(min(owned.live.values()), now), is_owner_limit=True)
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
