"""Records of signed sessions that were ended before they expired, in memory that several processes can share.

How it works: a table of fixed size, in a file that each process maps into its memory. A session's digest selects one
bucket of the table; a record in it is the digest and the time when the session would have expired. A lookup is one
search in one bucket, without a lock or a system call, and sees what another process has written. Writing takes a lock
on the file, for microseconds; the operating system releases it if the process dies. A record is overwritten only when
its session has expired. If all records of a bucket are in use, one more session can't be ended: forgetting a
revocation would bring an ended session back.

``funcmcp run --workers`` makes the file and names it to its workers in the environment. On Linux the file is in memory
only, in no folder: no other user can open it, no full disk or cleaner of temporary files harms it, and it goes with the
last process that maps it, even if all are killed. Elsewhere it is a temporary file. Without a file the table belongs to
this process. The pages of the table take memory when they are first written.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import mmap
import os
import struct
import sys
import tempfile
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from funcmcp._state.sessions.store import SessionsFullError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping

VARIABLE = "FUNCMCP_ENDED_SESSIONS"
"""The environment variable with the path of the file that worker processes share."""

_log = logging.getLogger("funcmcp")

_DIGEST_BYTES = 24
_EXPIRY = struct.Struct("<d")
_RECORD_BYTES = _DIGEST_BYTES + _EXPIRY.size
_BUCKET_RECORDS = 64
_BUCKET_BYTES = _BUCKET_RECORDS * _RECORD_BYTES
BUCKETS = 2560
"""5 MiB: room for about 100,000 sessions; a bucket is full by chance before all of them are."""


def digest_of(session_id: str) -> bytes:
    """Return the digest under which a session is recorded."""
    return hashlib.sha256(session_id.encode()).digest()[:_DIGEST_BYTES]


class EndedSessions:
    """Records ended sessions until they would have expired.

    Args:
        file: The descriptor of the file that holds the table, which `shared_with_workers` creates; -1 for memory of
            this process.
        buckets: The number of buckets in a table of this process; `BUCKETS` by default.
        clock: Returns seconds since 1970.
    """

    def __init__(self, file: int = -1, *, buckets: int | None = None, clock: Callable[[], float] = time) -> None:
        self._file = file
        self._clock = clock
        self._table = mmap.mmap(file, 0 if file >= 0 else (buckets or BUCKETS) * _BUCKET_BYTES)
        self._buckets = len(self._table) // _BUCKET_BYTES

    @classmethod
    def of_environment(cls, environment: Mapping[str, str], *, clock: Callable[[], float] = time) -> EndedSessions:
        """Return the table that this process shares with the other workers, or a table of its own if there is none."""
        path = environment.get(VARIABLE)
        if path is None:
            return cls(clock=clock)
        try:
            file = os.open(path, os.O_RDWR)
        except OSError as error:
            reason = error.strerror
            _log.warning("%s can't be opened (%s): a DELETE of a session affects this process only.", VARIABLE, reason)
            return cls(clock=clock)
        return cls(file, clock=clock)

    def __contains__(self, digest: bytes) -> bool:
        return self.has(digest, self.start_of(digest))

    def has(self, digest: bytes, start: int) -> bool:
        """Return whether a session is recorded, in the bucket at `start_of` its digest."""
        # Most buckets are empty. In any other one the last byte of the first expiry is 0x41, for any time of today.
        if not self._table[start + _RECORD_BYTES - 1]:
            return False
        return self._table.find(digest, start, start + _BUCKET_BYTES) >= 0

    def add(self, digest: bytes, expires: float) -> None:
        """Record a session until it expires; raise SessionsFullError if there is no room."""
        now = self._clock()
        first_expiry = float("inf")
        with self._locked():
            if digest in self:  # another process has recorded it in the meantime
                return
            start = self.start_of(digest)
            for position in range(start, start + _BUCKET_BYTES, _RECORD_BYTES):
                [expiry] = _EXPIRY.unpack_from(self._table, position + _DIGEST_BYTES)
                if expiry <= now:  # it has expired, or was never used
                    self._table[position : position + _RECORD_BYTES] = digest + _EXPIRY.pack(expires)
                    return
                first_expiry = min(first_expiry, expiry)
        raise SessionsFullError(int(first_expiry - now) + 1)

    def start_of(self, digest: bytes) -> int:
        """Return where the bucket of a digest begins."""
        return int.from_bytes(digest[:4], "little") % self._buckets * _BUCKET_BYTES

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing while the block runs."""
        if self._file < 0 or sys.platform == "win32":
            yield
            return
        import fcntl  # noqa: PLC0415 - does not exist on Windows

        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


@contextlib.contextmanager
def shared_with_workers(environment: MutableMapping[str, str], *, buckets: int = BUCKETS) -> Iterator[None]:
    """Share a table of ended sessions with the processes that are started inside the ``with`` block.

    If the system refuses the file, that is logged, and each process has a table of its own.
    """
    if sys.platform == "linux":
        table = _memory_file()
    else:
        table = _temporary_file()
    with contextlib.ExitStack() as stack:
        try:
            file, path = stack.enter_context(table)
            os.truncate(file, buckets * _BUCKET_BYTES)
        except OSError as error:
            _log.warning(
                "Processes can't share ended sessions (%s): a DELETE of a session affects one of them only.",
                error.strerror,
            )
            yield
            return
        environment[VARIABLE] = path
        try:
            yield
        finally:
            del environment[VARIABLE]


@contextlib.contextmanager
def _memory_file() -> Iterator[tuple[int, str]]:
    """Create a file in memory; yield its descriptor and a path by which other processes of this user can open it."""
    if sys.platform != "linux":
        raise NotImplementedError
    file = os.memfd_create("funcmcp-ended")
    try:
        yield file, f"/proc/{os.getpid()}/fd/{file}"
    finally:
        os.close(file)


@contextlib.contextmanager
def _temporary_file() -> Iterator[tuple[int, str]]:
    """Create a temporary file that only this user can open; yield its descriptor and its path."""
    file, path = tempfile.mkstemp(prefix="funcmcp-ended-")
    try:
        yield file, path
    finally:
        os.close(file)
        Path(path).unlink(missing_ok=True)
