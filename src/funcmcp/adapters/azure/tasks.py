"""Tasks in Azure Storage, which the instances of a function app share.

How it works: a task is a blob, and a queue has a message for each task that is due.

    <container>/<server>/<owner>/<digest of the id>.json      the record, the call and the outcome
    <container>/<server>/<owner>/<digest of the id>.<part>    a call or an outcome of more than 64 KiB

The metadata of the blob have what a list of blobs needs: id, times, and names of parts. A write applies a transition to
the record that was read, and succeeds only if the blob is still the same (If-Match); else it begins again. The names of
blobs contain no id, because URLs get into logs and traces.

A message names a server, an owner and a digest, and nothing else. There are two kinds:

- *run*: look whether the task is due. A task that is due is claimed. One that is claimed or delayed has its time, so
  the message is sent again, hidden until then. For any other task there is nothing to do. Messages may therefore come
  twice, too early and too late.
- *remove*: delete the blobs of the task if their time is up, else come back then. It is sent first, so that a task
  whose creation stops half-way leaves nothing behind.

In a function app, `http_app` adds a function with a queue trigger, and the functions host brings the messages. Elsewhere
`claim` takes them from the queue. A message that brought a claim stays hidden for the length of the lease, and is
deleted when it comes back and the task has ended.

A message may get lost between two writes. So `read` sends another one for a task that nobody has claimed, or whose
lease has lapsed, for some time.

Needs ``pip install "funcmcp[azure-tasks]"``. While the storage is away, every method raises StoreAwayError, in a
bounded time.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import math
import re
import secrets
from dataclasses import dataclass, replace
from time import monotonic, time
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp.adapters.azure.storage import Storage, check_packages
from funcmcp.server.log import logger
from funcmcp.state.sessions.store import StoreAwayError
from funcmcp.state.tasks.record import Claim, TaskKey, abandoned, claimed, current, from_json, new_record, to_json
from funcmcp.state.tasks.store import TaskLimits, TasksFullError, TransitionStore, position

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp.adapters.azure.storage import Clients
    from funcmcp.state.tasks.record import NewTask, Outcome, TaskRecord

_WAIT = 1.0
"""Seconds for which `claim` waits."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 0.5
"""Seconds between two looks at the queue."""

_MAX_MESSAGES = 32
"""Messages that the queue gives at once."""

_LONGEST_DELAY = 7 * 86_400
"""Seconds for which the queue hides a message at most."""

_MAX_DELIVERIES = 5
"""Deliveries of one message after which the functions host drops it, unless host.json has another number."""

_MAX_INLINE = 64 * 1024
"""Bytes of a call or an outcome in the blob of its task. A longer one has a blob of its own."""

_MAX_CONFLICTS = 20
"""Writes of one record that other writers may overtake; more than that means that the storage does not work."""

_LAPSED_SECONDS, _UNCLAIMED_SECONDS = 15.0, 300.0
"""Seconds after which a message counts as lost: since the lease of a task has lapsed, and since a task became due."""

_CLOCK_DIFFERENCE = 1.0
"""Seconds by which the clocks of two instances may differ. A message may come that much before its task is due."""

_COUNT_INTERVAL = 1.0
_COUNT_SHARE = 50
"""The tasks are counted once in an interval, and not again before fifty times as long as the count took."""

