"""Tasks in Azure Storage, which the instances of a function app share.

How it works: a task is a blob, and its queue has a message for each task that is due.

    <container>/<server>/<owner>/<digest of the id>.json      the record, the call and the outcome
    <container>/<server>/<owner>/<digest of the id>.<part>    a call or an outcome of more than 64 KiB
    <container>/<server>/queues/<queue>.queue                 names a queue other than "default"

The metadata of the blob have what a list of blobs needs: id, times, and names of parts. A write applies a transition to
the record that was read, and succeeds only if the blob is still the same (If-Match); else it begins again. The names of
blobs contain no id, because URLs get into logs and traces.

A message names a server, an owner and a digest, and nothing else. There are two kinds:

- *run*: look whether the task is due. A task that is due is claimed. One that is claimed or delayed has its time, so
  the message is sent again, hidden until then. For any other task there is nothing to do. Messages may therefore come
  twice, too early and too late.
- *remove*: delete the blobs of the task if their time is up, else come back then. It is sent first, so that a task
  whose creation stops half-way leaves nothing behind.

In a function app, `http_app` adds a function with a queue trigger for each queue, and the functions host brings the
messages. Elsewhere `claim` takes them from the queues, from one after the other. A message that brought a claim stays
hidden for the length of the lease, and is deleted when it comes back and the task has ended.

A message may get lost between two writes. So `read` sends another one for a task that nobody has claimed, or whose
lease has lapsed, for some time.

Needs ``pip install "funcmcp[azure-tasks]"``. While the storage is away, every method raises StoreUnavailableError, in a
bounded time.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import math
import re
import secrets
from dataclasses import dataclass, replace
from time import monotonic, time
from typing import TYPE_CHECKING, NamedTuple

from funcmcp._adapters.azure.storage import Storage, check_packages
from funcmcp._adapters.azure.task_blobs import (
    NAME,
    OWNER,
    BlobName,
    ListedTask,
    bytes_in,
    digest_of,
    folder_of,
    from_content,
    key_of,
    listed_task,
    metadata_of,
    name_of,
    number_in,
    payer_in,
    to_content,
)
from funcmcp._objects.public_names import public
from funcmcp._protocol.durations import seconds_until
from funcmcp._server.log import logger
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.any_store import MAX_CONFLICTS, BaseTasks, OwnedTasks, claim_in_turn, successor
from funcmcp._state.tasks.queues import DEFAULT_QUEUE
from funcmcp._state.tasks.record import (
    Claim,
    TaskKey,
    abandoned,
    changed_bytes,
    claimed,
    current,
    from_json,
    to_json,
)
from funcmcp._state.tasks.store import Backlog, TasksFullError, UnreadableTask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from funcmcp._adapters.azure.storage import Message
    from funcmcp._state.tasks.any_store import Transition
    from funcmcp._state.tasks.record import NewTask, TaskRecord
    from funcmcp._state.tasks.store import TaskLimits
    from funcmcp._state.tasks.task_filter import TaskFilter

_MAX_MESSAGES = 32
"""Messages that the queue gives at once."""

_LONGEST_DELAY = 7 * 86_400
"""Seconds for which the queue hides a message at most."""

_MAX_DELIVERIES = 5
"""Deliveries of one message after which the functions host drops it, unless host.json has another number."""

_MAX_INLINE = 64 * 1024
"""Bytes of a call or an outcome in the blob of its task. A longer one has a blob of its own."""

_LAPSED_SECONDS, _UNCLAIMED_SECONDS = 15.0, 300.0
"""Seconds after which a message counts as lost: since the lease of a task has lapsed, and since a task became due."""

_NO_PLACE_DELAY = 2.0
"""Seconds for which a message is hidden for whose task this process has no place."""

_QUEUES_INTERVAL = 10.0
"""Seconds between two looks for queues that other processes have added."""

_CLOCK_DIFFERENCE = 1.0
"""Seconds by which the clocks of two instances may differ. A message may come that much before its task is due."""

_SCANNED = 20
"""Blobs that a scan of all tasks reads at once."""

_COUNT_INTERVAL = 1.0
_COUNT_SHARE = 50
"""The tasks are counted once in an interval, and not again before fifty times as long as the count took."""

_PREFIX = re.compile(r"(?=.{3,28}\Z)(?!.*--)[a-z0-9][a-z0-9-]*[a-z0-9]")
_RUN, _REMOVE = "run", "remove"
_QUEUE_ENDING = ".queue"


@dataclass(frozen=True, slots=True)
class _Stored:
    """A task as it was read.

    Attributes:
        version: The version of the blob.
        metadata: What the blob has beside its content.
        removed: When the task may be removed.
        record: None if this version of the server can't read it.
        call: Empty if it has a blob of its own.
        has_outcome: Whether the task has ended.
    """

    version: str
    metadata: Mapping[str, str]
    removed: float
    record: TaskRecord | None
    call: bytes
    has_outcome: bool = False


@public("funcmcp.tasks")
class AzureTasks(BaseTasks):
    """Tasks that live in Azure Storage.

    Servers with the same name, storage account and prefix share their tasks; servers with other names never see them.
    In a function app the tasks run in the function with a queue trigger that `funcmcp.azure.http_app` adds.

    Args:
        connection: The app setting with the connection string of the storage account, or the beginning of the names of
            settings such as ``<connection>__queueServiceUri``, as in the bindings of a function app.
        prefix: The name of the container, and the beginning of the names of queues.
        limits: How much is kept. Instances that create tasks at the same time may exceed the limits by a few.
        concurrency: Tasks that this process runs at once outside a function app; 0 if it only creates them. In a
            function app host.json has the number (``batchSize``).
        lease: Seconds after which a task may be started again if its instance does not answer any more.
        clock: Returns seconds since 1970.

    Raises:
        ModuleNotFoundError: A package of the extra is missing.
        ValueError: The prefix is not a valid name.
    """

    first_pause: float = 0.1
    longest_pause: float = 0.5

    def __init__(
        self,
        connection: str = "AzureWebJobsStorage",
        *,
        prefix: str = "funcmcp-tasks",
        limits: TaskLimits | None = None,
        concurrency: int = 10,
        lease: float = 30.0,
        clock: Callable[[], float] = time,
    ) -> None:
        check_packages()
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(
                f"prefix must have 3 to 28 lower-case letters, digits and single hyphens between them; got {prefix!r}."
            )
        super().__init__(limits=limits, concurrency=concurrency, lease=lease, clock=clock)
        self.connection = connection
        self._prefix = prefix
        self._kept = _Kept(())
        self._counted_until = 0.0
        self._queues: set[str] = set()
        self._queues_until = 0.0
        self._turn = 0
        self.bind("")

    def bind(self, server: str) -> None:
        """Use the tasks of the server of this name; each server has a folder and queues of its own."""
        super().bind(server)
        self._folder = folder_of(server)
        self._queues = {DEFAULT_QUEUE}
        self._queues_until = 0.0
        self._storage = Storage(self.connection, self._prefix)

    def queue_name(self, queue: str = DEFAULT_QUEUE) -> str:
        """Return the name of a queue in the storage account."""
        if queue == DEFAULT_QUEUE:
            return f"{self._prefix}-{self._folder}"
        return f"{self._prefix}-{folder_of(queue, f'{self._server}/{queue}')}"

    async def _insert(self, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        name = name_of(task.key)
        if name is None:
            raise ValueError("The key of the task is invalid.")
        now = self._clock()
        try:
            await self._prepare(name, record, task, size, now)
        except StoreUnavailableError as error:
            raise StoreUnavailableError(error.retry_after, store="task store", nothing_written=True) from error
        await self._write_new(name, record, task, size)
        await self._send(name, _RUN, task.queue, task.delay)
        self._kept.add(task.payer, record.removed, size)
        return record

    async def _prepare(self, name: BlobName, record: TaskRecord, task: NewTask, size: int, now: float) -> None:
        """Do what a new task needs before it exists."""
        stored = await self._read(name) if task.fingerprint else None
        if stored is not None and stored.removed <= now:  # the message that removes it has not come yet
            await self._remove(name, task.queue)
        await self._check_room(_Need(task.payer, size, is_new=True), now)
        await self._check_owner(task.key.owner, now)
        if task.queue not in self._queues:
            await self._storage.create(self._queue_path(task.queue), b"", {})
            self._queues.add(task.queue)
        await self._send(name, _REMOVE, task.queue, record.expires - now)

    async def _load(self, key: TaskKey) -> TaskRecord | None:
        name = name_of(key)
        stored = None if name is None else await self._read(name)
        if name is None or stored is None:
            return None
        now = self._clock()
        if stored.record is None:
            self._refuse_unreadable(stored, now)
            return None
        record = current(stored.record, now)
        if record is not None and _has_lost_message(record, now):
            await self._send_again(name)
        return stored.record

    async def take(self, message: bytes, deliveries: int = 1, queue: str = DEFAULT_QUEUE) -> Claim | None:
        """Claim the task of a message, if it is due.

        If this raises, the message must be delivered again. Otherwise it is done: what is left to do has a message of
        its own.

        Args:
            message: The decoded text of the message.
            deliveries: How often the message has been delivered, this time included.
            queue: The queue from which it comes.

        Raises:
            StoreUnavailableError: The storage can't be reached.
        """
        return await self._take(message, deliveries, queue, lambda _record: True)

    async def _take(
        self, message: bytes, deliveries: int, queue: str, has_place: Callable[[TaskRecord], bool]
    ) -> Claim | None:
        """Claim the task of a message as `take` does, unless there is no place for it: then the message comes again."""
        content = self._read_message(message)
        if content is None:
            logger.warning("A message in the queue %s is not of this server, and was dropped.", self.queue_name(queue))
            return None
        kind, name = content
        if kind == _REMOVE:
            await self._remove(name, queue)
            return None
        stored = await self._read(name)
        if stored is None or self._clock() >= stored.removed:
            return None
        if stored.record is None:  # another version wrote it, and may read it
            await self._send(name, _RUN, queue, self.lease)
        elif stored.record.queue != queue:  # a version without queues has sent it
            await self._send(name, _RUN, stored.record.queue)
        elif stored.record.due is not None and not has_place(stored.record):
            await self._send(name, _RUN, queue, _NO_PLACE_DELAY)
        else:
            return await self._claim(name, stored, deliveries)
        return None

    async def _claim(self, name: BlobName, stored: _Stored, deliveries: int) -> Claim | None:
        """Claim a task if it is due; else send a message for the time when it will be."""

        def claim(record: TaskRecord, now: float) -> TaskRecord | None:
            if not record.claimed and record.due is not None and record.due - now < _CLOCK_DIFFERENCE:
                now = max(now, record.due)
            if deliveries >= _MAX_DELIVERIES:
                return abandoned(record, now, deliveries)
            return claimed(record, now, self.lease)

        changed = await self._replace(name, claim, stored)
        if changed is not None:
            stored, record = changed
            return Claim(record, b"" if record.over else await self._call_of(name, stored), self._clock())
        await self._come_back(name)
        return None

    async def _claim_due(self, count: int, only: TaskFilter) -> list[Claim]:
        queues = sorted(await self._known_queues() if only.queues is None else only.queues)
        self._turn += 1
        return await claim_in_turn(
            queues, self._turn, count, lambda queue, claims: self._claim_in(queue, count - len(claims), only, claims)
        )

    async def _known_queues(self) -> set[str]:
        """Return the queues of the server; look from time to time for those that other processes have added."""
        if monotonic() >= self._queues_until:
            folder = self._queue_path("").removesuffix(_QUEUE_ENDING)
            for blob, _ in await self._storage.blobs(folder):
                self._queues.add(blob.removeprefix(folder).removesuffix(_QUEUE_ENDING))
            self._queues_until = monotonic() + _QUEUES_INTERVAL
        return self._queues

    def _queue_path(self, queue: str) -> str:
        return f"{self._folder}/queues/{queue}{_QUEUE_ENDING}"

    async def _claim_in(self, queue: str, count: int, only: TaskFilter, earlier: Sequence[Claim]) -> list[Claim]:
        """Claim tasks of a queue in addition to earlier claims."""
        places = {
            tool: left - sum(claim.record.tool == tool for claim in earlier) for tool, left in only.places.items()
        }

        def has_place(record: TaskRecord) -> bool:
            left = places.get(record.tool)
            if left is None:
                return True
            places[record.tool] = left - 1
            return left > 0

        hidden = max(1, math.ceil(self.lease))
        messages = await self._storage.receive(self.queue_name(queue), min(count, _MAX_MESSAGES), hidden)
        handling = (self._handle(message, queue, has_place) for message in messages)
        results = await asyncio.gather(*handling, return_exceptions=True)
        claims = [result for result in results if isinstance(result, Claim)]
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures and not claims:
            raise failures[0]
        return claims  # messages that failed are visible again after the lease

    async def renew(self, claim: Claim) -> bool:
        """Extend the lease of a claim. The first third of a lease needs no write."""
        name = name_of(claim.key)
        stored = None if name is None else await self._read(name)
        if name is None or stored is None or stored.record is None:
            return False
        record, now = stored.record, self._clock()
        holds = record.claimed and record.token == claim.token and not record.over and now < record.expires
        if holds and record.due is not None and record.due - now > self.lease * 2 / 3:
            return True
        return await super().renew(claim)

    async def _page(self, owner: str, after: str | None, size: int) -> Sequence[TaskRecord]:
        if not OWNER.fullmatch(owner):
            return []
        now = self._clock()
        listed = [task for task in await self._list(owner) if task.removed > now]
        listed.sort(key=lambda task: task.position)
        chosen = [task for task in listed if after is None or task.position > after][:size]
        names = [BlobName(owner, digest_of(task.key.task_id)) for task in chosen]
        loaded = await asyncio.gather(*(self._read(name, with_outcome=False) for name in names))
        return self._readable(stored.record for stored in loaded if stored is not None)

    async def _load_call(self, key: TaskKey) -> bytes | None:
        name = name_of(key)
        stored = None if name is None else await self._read(name, with_outcome=False)
        return None if name is None or stored is None else await self._call_of(name, stored)

    async def _scan(self) -> AsyncIterator[TaskRecord | UnreadableTask]:
        now = self._clock()
        listed = [task for task in await self._list() if task.removed > now]
        names = [(task.key, name) for task in listed if (name := name_of(task.key)) is not None]
        for begin in range(0, len(names), _SCANNED):
            part = names[begin : begin + _SCANNED]
            loaded = await asyncio.gather(*(self._read(name) for _, name in part))
            for (key, _), stored in zip(part, loaded, strict=True):
                if stored is not None:
                    yield stored.record or UnreadableTask(key, over=stored.has_outcome)

    async def backlog(self) -> Backlog:
        """Return how many tasks wait for a worker, at most 32 of each queue; see `TaskStore.backlog`.

        A queue shows no more messages that are not hidden. The oldest task is that of the first of them.
        """
        backlogs = await asyncio.gather(*(self._backlog_of(queue) for queue in sorted(await self._known_queues())))
        return Backlog(sum(backlog.waiting for backlog in backlogs), max(backlog.oldest for backlog in backlogs))

    async def _backlog_of(self, queue: str) -> Backlog:
        contents = await self._storage.peek(self.queue_name(queue), _MAX_MESSAGES)
        messages = [self._read_message(content) for content in contents]
        names = [message[1] for message in messages if message is not None and message[0] == _RUN]
        stored = await self._read(names[0], with_outcome=False) if names else None
        now, due = self._clock(), None
        if stored is not None and stored.record is not None:
            due = stored.record.due
        return Backlog(len(names), 0.0 if due is None else max(0.0, now - due))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._storage.aclose()

    async def _change(self, key: TaskKey, transition: Transition) -> TaskRecord | None:
        name = name_of(key)
        changed = None if name is None else await self._replace(name, transition)
        return None if changed is None else changed[1]

    async def _delete(self, keys: Sequence[TaskKey]) -> None:
        for name in [name for key in keys if (name := name_of(key)) is not None]:
            await self._delete_blobs(name)
        await self._count_all(self._clock())

    async def _replace(
        self,
        name: BlobName,
        transition: Transition,
        stored: _Stored | None = None,
    ) -> tuple[_Stored, TaskRecord] | None:
        """Apply a transition; return the task as it was read and the successor, or None if nothing has changed.

        Args:
            name: Of the task.
            transition: See `BaseTasks`.
            stored: The task, if it has been read.
        """
        writer = secrets.token_hex(8)
        for _ in range(MAX_CONFLICTS):
            stored = stored or await self._read(name)
            now = self._clock()
            if stored is not None and stored.record is None:
                self._refuse_unreadable(stored, now)
            if stored is None or stored.record is None:
                return None
            changed = successor(stored.record, now, transition)
            if changed is None:
                return None
            if await self._write(name, stored, changed, writer):
                if _becomes_due(stored.record, changed):
                    await self._send(name, _RUN, changed.queue, (changed.due or now) - now)
                return stored, changed
            stored = None
        raise StoreUnavailableError(store="task store")

    def _refuse_unreadable(self, stored: _Stored, now: float) -> None:
        """Raise UnreadableTaskError for a task that this version can't read, unless its time is up."""
        if now < stored.removed:
            raise self._unreadable()

    async def _write(self, name: BlobName, stored: _Stored, changed: TaskRecord, writer: str) -> bool:
        """Replace a record; return whether the blob was still the same.

        Args:
            name: Of the task.
            stored: The task as it was read.
            changed: The successor.
            writer: Any text that no other writer has.
        """
        payer, before = payer_in(stored.metadata), bytes_in(stored.metadata)
        size = changed_bytes(before, stored.record or changed, changed)
        if size > before:
            await self._check_room(_Need(payer, size - before), self._clock())
        metadata = metadata_of(changed, writer, payer, size)
        call, text = b"", None
        if changed.outcome is not None:
            text = changed.outcome.text
            if len(text) > _MAX_INLINE:
                metadata["outcome"] = f"outcome-{writer}"
                await self._storage.write(self._path(name, metadata["outcome"]), text)
                text = None
        if changed.keeps_call:
            call = stored.call
            if "call" in stored.metadata:
                metadata["call"] = stored.metadata["call"]
        content = to_content(to_json(changed), call, text)
        is_written = await self._storage.replace(self._path(name), content, metadata, stored.version)
        if not is_written:
            # If the response to a write is lost, the library sends the write again, and that is refused.
            blob = await self._storage.read(self._path(name))
            is_written = blob is not None and blob.metadata.get("writer") == writer
        if is_written:
            self._kept.grow(payer, size - before)
        if is_written and not changed.keeps_call and "call" in stored.metadata:
            with contextlib.suppress(StoreUnavailableError):  # it is deleted with the task, at the latest
                await self._storage.delete(self._path(name, stored.metadata["call"]))
        return is_written

    async def _write_new(self, name: BlobName, record: TaskRecord, task: NewTask, size: int) -> None:
        """Write a new record."""
        metadata, call = metadata_of(record, "", task.payer, size), task.call
        if len(call) > _MAX_INLINE:
            metadata["call"] = "call"
            await self._storage.write(self._path(name, "call"), call)
            call = b""
        await self._storage.create(self._path(name), to_content(to_json(record), call, None), metadata)

    async def _read(self, name: BlobName, *, with_outcome: bool = True) -> _Stored | None:
        """Return a task; None if it does not exist.

        Args:
            name: Of the task.
            with_outcome: Whether to read an outcome that has a blob of its own. Otherwise its text is empty.
        """
        blob = await self._storage.read(self._path(name))
        if blob is None:
            return None
        metadata = blob.metadata
        key, removed = key_of(name, metadata), number_in(metadata.get("removed"))
        if key is None or removed is None:  # another program wrote it
            return _Stored(blob.version, metadata, 0.0, None, b"")
        texts = from_content(blob.content)
        if texts is None:
            return _Stored(blob.version, metadata, removed, None, b"")
        state, call, outcome = texts
        if "outcome" in metadata and with_outcome:
            part = await self._storage.read(self._path(name, metadata["outcome"]))
            outcome = None if part is None else part.content
        elif "outcome" in metadata:
            outcome = b""
        record = from_json(key, state, outcome)
        return _Stored(blob.version, metadata, removed, record, call or b"", has_outcome=outcome is not None)

    async def _call_of(self, name: BlobName, stored: _Stored) -> bytes:
        """Return the call of a task; raise StoreUnavailableError if its blob is missing."""
        if "call" not in stored.metadata:
            return stored.call
        part = await self._storage.read(self._path(name, stored.metadata["call"]))
        if part is None:
            raise StoreUnavailableError(store="task store")
        return part.content

    async def _come_back(self, name: BlobName) -> None:
        """Send a message for the time when a task is due, if that will be."""
        stored = await self._read(name)
        if stored is not None and stored.record is not None and not stored.record.over:
            now, due = self._clock(), stored.record.due
            if due is not None and now < stored.record.expires:
                await self._send(name, _RUN, stored.record.queue, due - now)

    async def _send_again(self, name: BlobName) -> None:
        """Send a message for a task that is overdue. The write decides which of several processes does it."""

        def postpone(record: TaskRecord, now: float) -> TaskRecord | None:
            return replace(record, due=now) if _has_lost_message(record, now) else None

        changed = await self._replace(name, postpone)
        if changed is not None and changed[1].claimed:  # for a task that nobody has claimed `_replace` has sent it
            await self._send(name, _RUN, changed[1].queue)

    async def _remove(self, name: BlobName, queue: str) -> None:
        """Delete the blobs of a task if its time is up, else do so later, with a message in a queue."""
        stored = await self._read(name)
        now = self._clock()
        if stored is not None and stored.removed > now:
            await self._send(name, _REMOVE, queue, stored.removed - now)
            return
        await self._delete_blobs(name)

    async def _delete_blobs(self, name: BlobName) -> None:
        for blob, _ in await self._storage.blobs(f"{self._folder}/{name.owner}/{name.digest}."):
            await self._storage.delete(blob)

    async def _check_room(self, need: _Need, now: float) -> None:
        """Raise TasksFullError if there is no room among all tasks, or among those of the payer."""
        if monotonic() >= self._counted_until:
            await self._count_all(now)
        error = self._error_for(need, now)
        if error is not None and now >= self._kept.first_removed:
            await self._count_all(now)
            error = self._error_for(need, now)
        if error is not None:
            raise error

    def _error_for(self, need: _Need, now: float) -> TasksFullError | None:
        usage, limits = self._kept, self.limits
        if need.is_new and usage.count >= limits.total:
            return TasksFullError(seconds_until(usage.first_removed, now))
        if need.payer is not None and usage.bytes_of(need.payer) + need.growth > limits.bytes_per_principal:
            wait = seconds_until(usage.first_removed_of(need.payer), now)
            return TasksFullError(wait, is_owner_limit=True, of_bytes=True)
        if usage.bytes + need.growth > limits.total_bytes:
            return TasksFullError(seconds_until(usage.first_removed, now), of_bytes=True)
        return None

    async def _count_all(self, now: float) -> None:
        started = monotonic()
        self._kept = _Kept(task for task in await self._list() if task.removed > now)
        self._counted_until = monotonic() + max(_COUNT_INTERVAL, _COUNT_SHARE * (monotonic() - started))

    async def _check_owner(self, owner: str | None, now: float) -> None:
        """Raise TasksFullError if there is no room for one more task of an owner."""
        if owner is None:
            return
        owned = [task for task in await self._list(owner) if task.removed > now]
        live = [task.live_until for task in owned if task.live_until is not None and task.live_until > now]
        first_removed = min((task.removed for task in owned), default=now)
        self._check_owned(OwnedTasks(len(owned), first_removed, len(live), min(live, default=now)), now)

    async def _list(self, owner: str = "") -> list[ListedTask]:
        """Return the tasks of an owner, or those of all owners."""
        folder = f"{self._folder}/"
        tasks = []
        for blob, metadata in await self._storage.blobs(f"{folder}{owner}/" if owner else folder):
            match = NAME.fullmatch(blob.removeprefix(folder))
            task = None if match is None else listed_task(BlobName(*match.groups()), metadata)
            if task is not None:
                tasks.append(task)
        return tasks

    async def _send(self, name: BlobName, kind: str, queue: str, delay: float = 0.0) -> None:
        """Send a message that is hidden for some seconds."""
        content = {"server": self._server, "owner": name.owner, "task": name.digest, "for": kind}
        hidden = min(max(math.ceil(delay), 0), _LONGEST_DELAY)
        await self._storage.send(self.queue_name(queue), json.dumps(content), hidden)

    async def _handle(self, message: Message, queue: str, has_place: Callable[[TaskRecord], bool]) -> Claim | None:
        """Claim the task of a message of a queue, or delete the message."""
        claim = await self._take(message.content, message.deliveries, queue, has_place)
        if claim is None or claim.record.over:
            await self._storage.delete_message(message)
        return claim

    def _read_message(self, message: bytes) -> tuple[str, BlobName] | None:
        """Return what a message is for and the task; None if it is not a message of this server."""
        try:
            content = json.loads(message if message.startswith(b"{") else base64.b64decode(message, validate=True))
        except (ValueError, binascii.Error, RecursionError):
            return None
        match content:
            case {"server": self._server, "owner": str(owner), "task": str(digest), "for": "run" | "remove" as kind}:
                name = BlobName(owner, digest)
                return (kind, name) if NAME.fullmatch(f"{owner}/{digest}.json") else None
        return None

    def _path(self, name: BlobName, part: str = "json") -> str:
        return f"{self._folder}/{name.owner}/{name.digest}.{part}"


