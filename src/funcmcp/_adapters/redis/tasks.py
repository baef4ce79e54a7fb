"""Tasks in Redis, which the workers of all machines share.

How it works: a task is a hash (`task_records`), and a task that is due has one entry in the stream of its lane. Workers
read a stream as one consumer of one group, so an entry goes to one worker. While the tool runs, its entry is pending
and the worker resets its idle time (XCLAIM); an entry that is idle for longer than the lease goes to another worker
(XAUTOCLAIM). `task_scripts` has the scripts that do so.

Each queue is a lane. The tasks of a tool with a limit have a lane of their own in their queue, so that a worker without
a place for them need not read them. Workers read their lanes in turn. The names of lanes are in a set, at which workers
look once a second. A version without queues uses one lane for all tasks that it makes due: a worker that gets a task of
another lane from there moves it to its own.

A worker reads several entries with one script, and claims their tasks with another. The end of a run is stored without
reading the task again: the version that a claim writes is its token.

A process that creates a task and has room for a run claims the task with the script that creates it. Such a task has no
entry in the stream. It is among the delayed tasks, as one that is due when the lease lapses; a renewal moves that time.
If the process dies, the task gets an entry like any other delayed task. If Redis does not confirm such a creation, the
process releases the task as soon as Redis replies, because a lease that lapses counts as a run.

A worker without work waits for an element of the lists `signals` of its lanes. Each new entry adds one, so one worker
wakes up. A signal may get lost with a worker: all workers read the streams once a second as well.

Needs ``pip install "funcmcp[redis]"`` and Redis 7.0 or newer. While Redis can't be reached, every method raises
StoreUnavailableError in a bounded time.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from random import uniform
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._adapters.redis.task_records import Lane, RedisRecords, key_of, member_of
from funcmcp._adapters.redis.task_scripts import ADD_DUE, BACKLOG, CLAIM, DROP, RENEW, TAKE
from funcmcp._objects.public_names import public
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks import record as transitions
from funcmcp._state.tasks.any_store import MAX_CONFLICTS, claim_in_turn, successor
from funcmcp._state.tasks.record import Claim, claimed, from_json, new_token
from funcmcp._state.tasks.store import Backlog
from funcmcp._state.tasks.task_filter import ANY_TASK

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from redis.asyncio import Redis

    from funcmcp._adapters.redis.link import RedisLink
    from funcmcp._state.tasks.record import NewTask, TaskKey, TaskRecord
    from funcmcp._state.tasks.store import TaskLimits
    from funcmcp._state.tasks.task_filter import TaskFilter

_WAIT = 1.0
"""Seconds for which a worker waits for a signal before it reads the stream again."""

_LAPSED_INTERVAL = 1.0
"""Seconds between two looks for tasks whose leases have lapsed."""

_RELEASE_PAUSE = 0.1
"""The part of a lease after which a task is released again whose creation Redis has not confirmed."""

_NAMES_INTERVAL = 1.0
"""Seconds between two looks for lanes that other processes have added."""

_NO_LIST = "{}:signals/"
"""The list of signals of no lane."""

_FIRST_ENTRY = b"0-0"
"""Where the search for lapsed entries begins, and ends."""


_NO_TASK, _TAKEN = 0, 1
"""The replies of `CLAIM` for a task that does not exist, and for an entry that another worker has."""


class _Entry(NamedTuple):
    """An entry of a stream that this worker has.

    Attributes:
        lane: Of the stream.
        id: Of the entry.
        key: Of its task.
        delivery: How often the entry was delivered, this time included.
        token: Of the claim that this worker makes.
    """

    lane: Lane
    id: bytes
    key: TaskKey
    delivery: int
    token: str


@dataclass(slots=True)
class _LapsedScan:
    """How far this worker has looked for lapsed leases in a lane.

    Attributes:
        next: When it looks again.
        cursor: The entry at which it goes on.
    """

    next: float = 0.0
    cursor: bytes = _FIRST_ENTRY


class _Handover:
    """New tasks of this process, which go to its own worker without an entry in a stream.

    How it works: between `open` and `close` a worker of this process claims tasks. While it takes new ones it says how
    many (`set_places`). A task that gets one of these places (`reserve`) is created as claimed. Its claim is delivered
    to the worker, which takes it with the next end of its `claim`, or is refused if the worker has stopped meanwhile.

    Attributes:
        only: What the worker can run now.
        creating: Tasks that have a place, and whose creation is not confirmed.
        has_new_tasks: Whether a task was created since the worker read the streams.
    """

    def __init__(self) -> None:
        self.only = ANY_TASK
        self.creating = 0
        self.has_new_tasks = False
        self._is_open = False
        self._places = 0
        self._claims: list[Claim] = []
        self._wakeup: asyncio.Future[None] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a `claim` waits for a new task."""
        return self._wakeup is not None

    @property
    def has_claims(self) -> bool:
        """Whether there are claims that the worker has not taken."""
        return bool(self._claims)

    def open(self, only: TaskFilter) -> None:
        """Note that a worker claims tasks."""
        self._is_open = True
        self.only = only

    def close(self) -> None:
        """Note that no worker takes new tasks, and end its wait."""
        self._is_open = False
        self._places = 0
        self.wake()

    def set_places(self, count: int) -> None:
        """Note how many new tasks the worker takes, those included that are being created."""
        self._places = count

    def reserve(self, task: NewTask) -> bool:
        """Take a place for a task. Return False if there is none, or if the task is not for this worker now."""
        self.has_new_tasks = True
        is_for_this_worker = not task.limited and self.only.accepts(task.queue, task.tool)
        if task.delay or not is_for_this_worker or self._places <= self.creating + len(self._claims):
            return False
        self.creating += 1
        return True

    def deliver(self, claim: Claim) -> bool:
        """Give the worker the claim of a task that was created. Return False if it has stopped."""
        if self._is_open:
            self._claims.append(claim)
            self.wake()
        return self._is_open

    def take(self) -> list[Claim]:
        """Return the delivered claims, and forget them."""
        claims, self._claims = self._claims, []
        return claims

    def wake(self) -> None:
        """End a wait."""
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    async def wait(self, count: int) -> None:
        """Wait until this process has created one of *count* tasks, or until `wake`; not at all without a worker."""
        if not self._is_open or self._claims:
            return
        self._wakeup = asyncio.get_running_loop().create_future()
        self._places = count
        try:
            await self._wakeup
        finally:
            self._wakeup = None


