"""Files by their names: media types by suffix, which of these are texts, and names that are safe.

The table is that of Python, without the files of the operating system, so that a server says the same on each machine.
`_ADDED_TYPES` has suffixes that the table of some version of Python lacks.

Source: RFC 6838 for the form of a media type, RFC 6839 for the suffixes ``+json`` and ``+xml``.
"""

from __future__ import annotations

import re
from functools import cache

BINARY = "application/octet-stream"
TEXT = "text/plain"

_MAX_NAME_BYTES = 255
"""Bytes that the name of a file may have in most file systems."""

FILE_HINT = 'A file: the text "upload:..." of a file that was uploaded to this server, or a small file as a data: URI.'
"""The description of an argument of the type `UploadedFile`. It stands behind the author's own."""

_FORM = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}", re.ASCII)
_ADDED_TYPES = {
    ".avif": "image/avif",
    ".cfg": "text/plain",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".flac": "audio/flac",
    ".heic": "image/heic",
    ".ini": "text/plain",
    ".ipynb": "application/x-ipynb+json",
    ".jsonl": "application/jsonl",
    ".log": "text/plain",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ogg": "audio/ogg",
    ".parquet": "application/vnd.apache.parquet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".rst": "text/x-rst",
    ".sql": "application/sql",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",
    ".webp": "image/webp",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_TEXT_TYPES = frozenset(
    f"application/{subtype}"
    for subtype in ("javascript", "json", "jsonl", "sql", "toml", "x-sh", "xml", "xhtml+xml", "yaml")
)


@cache
def _types() -> dict[str, str]:
    """Return media types by suffix. A compressed file is not what it contains."""
    from mimetypes import MimeTypes  # noqa: PLC0415 - few servers have files, and start-up time counts

    table = MimeTypes()
    other_types, types = table.types_map
    return {**other_types, **types, **_ADDED_TYPES, **dict.fromkeys(table.encodings_map, BINARY)}


def media_type_of_name(name: str) -> str | None:
    """Return the media type of a file with a name such as "report.pdf"; None if its suffix is unknown."""
    stem, _, suffix = name.rpartition("/")[2].rpartition(".")
    return _types().get(f".{suffix.lower()}") if stem else None


def is_text_type(media_type: str) -> bool:
    """Return whether files of a media type are texts."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence.startswith("text/") or essence in _TEXT_TYPES or essence.endswith(("+json", "+xml"))


def essence_of(media_type: str) -> str | None:
    """Return a media type in lower case and without its parameters; None if it has another form."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence if _FORM.fullmatch(essence) else None


def text_in(data: bytes, media_type: str | None) -> str | None:
    """Return the text of a file; None for a file that is not a text.

    Args:
        data: The bytes of the file.
        media_type: Its media type. None if it is unknown: a file in UTF-8 without NUL is a text then.
    """
    is_text = b"\0" not in data if media_type is None else is_text_type(media_type)
    if not is_text:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def plain_name(name: str) -> str:
    """Return the name of a file that a client sends without its folder, and without characters that can't be seen."""
    last = name.replace("\\", "/").rpartition("/")[2]
    visible = "".join(character for character in last if character.isprintable()).strip()
    return visible.encode()[:_MAX_NAME_BYTES].decode(errors="ignore") if visible.strip(".") else "file"
