"""What all stores of tasks have in common: waiting claims, transitions, limits, pages, and outages.

A store of a kind subclasses `BaseTasks` and has nine methods: `_insert`, `_load`, `_load_call`, `_change`, `_delete`,
`_claim_due`, `_page`, `_scan` and `aclose`. A store that can count its waiting tasks also overrides `backlog`. They
raise StoreUnavailableError while the store can't be reached. `TaskStore` says what the public methods mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from time import monotonic, time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from funcmcp._objects.public_names import public
from funcmcp._protocol.durations import seconds_until
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks import record as transitions
from funcmcp._state.tasks.record import current, failure, new_bytes, new_record
from funcmcp._state.tasks.store import (
    TaskLimits,
    TasksFullError,
    UnreadableTask,
    UnreadableTaskError,
    check_concurrency,
    check_lease,
    position,
)
from funcmcp._state.tasks.task_filter import ANY_TASK

R = TypeVar("R")
Q = TypeVar("Q")

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from funcmcp._state.tasks.record import Claim, NewTask, Outcome, Question, TaskKey, TaskRecord
    from funcmcp._state.tasks.store import Backlog
    from funcmcp._state.tasks.task_filter import TaskFilter

    Transition: TypeAlias = Callable[[TaskRecord, float], TaskRecord | None]

_logger = logging.getLogger("funcmcp")

CLAIM_WAIT = 1.0
"""Seconds for which `claim` waits."""

_SCAN_PAUSE = 10.0
"""Seconds after which all tasks are read again for those that have ended, if there were none."""

_MOST_EVICTED = 1000
"""Tasks that are removed at once before their time."""

MAX_CONFLICTS = 20
"""Writes of one record that other writers may overtake; more than that means that the store does not work."""


@public("funcmcp.tasks")
class OwnedTasks(NamedTuple):
    """The tasks of one owner.

    Attributes:
        total: The number of tasks.
        first_removed: When the first of them is removed; any number if there are none.
        live: The number of tasks that have not ended.
        first_expiry: When the first of these expires; any number if there are none.
    """

    total: int
    first_removed: float
    live: int
    first_expiry: float


@public("funcmcp.tasks")
class BaseTasks:
    """The part of a store that is the same for all.

    Args:
        limits: How much is kept.
        concurrency: Tasks that this process runs at once; 0 if it only creates them.
        lease: Seconds after which another worker may take a task; None if no other may.
        clock: Returns seconds since 1970.
    """

    shared: bool = True
    pulls: bool = True

    first_pause: float = 0.02
    longest_pause: float = 0.2
    """Seconds between two looks for tasks that another process has made due."""

    def __init__(
        self,
        *,
        limits: TaskLimits | None = None,
        concurrency: int = 10,
        lease: float | None = 30.0,
        clock: Callable[[], float] = time,
    ) -> None:
        check_concurrency(concurrency)
        if lease is not None:
            check_lease(lease)
        self.limits: TaskLimits = TaskLimits() if limits is None else limits
        self.concurrency = concurrency
        self.lease: float = math.inf if lease is None else lease
        self._clock = clock
        self._server = ""
        self._waiting: set[asyncio.Future[None]] = set()
        self._wakes = 0
        self._scans_at = 0.0
        self._has_unreadable = False

    def bind(self, server: str) -> None:
        """Use the tasks of the server of this name; each server has its own."""
        self._server = server

    async def create(self, task: NewTask) -> TaskRecord:
        """Create a task, which is due after its delay; raise TasksFullError."""
        record = new_record(task, self._clock())
        size = new_bytes(record, task.call)
        record = await self._with_room(task.key, task.payer, lambda: self._insert(record, task, size), size)
        self._changed(record)
        return record

    async def read(self, key: TaskKey) -> TaskRecord | None:
        """Return a task as it is now; None if it does not exist, or belongs to another owner."""
        record = await self._load(key)
        return None if record is None else current(record, self._clock())

    async def claim(self, count: int, only: TaskFilter = ANY_TASK) -> Sequence[Claim]:
        """Give this worker tasks that are due; see `TaskStore.claim`. Wait up to a second if none is."""
        end, pause, wakes = monotonic() + CLAIM_WAIT, self.first_pause, self._wakes
        while True:
            claims = await self._claim_due(count, only)
            left = end - monotonic()
            if claims or left <= 0 or wakes != self._wakes:
                return claims
            await self._wait(min(pause, left, self._until_due(only)))
            pause = min(pause * 2, self.longest_pause)

    def wake(self) -> None:
        """Make each `claim` of this process check for tasks at once, and return."""
        self._wakes += 1
        for wake in self._waiting:
            if not wake.done():
                wake.set_result(None)

    async def renew(self, claim: Claim) -> bool:
        """Extend the lease of a claim. False: the task is over, or another worker has it."""
        changed = await self._change_claimed(
            claim, lambda record, now: transitions.renewed(record, claim.token, now, self.lease)
        )
        return changed is not None

    async def report(self, claim: Claim, message: str) -> TaskRecord | None:
        """Change the status message. None: the claim is not valid any more."""
        return await self._change_claimed(
            claim, lambda record, now: transitions.reported(record, claim.token, now, message)
        )

    async def note(self, claim: Claim, key: str, result: Any) -> TaskRecord | None:
        """Keep the result of a part of the run for later runs; raise TasksFullError."""
        return await self._with_room(
            claim.key,
            claim.record.payer,
            lambda: self._change_claimed(
                claim, lambda record, _now: transitions.noted(record, claim.token, key, result)
            ),
        )

    async def ask(self, claim: Claim, questions: Mapping[str, Question]) -> TaskRecord | None:
        """End the run, and wait for answers of the client; end the task if there is no room for the questions."""
        try:
            return await self._end_run_with_room(
                claim, lambda record, now: transitions.asking(record, claim.token, now, questions)
            )
        except TasksFullError as full:
            return await self.finish(claim, failure(f"There is no room for the questions of the tool. {full}."))

    async def finish(self, claim: Claim, outcome: Outcome) -> TaskRecord | None:
        """End the task, with an error if there is no room for the outcome. None: the claim is not valid any more."""
        try:
            return await self._end_run_with_room(claim, _finished(claim, outcome), len(outcome.text))
        except TasksFullError as full:
            message = f"The tool ran. There is no room for its result of {len(outcome.text)} bytes. {full}."
            return await self._unless_unreadable(self._end_run(claim, _finished(claim, failure(message))))

    async def release(self, claim: Claim, delay: float = 0.0, *, unknown: bool = False) -> TaskRecord | None:
        """Return the task to the queue; see `TaskStore.release`. None: the claim is not valid any more."""
        return await self._change_claimed(
            claim, lambda record, now: transitions.released(record, claim.token, now, delay, unknown=unknown)
        )

    async def retry(self, claim: Claim, delay: float, message: str) -> TaskRecord | None:
        """End a run that failed, and run the tool again later; see `TaskStore.retry`."""
        return await self._change_claimed(
            claim, lambda record, now: transitions.retrying(record, claim.token, now, delay, message)
        )

    async def answer(self, key: TaskKey, answers: Mapping[str, Mapping[str, Any]]) -> TaskRecord | None:
        """Take answers by the keys of the questions on the wire; None if no question waits for any of them."""
        return await self._with_room(
            key,
            key.owner,
            lambda: self._change(key, lambda record, now: transitions.answered(record, now, answers)),
        )

    async def cancel(self, key: TaskKey) -> TaskRecord | None:
        """Cancel a task. None: it does not exist, or was over."""
        return await self._change(key, transitions.cancelled)

    async def watch(self, key: TaskKey) -> None:
        """Note that a client waits for changes of a task."""
        await self._change(key, lambda record, _now: transitions.watched(record))

    async def page(self, owner: str | None, after: str | None, size: int) -> Sequence[TaskRecord]:
        """Return tasks of an owner, the oldest first; see `TaskStore.page`."""
        if owner is None:
            return []
        records = list(await self._page(owner, after, size))
        # A store leaves out tasks of a newer version, so later tasks fill the page. Without such tasks, a short page is
        # the last one, and no further query is needed.
        while self._has_unreadable and 0 < len(records) < size:
            further = await self._page(owner, position(records[-1]), size)
            if not further:
                break
            records += further
        now = self._clock()
        return [record for stored in records[:size] if (record := current(stored, now)) is not None]

    async def read_call(self, key: TaskKey) -> bytes | None:
        """Return the call of a task; see `TaskStore.read_call`."""
        return await self._load_call(key) or None

    async def scan(self) -> AsyncIterator[TaskRecord | UnreadableTask]:
        """Yield the tasks of all owners as they are when they are read; see `TaskStore.scan`."""
        seen: set[TaskKey] = set()
        async for stored in self._scan():
            record: TaskRecord | UnreadableTask | None = stored
            if isinstance(stored, UnreadableTask):
                self._report_unreadable()
            else:
                record = current(stored, self._clock())
            if record is not None and record.key not in seen:
                seen.add(record.key)
                yield record

    async def backlog(self) -> Backlog | None:
        """Return how many tasks wait for a worker; None, unless a store overrides this. See `TaskStore.backlog`."""
        return None

    async def aclose(self) -> None:
        """Close connections and files."""

    async def _insert(self, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        """Store a new task and return its record; raise TasksFullError if there is no room.

        A task with this key that exists already is left as it is. The result is its record, or the new one.

        Args:
            record: Its record.
            task: What `create` was called with.
            size: The bytes that it counts.
        """
        raise NotImplementedError

    async def _load(self, key: TaskKey) -> TaskRecord | None:
        """Return a record as it is stored; raise UnreadableTaskError if this version can't read it."""
        raise NotImplementedError

    async def _load_call(self, key: TaskKey) -> bytes | None:
        """Return the call of a task as it is stored."""
        raise NotImplementedError

    async def _change(self, key: TaskKey, transition: Transition) -> TaskRecord | None:
        """Apply a transition atomically; return the new record, or None if nothing has changed.

        Args:
            key: Of the task.
            transition: Gets the record as it is now and the time. It may be called again if another writer was faster.

        Raises:
            TasksFullError: The task would grow, and there is no room for its bytes. Nothing has changed.
            UnreadableTaskError: This version can't read the record.
        """
        raise NotImplementedError

    async def _delete(self, keys: Sequence[TaskKey]) -> None:
        """Remove tasks that have ended."""
        raise NotImplementedError

    async def _end_run(self, claim: Claim, transition: Transition) -> TaskRecord | None:
        """Apply a transition with which a run ends, as `_change` does."""
        return await self._change(claim.key, transition)

    async def _end_run_with_room(self, claim: Claim, transition: Transition, size: int = 0) -> TaskRecord | None:
        end = self._with_room(claim.key, claim.record.payer, lambda: self._end_run(claim, transition), size)
        return await self._unless_unreadable(end)

    async def _change_claimed(self, claim: Claim, transition: Transition) -> TaskRecord | None:
        """Apply a transition to the task of a claim, which is not valid if a newer version has written the record."""
        return await self._unless_unreadable(self._change(claim.key, transition))

    async def _unless_unreadable(self, change: Awaitable[TaskRecord | None]) -> TaskRecord | None:
        try:
            return await change
        except UnreadableTaskError:
            return None

    def _unreadable(self) -> UnreadableTaskError:
        """Return the error for a task that this version can't read. Log the first one."""
        self._report_unreadable()
        return UnreadableTaskError()

    def _readable(self, records: Iterable[TaskRecord | None]) -> list[TaskRecord]:
        """Return the records that this version can read; log the first one that it can't."""
        records = list(records)
        if None in records:
            self._report_unreadable()
        return [record for record in records if record is not None]

    def _report_unreadable(self) -> None:
        """Note that the store has tasks that this version can't read, and log the first one."""
        if not self._has_unreadable:
            self._has_unreadable = True
            _logger.warning(
                "The task store has tasks that were written by a newer version of the server, or are damaged. Requests "
                "for them are answered with 503 here. Processes of the newer version can read them."
            )

    async def _with_room(self, key: TaskKey, payer: str | None, write: Callable[[], Awaitable[R]], size: int = 0) -> R:
        """Return what a write returns. While it has no room, remove tasks that have ended.

        Args:
            key: Of the task that is written.
            payer: The caller for whom its bytes count.
            write: Raises TasksFullError if there is no room.
            size: Bytes that it needs at least.
        """
        limits = self.limits
        while True:
            try:
                return await write()
            except TasksFullError as full:
                share = limits.bytes_per_principal if full.is_owner_limit else limits.total_bytes
                if full.of_live or size > share:  # no task that has ended is in the way
                    raise
                if not await self._evict(key.owner, payer, of_all=not full.is_owner_limit):
                    raise

    async def _evict(self, owner: str | None, payer: str | None, *, of_all: bool) -> bool:
        """Remove the oldest tenth of the tasks of a caller, or of all, that have ended; return False if there are none.

        The tasks of an owner are on its page. For all others every task is read, and not again for a while if there
        are none.
        """
        if owner is not None and not of_all:
            ended = [_end_of(record) for record in await self.page(owner, None, self.limits.per_principal)]
        elif monotonic() < self._scans_at:
            return False
        else:
            records = [record async for record in self.scan() if not isinstance(record, UnreadableTask)]
            ended = [_end_of(record) for record in records if of_all or record.payer == payer]
        oldest = sorted(end for end in ended if end is not None)
        if not oldest:
            self._scans_at = monotonic() + _SCAN_PAUSE
        await self._delete([key for _, _, key in oldest[: min(len(oldest) // 10 + 1, _MOST_EVICTED)]])
        return bool(oldest)

    async def _claim_due(self, count: int, only: TaskFilter) -> Sequence[Claim]:
        """Claim tasks that are due now.

        Args:
            count: How many at most.
            only: Which tasks: `TaskFilter.accepts` says so for each.
        """
        raise NotImplementedError

    async def _page(self, owner: str, after: str | None, size: int) -> Sequence[TaskRecord]:
        """Return what `page` returns, with the records as they are stored."""
        raise NotImplementedError

    def _scan(self) -> AsyncIterator[TaskRecord | UnreadableTask]:
        """Yield the records of all owners as they are stored. A task may come twice."""
        raise NotImplementedError

    def _until_due(self, only: TaskFilter) -> float:  # noqa: ARG002 - for subclasses
        """Return the seconds until a task becomes due, if the store knows that without a look at all tasks."""
        return math.inf

    async def _wait(self, seconds: float) -> None:
        """Wait until this process makes a task due, or for a while."""
        wake = asyncio.get_running_loop().create_future()
        self._waiting.add(wake)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await wake
        finally:
            self._waiting.discard(wake)

    def _changed(self, record: TaskRecord) -> None:
        """Wake the workers of this process if a change has made a task due."""
        if record.due is not None and not record.claimed:
            self.wake()

    def _check_owned(self, owned: OwnedTasks, now: float) -> None:
        """Raise TasksFullError if there is no room for one more task of an owner."""
        if owned.live >= self.limits.live_per_principal:
            raise TasksFullError(seconds_until(owned.first_expiry, now), is_owner_limit=True, of_live=True)
        if owned.total >= self.limits.per_principal:
            raise TasksFullError(seconds_until(owned.first_removed, now), is_owner_limit=True)


@public("funcmcp.tasks")
def successor(stored: TaskRecord | None, now: float, transition: Transition) -> TaskRecord | None:
    """Return what a transition makes of a stored record at a time; None if it changes nothing."""
    record = None if stored is None else current(stored, now)
    return None if record is None else transition(record, now)


async def claim_in_turn(
    queues: Sequence[Q], turn: int, count: int, claim: Callable[[Q, list[Claim]], Awaitable[Sequence[Claim]]]
) -> list[Claim]:
    """Claim tasks in one queue after the other until there are enough claims.

    Args:
        queues: The queues.
        turn: Decides which queue is the first one. It grows by one with each call.
        count: How many claims are enough.
        claim: Claims tasks in a queue; the second argument has the claims so far, of which there are less than *count*.

    Raises:
        StoreUnavailableError: The store can't be reached, and nothing was claimed before.
    """
    claims: list[Claim] = []
    for index in range(len(queues)):
        try:
            claims += await claim(queues[(turn + index) % len(queues)], claims)
        except StoreUnavailableError:
            if not claims:
                raise
            break
        if len(claims) >= count:
            break
    return claims


def _end_of(record: TaskRecord) -> tuple[float, str, TaskKey] | None:
    """Return when a task has ended, its id, and its key; None if it has not ended."""
    return (record.updated, record.key.task_id, record.key) if record.over else None


def _finished(claim: Claim, outcome: Outcome) -> Transition:
    """Return the transition that ends a task with an outcome."""
    return lambda record, now: transitions.finished(record, claim.token, now, outcome)
