"""Tasks as blobs: their names, their metadata and their content. What stores them is `AzureTasks`.

A task is one JSON document. It contains the record, the call and the outcome as they were encoded, byte for byte, and
their sizes to find them by. The metadata have what a list of blobs needs.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import TYPE_CHECKING, NamedTuple

from funcmcp._state.tasks.record import TaskKey
from funcmcp._state.tasks.store import position

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._state.tasks.record import TaskRecord

ANONYMOUS = "anonymous"
OWNER = re.compile(r"[0-9a-f]{1,64}")
NAME = re.compile(r"(anonymous|[0-9a-f]{1,64})/([0-9a-f]{64})\.json")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SIZES = re.compile(rb'\{"sizes":\[(\d{1,9}),(\d{1,9}),(\d{1,9})\],')


class BlobName(NamedTuple):
    """Where a task is, below the folder of its server.

    Attributes:
        owner: The mark of its owner, or `ANONYMOUS`.
        digest: The digest of its id.
    """

    owner: str
    digest: str


class ListedTask(NamedTuple):
    """A task in a list of blobs.

    Attributes:
        key: Of the task.
        position: See `position`.
        live_until: When it has to have ended; None if it has ended.
        removed: When it may be removed.
        payer: See `NewTask`.
        bytes: The bytes that count for the payer.
    """

    key: TaskKey
    position: str
    live_until: float | None
    removed: float
    payer: str | None
    bytes: int


def folder_of(name: str, full_name: str | None = None) -> str:
    """Return a name that can be part of the name of a queue in Azure Storage.

    Args:
        name: Of a server, or of a queue.
        full_name: What tells it from others with this name, if that is more.
    """
    readable = re.sub("[^a-z0-9]+", "-", name.lower())[:24].strip("-")
    digest = hashlib.sha256((name if full_name is None else full_name).encode()).hexdigest()[:8]
    if readable:
        return f"{readable}-{digest}"
    return digest


def name_of(key: TaskKey) -> BlobName | None:
    """Return where a task is; None if no task has this key."""
    if not _ID.fullmatch(key.task_id) or (key.owner is not None and not OWNER.fullmatch(key.owner)):
        return None
    return BlobName(ANONYMOUS if key.owner is None else key.owner, digest_of(key.task_id))


def digest_of(task_id: str) -> str:
    """Return the digest of an id, which names the blob of its task."""
    return hashlib.sha256(task_id.encode()).hexdigest()


def key_of(name: BlobName, metadata: Mapping[str, str]) -> TaskKey | None:
    """Return the key of a task; None if the metadata are another program's."""
    task_id = metadata.get("id", "")
    if digest_of(task_id) != name.digest:
        return None
    return TaskKey(None if name.owner == ANONYMOUS else name.owner, task_id)


def metadata_of(record: TaskRecord, writer: str, payer: str | None, size: int) -> dict[str, str]:
    """Return the metadata of the blob of a record.

    Args:
        record: The record.
        writer: Any text that no other writer has.
        payer: See `NewTask`.
        size: The bytes that count for the payer.
    """
    return {
        "id": record.key.task_id,
        "position": position(record),
        "liveuntil": "" if record.over else repr(record.expires),
        "removed": repr(record.removed),
        "writer": writer,
        "payer": payer or "",
        "bytes": str(size),
    }


def listed_task(name: BlobName, metadata: Mapping[str, str]) -> ListedTask | None:
    """Return a task in a list; None if another program wrote the blob."""
    key, removed = key_of(name, metadata), number_in(metadata.get("removed"))
    if key is None or removed is None:
        return None
    live_until = number_in(metadata.get("liveuntil"))
    return ListedTask(key, metadata.get("position", ""), live_until, removed, payer_in(metadata), bytes_in(metadata))


def payer_in(metadata: Mapping[str, str]) -> str | None:
    """Return the payer of a task; None if it is unknown."""
    return metadata.get("payer") or None


def bytes_in(metadata: Mapping[str, str]) -> int:
    """Return the bytes that a task counts; 0 if another program wrote the metadata."""
    return int(number_in(metadata.get("bytes")) or 0)


def number_in(text: str | None) -> float | None:
    """Return the number in a member of the metadata; None if it is missing, or is not a finite number."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    if math.isfinite(number):
        return number
    return None


def to_content(state: bytes, call: bytes, outcome: bytes | None) -> bytes:
    """Return the content of a blob: JSON in which the texts are as they were, and their sizes to find them."""
    call, outcome = call or b"null", b"null" if outcome is None else outcome
    sizes = b"%d,%d,%d" % (len(state), len(call), len(outcome))
    return b'{"sizes":[%b],"record":%b,"call":%b,"outcome":%b}' % (sizes, state, call, outcome)


def from_content(content: bytes) -> tuple[bytes, bytes | None, bytes | None] | None:
    """Return the record, the call and the outcome in the content of a blob; None if `to_content` did not write it."""
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
    if to_content(state, call, outcome) != content:
        return None
    return state, None if call == b"null" else call, None if outcome == b"null" else outcome
