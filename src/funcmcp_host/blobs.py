"""Where blobs are: in a folder; `blob_service` has those of a storage account.

A blob is the file ``<folder>/<connection>/<container>/<name>``. Names come from requests, so a path that would lead out
of its container is refused.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from funcmcp._text.unicode import is_unicode

if TYPE_CHECKING:
    from funcmcp._authoring.calling.threads import Threads

_MAX_SHOWN = 100
"""Characters of a path in an error."""


class BlobError(ValueError):
    """A blob can't be read or written. The text is for the client."""


class BlobStore(Protocol):
    """Reads and writes the blobs of one connection."""

    async def read(self, path: str) -> bytes | None:
        """Return a blob, or None if it does not exist. The path begins with the container."""

    async def write(self, path: str, content: bytes) -> None:
        """Write a blob."""

    async def aclose(self) -> None:
        """Close the connections."""


def split_path(path: str) -> tuple[str, str]:
    """Return the container and the name in a blob's path; raise BlobError if it could lead out of the container."""
    container, _, name = path.strip("/").partition("/")
    if not name:
        raise BlobError(f"The blob's path {shown(path)} needs a container and a name, such as container/name.")
    parts = [container, *name.split("/")]
    if any(part in {"", ".", ".."} or "\\" in part or "\0" in part for part in parts) or not is_unicode(path):
        raise BlobError(f"The blob's path {shown(path)} is not allowed.")
    return container, name


def shown(path: str) -> str:
    """Return a path for an error."""
    return repr(path) if len(path) <= _MAX_SHOWN else f"{path[:_MAX_SHOWN]!r}..."


class FolderBlobs:
    """Blobs as files.

    Args:
        folder: The folder of one connection.
        threads: Read and write the files.
    """

    def __init__(self, folder: Path, threads: Threads) -> None:
        self._folder = folder
        self._threads = threads

    async def read(self, path: str) -> bytes | None:
        """Return a blob, or None if it does not exist."""
        return await self._threads.run(self._read, {"path": path})

    async def write(self, path: str, content: bytes) -> None:
        """Write a blob; readers see the old one or the new one."""
        await self._threads.run(self._write, {"path": path, "content": content})

    async def aclose(self) -> None:
        """Do nothing: no file stays open."""

    def _read(self, path: str) -> bytes | None:
        try:
            return self._file(path).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        except OSError as error:
            raise BlobError(f"The blob {shown(path)} can't be read: {error.strerror}.") from error

    def _write(self, path: str, content: bytes) -> None:
        try:
            file = self._file(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".blob-")
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(content)
                Path(name).replace(file)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            text = f"The blob {shown(path)} can't be a file: another blob has a part of its name."
            raise BlobError(text) from error
        except OSError as error:
            raise BlobError(f"The blob {shown(path)} can't be written: {error.strerror}.") from error

    def _file(self, path: str) -> Path:
        """Return the file of a blob; raise OSError if the system has no such names."""
        container, name = split_path(path)
        root = self._folder.resolve()
        file = root.joinpath(container, *name.split("/"))
        if not file.parent.resolve().is_relative_to(root) or file.is_symlink():
            raise BlobError(f"The blob's path {shown(path)} leads out of its folder.")
        return file
