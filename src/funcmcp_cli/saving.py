"""The images, sounds and files of a result, written into a folder (``--save``).

A server chooses the URIs, the media types and the bytes. It cannot choose the folder: a name is one element of a path,
without control characters, and a file that exists is never replaced.
"""

from __future__ import annotations

import mimetypes
import os
import re
from base64 import b64decode
from contextlib import suppress
from itertools import count
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from funcmcp._protocol.content_blocks import MEDIA_TYPES, type_of
from funcmcp._text.replacing import replacement_of
from funcmcp_cli.failure import Failure
from funcmcp_cli.json_values import as_object

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MAX_NAME = 100
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names of devices on Windows, also with a suffix."""


def save_block(block: Mapping[str, Any], folder: Path) -> Path | None:
    """Write the bytes or the text of a content block into a folder, and return the new file.

    Return None if the block is neither an image, nor a sound, nor a file.

    Raises:
        Failure: The bytes are not base64, or the file cannot be written.
    """
    row = type_of(block)
    if row is None or not row.base64:
        return None
    if row.name in MEDIA_TYPES:
        return _write(folder, row.name, block.get("mimeType"), _decoded(block.get("data"), f"The {row.name}"))
    resource = as_object(block.get("resource"))
    name, media_type = _name_in(str(resource.get("uri", ""))), resource.get("mimeType")
    if isinstance(resource.get("text"), str):
        return _write(folder, name, media_type, resource["text"].encode("utf-8", "surrogatepass"))
    return _write(folder, name, media_type, bytes_of(resource))


def bytes_of(contents: Mapping[str, Any]) -> bytes:
    """Return the bytes of a resource's contents; raise Failure if they are not base64."""
    return _decoded(contents.get("blob", ""), f"The contents of {contents.get('uri')}")


def _decoded(text: Any, subject: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise Failure(f"{subject} cannot be read: it is neither text nor valid base64.") from error


def _name_in(uri: str) -> str:
    """Return a file's name from the last element of a URI's path."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "file"
    path = PurePosixPath(unquote(parts.path.rstrip("/")) or parts.netloc)
    return _NOT_IN_NAMES.sub("_", path.name).lstrip(".")[:_MAX_NAME] or "file"


def _write(folder: Path, name: str, media_type: Any, contents: bytes) -> Path:
    stem, dot, suffix = name.rpartition(".")
    if not dot:
        stem, suffix = name, (mimetypes.guess_extension(str(media_type).partition(";")[0].strip()) or "").lstrip(".")
    if _RESERVED.fullmatch(stem):
        stem = f"_{stem}"
    suffix = f".{suffix}" if suffix else ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            file = folder / (f"{stem}{suffix}" if number == 1 else f"{stem}-{number}{suffix}")
            if os.path.lexists(file):
                continue
            with suppress(FileExistsError), replacement_of(file) as draft:
                draft.write_bytes(contents)
                file.open("xb").close()  # another command may have taken the name in the meantime
                return file
    except OSError as error:
        raise Failure(f"--save: {error.filename or folder} cannot be written: {error.strerror}.") from error
    raise AssertionError("count() has no end")