_ANONYMOUS = "anonymous"
_OWNER = re.compile(r"[0-9a-f]{1,64}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"(?P<owner>anonymous|[0-9a-f]{1,64})/(?P<digest>[0-9a-f]{64})\.json")
_PREFIX = re.compile(r"[a-z0-9](?:-?[a-z0-9]){1,27}")
_SIZES = re.compile(rb'\{"sizes":\[(\d{1,9}),(\d{1,9}),(\d{1,9})\],')
_RUN, _REMOVE = "run", "remove"


class _Name(NamedTuple):
    """Where a task is, below the folder of its server.

    Attributes:
        owner: The mark of its owner, or `_ANONYMOUS`.
        digest: The digest of its id.
    """

    owner: str
    digest: str


@dataclass(frozen=True, slots=True)
class _Stored:
    """A task as it was read.

    Attributes:
        etag: The version of the blob.
        metadata: What the blob has beside its content.
        removed: When the task may be removed.
        record: None if this version of the server can't read it.
        call: Empty if it has a blob of its own.
    """

    etag: str
    metadata: Mapping[str, str]
    removed: float
    record: TaskRecord | None
    call: bytes


class _Listed(NamedTuple):
    """A task in a list of blobs.

    Attributes:
        key: Of the task.
        position: See `position`.
        live_until: When it has to have ended; None if it has ended.
        removed: When it may be removed.
    """

    key: TaskKey
    position: str
    live_until: float | None
    removed: float


class AzureTasks(TransitionStore):
    """Tasks that live in Azure Storage.

    Servers with the same name, storage account and prefix share their tasks; servers with other names never see them.
    In a function app the tasks run in the function with a queue trigger that `funcmcp.azure.http_app` adds.

    Args:
        connection: The app setting with the connection string of the storage account, or the beginning of the names of
            settings such as ``<connection>__queueServiceUri``, as in the bindings of a function app.
        prefix: The name of the container, and the beginning of the name of the queue.
        limits: How much is kept. Instances that create tasks at the same time may exceed the limits by a few.
        concurrency: Tasks that this process runs at once outside a function app; 0 if it only creates them. In a
            function app host.json has the number (``batchSize``).
        lease: Seconds after which a task may be started again if its instance does not answer any more.
        clock: Returns seconds since 1970.

    Raises:
        ModuleNotFoundError: A package of the extra is missing.
        ValueError: The prefix is not a valid name.
    """

    shared = True
    pulls = True

    def __init__(  # noqa: PLR0913 - keyword-only: the parts that operators choose
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
        self.limits = TaskLimits() if limits is None else limits
        self.concurrency = concurrency
        self.lease = lease
        self.connection = connection
        self._prefix = prefix
        self._clock = clock
        self._count = 0
        self._count_until = 0.0
        self._first_removed = 0.0
        self.bind("")

    def bind(self, server: str) -> None:
        """Use the tasks of the server of this name; each server has a folder and a queue of its own."""
        self._server = server
        self._folder = _folder(server)
        self.queue_name = f"{self._prefix}-{self._folder}"
        self._storage = Storage(self.connection, self._prefix, self.queue_name)

    async def create(self, task: NewTask) -> TaskRecord:
        """Do what `TaskStore.create` says; raise StoreAwayError."""
        name = _name(task.key)
        if name is None:
            raise ValueError("The key of the task is invalid.")
        now = self._clock()
        await self._check_room(task.key.owner, now)
        record = new_record(task, now)
        await self._send(name, _REMOVE, record.expires - now)
        await self._insert(name, record, task.call)
        await self._send(name, _RUN)
        self._count += 1
        return record

    async def read(self, key: TaskKey) -> TaskRecord | None:
        """Do what `TaskStore.read` says; raise StoreAwayError."""
        name = _name(key)
        stored = None if name is None else await self._load(name)
        if name is None or stored is None or stored.record is None:
            return None
        now = self._clock()
        record = current(stored.record, now)
        if record is not None and _has_lost_message(record, now):
            await self._send_again(name)
        return record

    async def take(self, message: bytes, deliveries: int = 1) -> Claim | None:
        """Claim the task of a message, if it is due.

        If this raises, the message must be delivered again. Otherwise it is done: what is left to do has a message of
        its own.

        Args:
            message: The decoded text of the message.
            deliveries: How often the message has been delivered, this time included.

        Raises:
            StoreAwayError: The storage can't be reached.
        """
        content = self._read_message(message)
        if content is None:
            logger.warning("A message in the queue %s is not of this server, and was dropped.", self.queue_name)
            return None
        kind, name = content
        if kind == _REMOVE:
            await self._remove(name)
            return None
        stored = await self._load(name)
        now = self._clock()
        if stored is None or now >= stored.removed:
            return None
        if stored.record is None:  # another version wrote it, and may read it
            await self._send(name, _RUN, self.lease)
            return None

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

    async def claim(self, count: int) -> Sequence[Claim]:
        """Do what `TaskStore.claim` says; raise StoreAwayError."""
        end, pause = monotonic() + _WAIT, _FIRST_PAUSE
        claims: list[Claim] = []
        while True:
            messages = await self._receive(min(count, _MAX_MESSAGES))
            results = await asyncio.gather(*(self._handle(message) for message in messages), return_exceptions=True)
            failures = [result for result in results if isinstance(result, BaseException)]
            claims += [result for result in results if isinstance(result, Claim)]
            if failures and not claims:
                raise failures[0]
            left = end - monotonic()
            if claims or left <= 0:
                return claims  # messages that failed are visible again after the lease
            if not messages:
                await asyncio.sleep(min(pause, left))
                pause = min(pause * 2, _LONGEST_PAUSE)

    def wake(self) -> None:
        """Do nothing: `claim` ends within a second."""

    async def renew(self, claim: Claim) -> bool:
        """Do what `TaskStore.renew` says; raise StoreAwayError. The first third of a lease needs no write."""
        name = _name(claim.key)
        stored = None if name is None else await self._load(name)
        if name is None or stored is None or stored.record is None:
            return False
        record, now = stored.record, self._clock()
        holds = record.claimed and record.attempt == claim.attempt and not record.over and now < record.expires
        if holds and record.due is not None and record.due - now > self.lease * 2 / 3:
            return True
        return await super().renew(claim)

    async def page(self, owner: str | None, after: str | None, size: int) -> Sequence[TaskRecord]:
        """Do what `TaskStore.page` says; raise StoreAwayError."""
        if owner is None or not _OWNER.fullmatch(owner):
            return []
        now = self._clock()
        listed = [task for task in await self._list(f"{owner}/") if task.removed > now]
        listed.sort(key=lambda task: task.position)
        chosen = [task for task in listed if after is None or task.position > after][:size]
        loaded = await asyncio.gather(*(self._load(_Name(owner, _digest(task.key.task_id))) for task in chosen))
        records = [stored.record for stored in loaded if stored is not None and stored.record is not None]
        shown = [current(record, now) for record in records]
        return [record for record in shown if record is not None]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._storage.aclose()

    async def _change(
        self, key: TaskKey, transition: Callable[[TaskRecord, float], TaskRecord | None]
    ) -> TaskRecord | None:
        name = _name(key)
        changed = None if name is None else await self._replace(name, transition)
        return None if changed is None else changed[1]

    async def _replace(
        self,
        name: _Name,
        transition: Callable[[TaskRecord, float], TaskRecord | None],
        stored: _Stored | None = None,
    ) -> tuple[_Stored, TaskRecord] | None:
        """Apply a transition; return the task as it was read and the successor, or None if nothing has changed.

        Args:
            name: Of the task.
            transition: See `TransitionStore`.
            stored: The task, if it has been read.
        """
        writer = secrets.token_hex(8)
        for _ in range(_MAX_CONFLICTS):
            stored = stored or await self._load(name)
            if stored is None or stored.record is None:
                return None
            now = self._clock()
            record = current(stored.record, now)
            changed = None if record is None else transition(record, now)
            if changed is None:
                return None
            if await self._write(name, stored, changed, writer):
                if _becomes_due(stored.record, changed):
                    await self._send(name, _RUN, (changed.due or now) - now)
                return stored, changed
            stored = None
        raise StoreAwayError

    async def _write(self, name: _Name, stored: _Stored, changed: TaskRecord, writer: str) -> bool:
        """Replace a record; return whether the blob was still the same.

        Args:
            name: Of the task.
            stored: The task as it was read.
            changed: The successor.
            writer: Any text that no other writer has.
        """
        from azure.core import MatchConditions  # noqa: PLC0415 - slow to import
        from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError  # noqa: PLC0415

        text = None if changed.outcome is None else changed.outcome.text
        metadata = _metadata(changed, writer)
        if changed.over:
            call = b""
        else:
            call = stored.call
            if "call" in stored.metadata:
                metadata["call"] = stored.metadata["call"]
        if text is not None and len(text) > _MAX_INLINE:
            metadata["outcome"] = f"outcome-{writer}"
            await self._upload(self._path(name, metadata["outcome"]), text)
            text = None
        content = _envelope(to_json(changed), call, text)

        async def upload(clients: Clients) -> bool:
            try:
                await clients.container.upload_blob(
                    self._path(name),
                    content,
                    overwrite=True,
                    metadata=metadata,
                    etag=stored.etag,
                    match_condition=MatchConditions.IfNotModified,
                )
            except ResourceModifiedError:
                return False
            except ResourceNotFoundError as error:
                if error.error_code != "BlobNotFound":
                    raise
                return False
            return True

        written = await self._storage.do(upload)
        if not written:
            # If the response to a write is lost, the library sends the write again, and that is refused.
            blob = await self._download(self._path(name))
            written = blob is not None and blob[2].get("writer") == writer
        if written and changed.over and "call" in stored.metadata:
            await self._storage.do(lambda clients: _delete(clients, self._path(name, stored.metadata["call"])))
        return written

    async def _insert(self, name: _Name, record: TaskRecord, call: bytes) -> None:
        """Write a new record."""
        from azure.core.exceptions import ResourceExistsError  # noqa: PLC0415 - slow to import

        metadata = _metadata(record, "")
        if len(call) > _MAX_INLINE:
            metadata["call"] = "call"
            await self._upload(self._path(name, "call"), call)
            call = b""
        content = _envelope(to_json(record), call, None)

        async def upload(clients: Clients) -> None:
            try:
                await clients.container.upload_blob(self._path(name), content, metadata=metadata)
            except ResourceExistsError as error:
                if error.error_code != "BlobAlreadyExists":
                    raise
                # Ids are random: the response to the write was lost, and the library sent the write again.

        await self._storage.do(upload)

    async def _load(self, name: _Name) -> _Stored | None:
        """Return a task; None if it does not exist."""
        blob = await self._download(self._path(name))
        if blob is None:
            return None
        content, etag, metadata = blob
        key, removed = _key_of(name, metadata), _number(metadata.get("removed"))
        if key is None or removed is None:  # another program wrote it
            return _Stored(etag, metadata, 0.0, None, b"")
        parts = _parts_of(content)
        if parts is None:
            return _Stored(etag, metadata, removed, None, b"")
        state, call, outcome = parts
        if "outcome" in metadata:
            part = await self._download(self._path(name, metadata["outcome"]))
            outcome = None if part is None else part[0]
        return _Stored(etag, metadata, removed, from_json(key, state, outcome), call or b"")

    async def _call_of(self, name: _Name, stored: _Stored) -> bytes:
        """Return the call of a task; raise StoreAwayError if its blob is missing."""
        if "call" not in stored.metadata:
            return stored.call
        part = await self._download(self._path(name, stored.metadata["call"]))
        if part is None:
            raise StoreAwayError
        return part[0]

    async def _come_back(self, name: _Name) -> None:
        """Send a message for the time when a task is due, if that will be."""
        stored = await self._load(name)
        if stored is not None and stored.record is not None and not stored.record.over:
            now, due = self._clock(), stored.record.due
            if due is not None and now < stored.record.expires:
                await self._send(name, _RUN, due - now)

    async def _send_again(self, name: _Name) -> None:
        """Send a message for a task that is overdue. The write decides which of several processes does it."""

        def postpone(record: TaskRecord, now: float) -> TaskRecord | None:
            return replace(record, due=now) if _has_lost_message(record, now) else None

        if await self._replace(name, postpone) is not None:
            await self._send(name, _RUN)

    async def _remove(self, name: _Name) -> None:
        """Delete the blobs of a task if its time is up, else do so later."""
        stored = await self._load(name)
        now = self._clock()
        if stored is not None and stored.removed > now:
            await self._send(name, _REMOVE, stored.removed - now)
            return

        async def delete(clients: Clients) -> None:
            names = clients.container.list_blob_names(name_starts_with=f"{self._folder}/{name.owner}/{name.digest}.")
            async for blob in names:
                await _delete(clients, blob)

        await self._storage.do(delete)

    async def _check_room(self, owner: str | None, now: float) -> None:
        """Raise TasksFullError if there is no room for one more task of an owner."""
        limits = self.limits
        if self._count >= limits.total and now < self._first_removed:
            raise TasksFullError(_seconds_until(self._first_removed, now))
        if monotonic() >= self._count_until or self._count >= limits.total:
            begun = monotonic()
            kept = [task.removed for task in await self._list("") if task.removed > now]
            self._count = len(kept)
            self._count_until = monotonic() + max(_COUNT_INTERVAL, _COUNT_SHARE * (monotonic() - begun))
            if len(kept) >= limits.total:
                self._first_removed = min(kept)
                raise TasksFullError(_seconds_until(self._first_removed, now))
        if owner is None:
            return
        owned = [task for task in await self._list(f"{owner}/") if task.removed > now]
        live = [task.live_until for task in owned if task.live_until is not None and task.live_until > now]
        if len(live) >= limits.live_per_principal:
            raise TasksFullError(_seconds_until(min(live), now), own=True)
        if len(owned) >= limits.per_principal:
            raise TasksFullError(_seconds_until(min(task.removed for task in owned), now), own=True)

    async def _list(self, folder: str) -> list[_Listed]:
        """Return the tasks in a folder of the server."""
        beginning = len(self._folder) + 1

        async def listed(clients: Clients) -> list[_Listed]:
            tasks = []
            blobs = clients.container.list_blobs(name_starts_with=f"{self._folder}/{folder}", include=["metadata"])
            async for blob in blobs:
                match = _NAME.fullmatch(blob.name[beginning:])
                task = None if match is None else _listed(_Name(*match.groups()), blob.metadata or {})
                if task is not None:
                    tasks.append(task)
            return tasks

        return await self._storage.do(listed, seconds=60.0)

    async def _upload(self, path: str, content: bytes) -> None:
        """Write a part."""

        async def upload(clients: Clients) -> None:
            await clients.container.upload_blob(path, content, overwrite=True)

        await self._storage.do(upload)

    async def _download(self, path: str) -> tuple[bytes, str, Mapping[str, str]] | None:
        """Return the content, the version and the metadata of a blob; None if it does not exist."""
        from azure.core.exceptions import ResourceNotFoundError  # noqa: PLC0415 - slow to import

        async def download(clients: Clients) -> tuple[bytes, str, Mapping[str, str]] | None:
            try:
                blob = await clients.container.download_blob(path)
            except ResourceNotFoundError as error:
                if error.error_code == "BlobNotFound":
                    return None
                raise
            properties = blob.properties
            return await blob.readall(), properties.etag, properties.metadata

        return await self._storage.do(download)

    async def _send(self, name: _Name, kind: str, delay: float = 0.0) -> None:
        """Send a message that is hidden for some seconds."""
        content = {"server": self._server, "owner": name.owner, "task": name.digest, "for": kind}
        text = base64.b64encode(json.dumps(content).encode()).decode()  # as the functions host expects it by default
        hidden = min(max(math.ceil(delay), 0), _LONGEST_DELAY)

        async def send(clients: Clients) -> None:
            await clients.queue.send_message(text, visibility_timeout=hidden, time_to_live=-1)

        await self._storage.do(send)

    async def _receive(self, count: int) -> list[Any]:
        hidden = max(1, math.ceil(self.lease))

        async def receive(clients: Clients) -> list[Any]:
            pages = clients.queue.receive_messages(
                messages_per_page=count, max_messages=count, visibility_timeout=hidden
            )
            return [message async for message in pages]

        return await self._storage.do(receive)

    async def _handle(self, message: Any) -> Claim | None:
        """Claim the task of a message of the queue, or delete the message."""
        from azure.core.exceptions import ResourceNotFoundError  # noqa: PLC0415 - slow to import

        claim = await self.take(str(message.content).encode(), message.dequeue_count or 1)
        if claim is not None and not claim.record.over:
            return claim

        async def delete(clients: Clients) -> None:
            try:
                await clients.queue.delete_message(message)
            except ResourceNotFoundError as error:
                if error.error_code == "QueueNotFound":
                    raise
                # It was visible again in the meantime, and another worker has it.

        await self._storage.do(delete)
        return claim

    def _read_message(self, message: bytes) -> tuple[str, _Name] | None:
        """Return what a message is for and the task; None if it is not a message of this server."""
        try:
            content = json.loads(message if message.startswith(b"{") else base64.b64decode(message, validate=True))
        except (ValueError, binascii.Error, RecursionError):
            return None
        match content:
            case {"server": self._server, "owner": str(owner), "task": str(digest), "for": "run" | "remove" as kind}:
                name = _Name(owner, digest)
                return (kind, name) if _NAME.fullmatch(f"{owner}/{digest}.json") else None
        return None

    def _path(self, name: _Name, part: str = "json") -> str:
        return f"{self._folder}/{name.owner}/{name.digest}.{part}"


async def _delete(clients: Clients, blob: str) -> None:
    """Delete a blob that may be gone."""
    from azure.core.exceptions import ResourceNotFoundError  # noqa: PLC0415 - slow to import

    try:
        await clients.container.delete_blob(blob)
    except ResourceNotFoundError as error:
        if error.error_code != "BlobNotFound":
            raise


def _folder(server: str) -> str:
    """Return a name for a server that can be part of the name of a queue."""
    readable = re.sub("[^a-z0-9]+", "-", server.lower())[:24].strip("-")
    digest = hashlib.sha256(server.encode()).hexdigest()[:8]
    return f"{readable}-{digest}" if readable else digest


def _name(key: TaskKey) -> _Name | None:
    """Return where a task is; None if no task has this key."""
    if not _ID.fullmatch(key.task_id) or (key.owner is not None and not _OWNER.fullmatch(key.owner)):
        return None
    return _Name(_ANONYMOUS if key.owner is None else key.owner, _digest(key.task_id))


def _digest(task_id: str) -> str:
    return hashlib.sha256(task_id.encode()).hexdigest()


def _key_of(name: _Name, metadata: Mapping[str, str]) -> TaskKey | None:
    """Return the key of a task; None if the metadata are another program's."""
    task_id = metadata.get("id", "")
    if _digest(task_id) != name.digest:
        return None
    return TaskKey(None if name.owner == _ANONYMOUS else name.owner, task_id)


def _metadata(record: TaskRecord, writer: str) -> dict[str, str]:
    """Return the metadata of the blob of a record."""
    return {
        "id": record.key.task_id,
        "position": position(record),
        "liveuntil": "" if record.over else repr(record.expires),
        "removed": repr(record.removed),
        "writer": writer,
    }


def _listed(name: _Name, metadata: Mapping[str, str]) -> _Listed | None:
    """Return a task in a list; None if another program wrote the blob."""
    key, removed = _key_of(name, metadata), _number(metadata.get("removed"))
    if key is None or removed is None:
        return None
    return _Listed(key, metadata.get("position", ""), _number(metadata.get("liveuntil")), removed)


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _envelope(state: bytes, call: bytes, outcome: bytes | None) -> bytes:
    """Return the content of a blob: JSON in which the texts are as they were, and their sizes to find them."""
    call, outcome = call or b"null", b"null" if outcome is None else outcome
    sizes = b"%d,%d,%d" % (len(state), len(call), len(outcome))
    return b'{"sizes":[%b],"record":%b,"call":%b,"outcome":%b}' % (sizes, state, call, outcome)


def _parts_of(content: bytes) -> tuple[bytes, bytes | None, bytes | None] | None:
    """Return the record, the call and the outcome in the content of a blob; None if `_envelope` did not write it."""
    match = _SIZES.match(content)
    if match is None:
        return None
    texts = []
    begin = match.end()
    for name, size in zip((b'"record":', b'"call":', b'"outcome":'), match.groups(), strict=True):
        begin += len(name)
        texts.append(content[begin : begin + int(size)])
        begin += int(size) + 1
    state, call, outcome = texts
    if _envelope(state, call, outcome) != content:
        return None
    return state, None if call == b"null" else call, None if outcome == b"null" else outcome


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


def _seconds_until(moment: float, now: float) -> int:
    return max(1, int(moment - now) + 1)