class _Need(NamedTuple):
    """What a write needs room for.

    Attributes:
        payer: See `NewTask`.
        growth: Bytes by which the task grows.
        is_new: Whether the task is created.
    """

    payer: str | None
    growth: int
    is_new: bool = False


class _Kept:
    """The tasks that the storage keeps, as they were counted last, and what this process has added since then.

    Attributes:
        count: The number of tasks.
        bytes: Their bytes.
        first_removed: When the first of them may be removed.
    """

    def __init__(self, tasks: Iterable[ListedTask]) -> None:
        self.count = 0
        self.bytes = 0
        self.first_removed = math.inf
        self._bytes: dict[str | None, int] = {}
        self._first_removed: dict[str | None, float] = {}
        for task in tasks:
            self.add(task.payer, task.removed, task.bytes)

    def bytes_of(self, payer: str) -> int:
        """Return the bytes that count for a payer."""
        return self._bytes.get(payer, 0)

    def first_removed_of(self, payer: str) -> float:
        """Return when the first task of a payer may be removed."""
        return self._first_removed.get(payer, 0.0)

    def add(self, payer: str | None, removed: float, size: int) -> None:
        """Add a task."""
        self.count += 1
        self.first_removed = min(self.first_removed, removed)
        self._first_removed[payer] = min(self._first_removed.get(payer, math.inf), removed)
        self.grow(payer, size)

    def grow(self, payer: str | None, growth: int) -> None:
        """Count the bytes by which a task has grown."""
        self.bytes += growth
        self._bytes[payer] = self._bytes.get(payer, 0) + growth


def _becomes_due(before: TaskRecord, after: TaskRecord) -> bool:
    """Return whether a change makes a task due that had no message for this time."""
    if after.due is None or after.claimed:
        return False
    return before.claimed or before.due != after.due


def _has_lost_message(record: TaskRecord, now: float) -> bool:
    """Return whether a task is due for so long that its message must be lost."""
    if record.over or record.due is None:
        return False
    return now > record.due + (_LAPSED_SECONDS if record.claimed else _UNCLAIMED_SECONDS)
