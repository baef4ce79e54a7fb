"""Where blobs are: in a folder; `blob_service` has those of a storage account.

A blob is the file ``<folder>/<connection>/<container>/<name>``. Names come from requests, so a path that would lead out
of its container is refused.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Protocol


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
        raise BlobError(f"The blob's path {path!r} needs a container and a name, such as container/name.")
    parts = [container, *name.split("/")]
    if any(part in {"", ".", ".."} or "\\" in part or "\0" in part for part in parts):
        raise BlobError(f"The blob's path {path!r} is not allowed.")
    return container, name


class FolderBlobs:
    """Blobs as files.

    Args:
        folder: The folder of one connection.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def read(self, path: str) -> bytes | None:
        """Return a blob, or None if it does not exist."""
        return await asyncio.to_thread(self._read, path)

    async def write(self, path: str, content: bytes) -> None:
        """Write a blob; readers see the old one or the new one."""
        await asyncio.to_thread(self._write, path, content)

    async def aclose(self) -> None:
        """Do nothing: no file stays open."""

    def _read(self, path: str) -> bytes | None:
        try:
            return self._file(path).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    def _write(self, path: str, content: bytes) -> None:
        file = self._file(path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".blob-")
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
            Path(name).replace(file)
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            raise BlobError(f"The blob {path!r} can't be a file: another blob has a part of its name.") from error

    def _file(self, path: str) -> Path:
        container, name = split_path(path)
        root = self._folder.resolve()
        file = root.joinpath(container, *name.split("/"))
        if not file.parent.resolve().is_relative_to(root) or file.is_symlink():
            raise BlobError(f"The blob's path {path!r} leads out of its folder.")
        return file
