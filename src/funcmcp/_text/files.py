"""Reads files that users name or that lie in their folders: regular files of a bounded size, in UTF-8."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 64 * 1024 * 1024


def read_text(file: Path) -> str:
    """Return the text of a file without a byte order mark.

    Raises:
        FileNotFoundError: The file does not exist.
        OSError: The file can't be read, has more than `MAX_BYTES`, or is not a regular file: a FIFO blocks.
        UnicodeDecodeError: The file is not UTF-8.
    """
    return read_bytes(file, MAX_BYTES).decode("utf-8-sig")


def is_file(path: Path) -> bool:
    """Return whether a path is a file. A name that the system does not allow is none."""
    try:
        return path.is_file()
    except OSError:  # the name is too long, or an element of the path can't be searched
        return False


def read_bytes(file: Path, limit: int) -> bytes:
    """Return the contents of a file of at most *limit* bytes. Errors are those of `read_text`."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - of a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(file))
        if status.st_size > limit:
            raise OSError(errno.EFBIG, f"larger than {limit // 1024 // 1024} MiB", str(file))
        return stream.read(limit)
