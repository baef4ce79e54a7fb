"""Files that callers upload for their next calls: where they are, whose they are, and how long they are kept.

How it works: each file is in a folder of its sender, as ``<id>.data`` with its record ``<id>.json`` beside it. The id
is the digest of a random text, and the handle that the caller gets has the text, so a list of the folder has no
handles. A file is received as ``<id>.part``, and exists from the moment in which its record does.

The time of modification of ``<id>.data`` is the time at which it expires. Before a file is received, one walk through
the folder removes what has expired and counts what remains. What is on its way in this process is counted with the size
that its sender has announced. So the limits hold for all processes that share the folder, except for files that several
of them receive at the same moment. A timer makes the same walk when the last file has expired.

Only the owner can open a file: the principal that has sent it or that has asked for its upload URL. A file of an
anonymous caller has no owner; every caller that has the handle can open it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import os
import secrets
import shutil
import tempfile
import time
import weakref
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from funcmcp._objects.definitions import options_by_name
from funcmcp._objects.public_names import public
from funcmcp._state.line_limit import LineLimit
from funcmcp._state.records import to_record, value_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from io import FileIO

_MEBIBYTE = 1024 * 1024
_TOKEN_BYTES = 24
_MARGIN_SECONDS = 1.0
_ATTEMPTS = 5
_BUFFER_BYTES = 64 * 1024
"""Bytes that are written at once, in a thread."""

PREFIX = "upload:"
"""What handles begin with. They are URIs, and the files are resources."""

_UNKNOWN = "unknown"
"""The folder of callers without a principal and without an address."""

_LIMITS = ("file_bytes", "bytes_per_principal", "files_per_principal", "total_bytes", "total_files")


@public("funcmcp.http")
@options_by_name
class Uploads:
    """A place at the endpoint to which callers send files, for tools with a parameter of the type `UploadedFile`.

    Attributes:
        folder: The folder for the files. All processes of the server must share it. None: a temporary folder, for a
            server of one process.
        file_bytes: Bytes that a file may have.
        files_per_principal: Files of one principal, and of all anonymous callers of an IP address.
        bytes_per_principal: Bytes of these files.
        total_bytes: Bytes of the files of all callers.
        total_files: Files of all callers.
        ttl: Seconds until a file, or an unused upload URL, expires.
        url: The URL of the endpoint as clients reach it, for the upload URLs of the tool. By default it is that of
            `auth`, or else that of the request.
        tool_name: The name of the tool that returns upload URLs. None: there is no such tool.

    Raises:
        ValueError: A limit is not above 0.
        TypeError: An option has a wrong type.
    """

    folder: str | os.PathLike[str] | None = None
    file_bytes: int = 64 * _MEBIBYTE
    files_per_principal: int = 20
    bytes_per_principal: int = 256 * _MEBIBYTE
    total_bytes: int = 1024 * _MEBIBYTE
    total_files: int = 10_000
    ttl: float = 3600.0
    url: str | None = None
    tool_name: str | None = "create_upload"

    def __post_init__(self) -> None:
        for name in (*_LIMITS, "ttl"):
            value = getattr(self, name)
            is_number = isinstance(value, int) or (name == "ttl" and isinstance(value, float))
            if not is_number or isinstance(value, bool):
                raise TypeError(f"Uploads.{name} must be a number above 0; got {value!r:.40}.")
            if not 0 < value < math.inf:
                raise ValueError(f"Uploads.{name} must be above 0; got {value!r}.")
        if self.folder is not None and not isinstance(self.folder, str | os.PathLike):
            raise TypeError(f"Uploads.folder must be the path of a folder; got {self.folder!r:.40}.")


class UploadFullError(Exception):
    """There is no room for a file.

    Args:
        message: What there is too much of, in a sentence for the caller.
        is_caller_limit: Whether the caller has reached its limit. Otherwise all callers together have reached theirs.
    """

    def __init__(self, message: str, *, is_caller_limit: bool) -> None:
        super().__init__(message)
        self.is_caller_limit = is_caller_limit


class UploadDiskError(UploadFullError):
    """The folder of the files can't be written: its disk is full, it is missing, or this process may not write there.

    Args:
        error: The error of the operating system.
    """

    def __init__(self, error: OSError) -> None:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "has no room for more files" if is_full else "can't store files now"
        super().__init__(f"The server {reason}; try again later.", is_caller_limit=False)


class UploadExistsError(Exception):
    """The upload URL of a file has been used."""


class NewUpload(NamedTuple):
    """A file that is about to be received.

    Attributes:
        folder: The folder of its sender.
        id: The digest of the text in its handle.
        owner: The mark of the principal that can open it; None for every caller that has the handle.
    """

    folder: str
    id: str
    owner: str | None


class FileFacts(NamedTuple):
    """What the sender of a file says about it.

    Attributes:
        name: The name, without a folder.
        media_type: The media type.
    """

    name: str
    media_type: str


class _Usage(NamedTuple):
    """The files that are stored, and their bytes: of one caller, and of all."""

    caller_files: int
    caller_bytes: int
    total_files: int
    total_bytes: int


class StoredUpload(NamedTuple):
    """A file that was received.

    Attributes:
        facts: Its name and media type.
        size: Its bytes.
        expires: When it is removed, in seconds since 1970.
        path: Where it is.
    """

    facts: FileFacts
    size: int
    expires: float
    path: Path


class UploadStore:
    """The files of all callers of a server.

    Args:
        options: The folder and the limits.
        clock: Returns the time in seconds since 1970.

    Attributes:
        options: The folder and the limits.
        is_shared: Whether other processes can have the same folder.
    """

    def __init__(self, options: Uploads, clock: Callable[[], float] = time.time) -> None:
        self.options: Uploads = options
        self.is_shared: bool = options.folder is not None
        self._clock = clock
        self._root: Path | None = None if options.folder is None else Path(options.folder).expanduser().absolute()
        self._remove_temporary: Callable[[], object] | None = None
        self._receiving: dict[NewUpload, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._sweep: asyncio.Future[_Usage] | None = None
        self._loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()  # those that may have files in the folder
        self._failures = LineLimit(logging.ERROR)

    def new(self, caller: str | None, owner: str | None) -> tuple[NewUpload, str]:
        """Return a file that may be received, and its handle.

        Args:
            caller: The mark of the caller whose limits the file counts for; None if it is unknown.
            owner: The mark of the principal that can open it.
        """
        text = secrets.token_urlsafe(_TOKEN_BYTES)
        folder = caller or _UNKNOWN
        return NewUpload(folder, _digest(text), owner), f"{PREFIX}{folder}.{text}"

    async def receive(
        self, upload: NewUpload, facts: FileFacts, parts: AsyncIterator[bytes], announced: int | None
    ) -> StoredUpload:
        """Write a file, and return it.

        Args:
            upload: The file.
            facts: Its name and media type.
            parts: Its bytes, which are at most `Uploads.file_bytes`.
            announced: How many bytes come, if that is known.

        Raises:
            UploadFullError: There is no room for it.
            UploadDiskError: It can't be written, which is logged.
            UploadExistsError: It has been received before, or is on its way.
        """
        self._loops.add(asyncio.get_running_loop())
        size = self.options.file_bytes if announced is None else announced
        if upload in self._receiving:
            raise UploadExistsError
        receiving = dict(self._receiving)
        self._receiving[upload] = size
        part = None
        try:
            with self._disk_errors():
                part = await asyncio.to_thread(self._begin, upload, size, receiving)
            await self._write(part, parts)
            with self._disk_errors():
                stored = await asyncio.to_thread(self._complete, upload, facts, part)
            self._remove_later()
            return stored
        finally:
            del self._receiving[upload]
            if part is not None:
                with contextlib.suppress(OSError):  # it is there no more, or the disk fails
                    part.unlink()

    async def get(self, handle: str, owner: str | None) -> StoredUpload | None:
        """Return the file with a handle; None if there is none, it has expired, or it belongs to another principal."""
        return await asyncio.to_thread(self._get, handle, owner)

    async def read(self, handle: str, owner: str | None) -> tuple[FileFacts, bytes] | None:
        """Return the name and type of a file, and its bytes; None as `get`."""
        stored = await self.get(handle, owner)
        if stored is None:
            return None
        return stored.facts, await asyncio.to_thread(stored.path.read_bytes)

    def close(self) -> None:
        """Stop the timer, and remove the temporary folder, unless another event loop uses them."""
        self._loops.discard(asyncio.get_running_loop())
        if not all(loop.is_closed() for loop in self._loops):
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._remove_temporary is not None:
            self._remove_temporary()
            self._remove_temporary = self._root = None

    async def _write(self, file: Path, parts: AsyncIterator[bytes]) -> None:
        """Write the parts of a file, in threads, so that a slow disk does not stop the event loop."""
        buffer = bytearray()
        with self._disk_errors():
            stream = file.open("ab", buffering=0)
        with stream:
            async for part in parts:
                buffer += part
                if len(buffer) >= _BUFFER_BYTES:
                    await self._append(stream, bytes(buffer))
                    buffer.clear()
            await self._append(stream, bytes(buffer))

    async def _append(self, stream: FileIO, data: bytes) -> None:
        with self._disk_errors():
            await asyncio.to_thread(_write_all, stream, data)

    @contextlib.contextmanager
    def _disk_errors(self) -> Iterator[None]:
        """Raise UploadDiskError for errors of the disk, and log one line of them in a minute."""
        try:
            yield
        except OSError as error:
            self._failures.write("Uploads can't be stored: %s", error)
            raise UploadDiskError(error) from error

    def _remove_later(self) -> None:
        """Remove what has expired when the newest file has."""
        if self._timer is not None:
            self._timer.cancel()
        delay = self.options.ttl + _MARGIN_SECONDS
        self._timer = asyncio.get_running_loop().call_later(delay, self._begin_sweep)

    def _begin_sweep(self) -> None:
        self._timer = None
        self._sweep = asyncio.get_running_loop().run_in_executor(None, self._usage, _UNKNOWN)

    def _folder(self) -> Path:
        if self._root is None:
            folder = tempfile.mkdtemp(prefix="funcmcp-uploads-")
            self._remove_temporary = weakref.finalize(self, shutil.rmtree, folder, True)
            self._root = Path(folder)
        return self._root

    def _begin(self, upload: NewUpload, size: int, receiving: Mapping[NewUpload, int]) -> Path:
        """Return the file to write to, after a check that there is room beside the files that are on their way."""
        folder = self._folder() / upload.folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._check_room(upload, size, receiving)
        if (folder / f"{upload.id}.json").exists():
            raise UploadExistsError
        part = folder / f"{upload.id}.part"
        for _ in range(_ATTEMPTS):  # another process removes empty folders
            folder.mkdir(mode=0o700, exist_ok=True)
            try:
                part.touch(mode=0o600, exist_ok=False)
            except FileNotFoundError:
                continue
            except FileExistsError:
                raise UploadExistsError from None
            break
        return part

    def _check_room(self, upload: NewUpload, size: int, receiving: Mapping[NewUpload, int]) -> None:
        """Raise UploadFullError unless there is room for a file beside those that are stored or on their way."""
        usage, options = self._usage(upload.folder), self.options
        caller_sizes = [expected for other, expected in receiving.items() if other.folder == upload.folder]
        if usage.caller_files + len(caller_sizes) >= options.files_per_principal:
            text = f"You have {options.files_per_principal} files. Wait until one of them expires."
            raise UploadFullError(text, is_caller_limit=True)
        if usage.caller_bytes + sum(caller_sizes) + size > options.bytes_per_principal:
            text = (
                f"Your files may have {options.bytes_per_principal:,} bytes together. Wait until one of them expires."
            )
            raise UploadFullError(text, is_caller_limit=True)
        is_full = usage.total_files + len(receiving) >= options.total_files
        if is_full or usage.total_bytes + sum(receiving.values()) + size > options.total_bytes:
            raise UploadFullError("The server has no room for more files; try again later.", is_caller_limit=False)

    def _usage(self, caller: str) -> _Usage:
        """Return what is stored, of one caller and of all. Remove what has expired."""
        caller_sizes: list[int] = []
        all_sizes: list[int] = []
        for folder in self._folder().iterdir():
            sizes = self._sizes_in(folder) if folder.is_dir() else []
            all_sizes += sizes
            if folder.name == caller:
                caller_sizes = sizes
            elif not sizes:
                with contextlib.suppress(OSError):  # there is a file in it that is being received
                    folder.rmdir()
        return _Usage(len(caller_sizes), sum(caller_sizes), len(all_sizes), sum(all_sizes))

    def _sizes_in(self, folder: Path) -> list[int]:
        """Return the sizes of the files in the folder of a caller. Remove what has expired."""
        now = self._clock()
        sizes: list[int] = []
        for file in list(folder.iterdir()):
            with contextlib.suppress(FileNotFoundError):  # another process has removed it
                status = file.stat()
                if self._is_expired(file, status.st_mtime, now):
                    file.unlink()
                    file.with_suffix(".json").unlink(missing_ok=True)
                elif file.suffix == ".data":
                    sizes.append(status.st_size)
        return sizes

    def _is_expired(self, file: Path, time: float, now: float) -> bool:
        """Return whether a file is to be removed. One that is being received has the time of its last write."""
        if file.suffix == ".part":
            return time + self.options.ttl < now
        return file.suffix == ".data" and time <= now

    def _complete(self, upload: NewUpload, facts: FileFacts, part: Path) -> StoredUpload:
        """Make a file that was received readable. The record comes last: without it the file does not exist."""
        expires = self._clock() + self.options.ttl
        size = part.stat().st_size
        os.utime(part, (expires, expires))
        data, record = part.with_suffix(".data"), part.with_suffix(".json")
        part.replace(data)
        members = {
            "name": facts.name,
            "mediaType": facts.media_type,
            "size": size,
            "owner": upload.owner,
            "expires": expires,
        }
        try:
            record.write_bytes(to_record(members, {}))
        except OSError:
            for file in (record, data):
                file.unlink(missing_ok=True)
            raise
        return StoredUpload(facts, size, expires, data)

    def _get(self, handle: str, owner: str | None) -> StoredUpload | None:
        folder, dot, text = handle.removeprefix(PREFIX).partition(".")
        if not handle.startswith(PREFIX) or not dot or not folder.isalnum() or not folder.isascii():
            return None
        place = self._folder() / folder / _digest(text)
        try:
            record = value_of(place.with_suffix(".json").read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not isinstance(record, dict) or record.get("owner") != owner:
            return None
        name, media_type, size = record.get("name"), record.get("mediaType"), record.get("size")
        expires = record.get("expires")
        if not (isinstance(name, str) and isinstance(media_type, str) and isinstance(size, int)):
            return None
        if not isinstance(expires, float) or expires <= self._clock():
            return None
        return StoredUpload(FileFacts(name, media_type), size, expires, place.with_suffix(".data"))


def _write_all(stream: FileIO, data: bytes) -> None:
    """Write all of the data. A disk that becomes full takes a part of it first."""
    while data:
        data = data[stream.write(data) :]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