@public("funcmcp.tasks")
class RedisTasks(RedisRecords):
    """Tasks that live in Redis.

    Servers with the same name, Redis and prefix share their tasks; servers with other names never see them.

    Args:
        redis: A URL, or a link that sessions and other things use, too.
        limits: How much is kept.
        concurrency: Tasks that this process runs at once; 0 if it only creates them.
        lease: Seconds after which another worker may take a task whose worker does not answer any more.
    """

    def __init__(
        self,
        redis: str | RedisLink,
        *,
        limits: TaskLimits | None = None,
        concurrency: int = 10,
        lease: float = 15.0,
    ) -> None:
        super().__init__(redis, limits=limits, concurrency=concurrency, lease=lease)
        self._handover = _Handover()
        self._turn = 0
        self._lapsed_scans: dict[str, _LapsedScan] = {}
        self._names_at = 0.0
        self._signalled: set[str] = set()
        self._releases: dict[asyncio.Task[None], Claim] = {}
        self._unconfirmed: Sequence[_Entry] = ()
        self._signal: asyncio.Task[None] | None = None

    async def claim(self, count: int, only: TaskFilter = ANY_TASK) -> Sequence[Claim]:
        """Give this worker tasks that are due; see `TaskStore.claim`.

        While an earlier wait for a signal lasts, nothing can be due but tasks that this process creates: the streams
        are not read.
        """
        self._handover.open(only)
        try:
            claims = await self._claims(count)
        finally:
            self._handover.set_places(0)
        return [*claims, *self._handover.take()]

    def wake(self) -> None:
        """End a `claim` that waits. Until the next one, tasks that this process creates are for all workers."""
        self._handover.close()

    async def renew(self, claim: Claim) -> bool:
        """Extend the lease of a claim; see `TaskStore.renew`."""
        lane = self._lane_of(claim.record)
        keys = (self._hash(claim.key), lane.stream, lane.delayed)
        arguments = (claim.token, member_of(claim.key), int(self.lease * 1000))
        renewed: int = await self._run(RENEW, int, keys, arguments)
        return renewed > 0

    async def backlog(self) -> Backlog:
        """Return how many tasks wait for a worker; see `TaskStore.backlog`."""
        await self._learn_lanes()
        replies = await asyncio.gather(
            *(
                self._run(BACKLOG, list, (lane.stream, lane.delayed), (int(self.lease * 1000),))
                for lane in list(self._lanes.values())
            )
        )
        return Backlog(sum(reply[0] for reply in replies), max(reply[1] for reply in replies) / 1000)

    async def aclose(self) -> None:
        """Release tasks that no worker has begun, and close the connections."""
        self.wake()
        claims = self._handover.take()
        for releasing, claim in [*self._releases.items()]:
            if releasing.get_loop() is asyncio.get_running_loop():
                releasing.cancel()
                claims.append(claim)
        with contextlib.suppress(StoreUnavailableError):
            if self._unconfirmed:
                claims += await self._claim_all(self._unconfirmed)
            for claim in claims:
                await self.release(claim)
        signal, self._signal = self._signal, None
        if signal is not None and signal.get_loop() is asyncio.get_running_loop():
            signal.cancel()
            await asyncio.wait([signal])
        await super().aclose()

    async def _insert(self, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        """Store a new task, as claimed if the worker of this process has a place for it."""
        if not self._handover.reserve(task):
            await self._create(record, task, size)
            return record
        claim = Claim(transitions.first_claim(record), task.call, record.created)
        try:
            is_own = await self._create(claim.record, task, size)
        except (StoreUnavailableError, asyncio.CancelledError) as error:
            if not getattr(error, "nothing_written", False):
                self._release_soon(claim)
            raise
        finally:
            self._handover.creating -= 1
        if is_own and not self._handover.deliver(claim):
            self._release_soon(claim)
        return claim.record

    def _release_soon(self, claim: Claim) -> None:
        """Release a task that this process has created as claimed, and does not run."""
        releasing = asyncio.ensure_future(self._release_created(claim))
        self._releases[releasing] = claim
        releasing.add_done_callback(lambda task: self._releases.pop(task, None))

    async def _release_created(self, claim: Claim) -> None:
        """Release a task as soon as Redis replies. Its creation may reach Redis later, until the lease would lapse."""
        deadline = monotonic() + self.lease
        is_over = False
        while not is_over:
            with contextlib.suppress(StoreUnavailableError):
                is_over = await self.release(claim) is not None or monotonic() >= deadline
            if not is_over:
                # Not together with others: a reply that is lost fails all scripts of its pipeline.
                await asyncio.sleep(self.lease * _RELEASE_PAUSE * uniform(0.5, 1.5))  # noqa: S311 - no secret

    async def _claims(self, count: int) -> Sequence[Claim]:
        """Return claims of tasks in the stream; none if this process has created tasks, or the wait has ended."""
        if self._unconfirmed:
            claims = await self._claim_all(self._unconfirmed)
            if claims:
                return claims
        handover = self._handover
        room = count - handover.creating
        if not handover.has_claims and room > 0:
            lanes = await self._served_lanes()
            if not self._waits_for_signal() or not {lane.name for lane in lanes} <= self._signalled:
                # A part is for tasks that this process creates meanwhile, unless the worker looks through the streams.
                reserved = room // 2 if handover.has_new_tasks and room <= self.concurrency else 0
                handover.has_new_tasks = False
                handover.set_places(handover.creating + reserved)
                claims = await self._take(lanes, room - reserved)
                if claims:
                    return claims
            if not self._waits_for_signal():
                self._signal = asyncio.ensure_future(self._await_signal(lanes))
        await handover.wait(count)
        return []

    async def _served_lanes(self) -> list[Lane]:
        """Return the lanes of tasks that this worker can run now."""
        await self._learn_lanes()
        return [lane for lane in self._lanes.values() if self._handover.only.accepts(lane.queue, lane.tool)]

    async def _learn_lanes(self) -> None:
        """Look once a second for lanes that other processes have added."""
        if monotonic() >= self._names_at:
            names: set[bytes] = await self._do(lambda redis: redis.smembers(self._lane_names), set)
            for name in sorted(names):
                self._lane(name.decode())
            self._names_at = monotonic() + _NAMES_INTERVAL

    def _waits_for_signal(self) -> bool:
        signal = self._signal
        return signal is not None and not signal.done() and signal.get_loop() is asyncio.get_running_loop()

    async def _await_signal(self, lanes: Sequence[Lane]) -> None:
        """Wait for a signal for a second at most, and pass it on if this worker does not wait for it any more."""
        self._signalled = {lane.name for lane in lanes}
        lists = [lane.signals for lane in lanes] or [_NO_LIST.format(self._prefix)]
        signals: list[Any] = []

        async def pop(redis: Redis) -> None:
            signals.append(await redis.blpop(lists, timeout=_WAIT))

        async def push(redis: Redis) -> int:
            length: int = await redis.rpush(signals[0][0], b"")
            return length

        try:
            await self._link.reach(pop, _WAIT + self._link.timeout)
            self._link.note_success()
            if signals != [None] and not self._handover.is_waiting:
                await self._do(push, int)
        except StoreUnavailableError:
            pass  # all workers read the stream once a second
        except Exception as error:  # noqa: BLE001 - as in RedisLink.do: exceptions of the event loop and the parser
            self._link.note_failure(error)
        self._handover.wake()

    async def _take(self, lanes: Sequence[Lane], count: int) -> list[Claim]:
        """Claim tasks of some lanes, at most so many. The first one is another one each time."""

        def take(lane: Lane, claims: Sequence[Claim]) -> Awaitable[list[Claim]]:
            room = count - len(claims)
            if lane.tool:
                room = min(room, self._handover.only.places.get(lane.tool, room))
            return self._take_from(lane, room)

        self._turn += 1
        return await claim_in_turn(lanes, self._turn, count, take)

    async def _take_from(self, lane: Lane, count: int) -> list[Claim]:
        """Claim tasks in the stream of a lane, at most so many.

        Once a second, it also takes those whose workers have not renewed their leases.
        """
        scan = self._lapsed_scans.setdefault(lane.name, _LapsedScan())
        lease = ""
        if monotonic() >= scan.next:
            lease = str(int(self.lease * 1000))
            scan.next = monotonic() + min(self.lease / 3, _LAPSED_INTERVAL)
        keys = (lane.stream, lane.delayed, lane.signals)
        try:
            milliseconds, cursor, due, rows = await self._run(TAKE, list, keys, (count, lease, scan.cursor))
            if due:
                await self._add_due(lane, due)
            if due and not rows:
                _, cursor, _, rows = await self._run(TAKE, list, keys, (count, "", cursor))
        except StoreUnavailableError:
            scan.next = 0.0
            raise
        scan.cursor = cursor
        if cursor != _FIRST_ENTRY:
            scan.next = 0.0  # there may be more
        self._note_time(milliseconds)
        entries: list[_Entry] = []
        useless: list[bytes] = []
        for entry, member, delivery in rows:
            key = key_of(member)
            if key is None:
                useless.append(entry)
            else:
                entries.append(_Entry(lane, entry, key, delivery, new_token()))
        if useless:
            await self._drop(lane, useless)
        return await self._claim_all(entries) if entries else []

    async def _add_due(self, lane: Lane, members: Sequence[bytes]) -> None:
        """Add entries for delayed tasks that are due."""
        keys: list[Any] = [lane.stream, lane.delayed, lane.signals]
        keys += [self._hash_of_member(member) for member in members]
        await self._run(ADD_DUE, int, keys, members)

    async def _claim_all(self, entries: Sequence[_Entry], conflicts: int = 0) -> list[Claim]:
        """Claim the tasks of entries.

        Args:
            entries: The entries, which are of one lane.
            conflicts: How often other writers have changed the task meanwhile.
        """
        if conflicts > MAX_CONFLICTS:
            raise StoreUnavailableError(store="task store")
        replies = await self._send_claims(entries)
        lane = entries[0].lane
        claims = [reply for reply in replies if isinstance(reply, Claim) and self._lane_of(reply.record) == lane]
        useless = [entry.id for entry, reply in zip(entries, replies, strict=True) if reply == _NO_TASK]
        try:
            if useless:
                await self._drop(lane, useless)
            for entry, reply in zip(entries, replies, strict=True):
                if isinstance(reply, Claim) and self._lane_of(reply.record) != lane:
                    await self.release(reply)
                    await self._drop(lane, [entry.id])
                elif isinstance(reply, bytes):
                    claims += await self._claim_undecided(entry, reply, conflicts)
        except StoreUnavailableError:
            if not claims:
                raise
            # The other entries are due again when their lease lapses.
        return claims

    async def _send_claims(self, entries: Sequence[_Entry]) -> list[Claim | bytes | int]:
        """Return claims of the tasks of entries; for those that are not claimed, the reply of `CLAIM`.

        If Redis does not reply, it may have claimed them: the next `claim` sends the same again.
        """
        self._unconfirmed = entries
        keys = [entries[0].lane.stream, *(self._hash(entry.key) for entry in entries)]
        arguments = [argument for entry in entries for argument in (entry.id, entry.delivery, entry.token)]
        milliseconds, *replies = await self._run(CLAIM, list, keys, arguments)
        self._unconfirmed = ()
        now = self._note_time(milliseconds)
        claims: list[Claim | bytes | int] = []
        for entry, reply in zip(entries, replies, strict=True):
            if isinstance(reply, list):
                state, call = reply
                record = from_json(entry.key, state, None)
                claims.append(_TAKEN if record is None else Claim(record, call, now))
            else:
                claims.append(reply)
        return claims

    async def _claim_undecided(self, entry: _Entry, version: bytes, conflicts: int) -> list[Claim]:
        """Claim a task about which `CLAIM` could not decide. An entry that stands for no task to run is removed.

        Args:
            entry: The entry.
            version: Of the record while this worker had the entry.
            conflicts: How often other writers have changed the task meanwhile.
        """
        stored = await self._load_stored(entry.key, "c")
        if stored is not None and stored.record is None:
            return []  # another version wrote it, and may read it: it gets the entry when the lease lapses
        changed = None
        if stored is not None and stored.entry == entry.id:
            changed = successor(stored.record, stored.now, _claimed_by_entry)
        if stored is None or stored.record is None or changed is None:
            await self._drop(entry.lane, [entry.id])
            return []
        # A record that may be claimed is written again, with its members in the order that `CLAIM` needs.
        written = changed if changed.over else stored.record
        if stored.version == version and await self._store(stored, written) and changed.over:
            return [Claim(changed, stored.call, stored.now)]
        return await self._claim_all([entry], conflicts + 1)

    async def _drop(self, lane: Lane, entries: Sequence[bytes]) -> None:
        """Remove entries of a stream."""
        await self._run(DROP, int, (lane.stream,), entries)


def _claimed_by_entry(record: TaskRecord, now: float) -> TaskRecord | None:
    """Claim a task. It is due for whoever has its entry, whose idle time is the lease."""
    return claimed(record, now if record.due is None else max(now, record.due), 0.0)
