"""The types of content blocks, one row each, and blocks with base64 inside JSON values: images, sounds and files.

A new type of block is a row of `BLOCK_TYPES` and a class for authors in `_authoring/results/content.py`.

A model pays for each character of a text. The base64 of a picture of 100 kB takes about 100,000 tokens, and no model
can see the picture in it. Therefore a text never contains the base64 of a block.

The data of a tool, such as a record that a user has written, can look like a block. Clients reject a whole result with
an invalid block. Therefore an object is a block only if each member that the specification defines is valid. Any other
object is data, and its text is complete.

Source: every revision's schema, ContentBlock (Content in older ones), and for the members 2026-07-28, ImageContent,
AudioContent, EmbeddedResource, BlobResourceContents, Annotations.
"""

from __future__ import annotations

import re
from base64 import b64decode
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._objects.mappings import without, without_none

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Block = Mapping[str, Any]
    Checks = Mapping[str, Callable[[Any], bool]]

_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+( *;[\x20-\x7e]*)?", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[\x21-\x7e]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_ROLES = ("user", "assistant")
_EVERY_TYPE = {"annotations": "2024-11-05", "_meta": "2025-06-18"}


class BlockType(NamedTuple):
    """A type of content block.

    Attributes:
        name: The value of ``type``.
        since: The first revision with the type.
        strings: The members that must be strings.
        text: Returns a block as text for a person, whatever its members are.
        base64: The path of the member with base64; empty if there is none.
        members: The checks of the members, for a type with base64.
        older: Returns the text that revisions without the type get. None: a sentence that names the type.
        optional: Other members, with the first revision that has them.
        format: The format of bytes without a file name; empty for a type without media.
        subtypes: The subtypes of media types, for file suffixes that have another name.
    """

    name: str
    since: str
    strings: tuple[str, ...]
    text: Callable[[Block], str]
    base64: tuple[str, ...] = ()
    members: Checks = {}  # noqa: RUF012 - it is never changed
    older: Callable[[Block], str] | None = None
    optional: Mapping[str, str] = _EVERY_TYPE
    format: str = ""
    subtypes: Mapping[str, str] = {}

    def media_type(self, suffix: str) -> str:
        """Return the media type of a file with a suffix such as "jpg"; of the default format without a suffix."""
        suffix = (suffix or self.format).lower()
        return f"{self.name}/{self.subtypes.get(suffix, suffix)}"


def types_of(revision: str) -> frozenset[str]:
    """Return the types of content blocks that a revision has."""
    # Revisions are dates in ISO format, so they sort as text.
    return frozenset(row.name for row in BLOCK_TYPES.values() if row.since <= revision)


def members_of(revision: str) -> frozenset[str]:
    """Return the members of all types of content blocks in a revision."""
    names = {"type"}
    for row in BLOCK_TYPES.values():
        if row.since <= revision:
            names.update(row.strings)
            names.update(name for name, since in row.optional.items() if since <= revision)
    return frozenset(names)


def type_of(block: Block) -> BlockType | None:
    """Return the type of an object that may be a content block; None if it is not one."""
    name = block.get("type")
    return BLOCK_TYPES.get(name) if isinstance(name, str) else None


def for_older(block: Block) -> dict[str, Any]:
    """Return a text block in place of one whose type a revision does not have."""
    name, row = block["type"], BLOCK_TYPES.get(block["type"])
    if row is not None and row.older is not None:
        text = row.older(block)
    else:
        text = f"[{name} content, which this protocol revision does not support]"
    return {"type": "text", "text": text}


def text_of(block: Block) -> str:
    """Return a content block of a server as text. A block that is not text is described by its kind and size."""
    row = type_of(block)
    return _text_of_data(block) if row is None else row.text(block)


def may_have_binary_blocks(text: bytes) -> bool:
    """Return whether a JSON text may contain a block with base64. It is quick, and never wrong about False."""
    return text.find(b'"mimeType"') >= 0 or text.find(b'"blob"') >= 0  # twice as fast as "in"


def without_binary(value: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return a JSON value without the base64 of the content blocks in it, and these blocks.

    A block without its base64 still has its type and its media type.
    """
    blocks: list[dict[str, Any]] = []
    return _without_binary(value, blocks), blocks


def _without_binary(value: Any, blocks: list[dict[str, Any]]) -> Any:
    if isinstance(value, list):
        return [_without_binary(element, blocks) for element in value]
    if not isinstance(value, dict):
        return value
    row = type_of(value)
    if row is not None and row.base64 and _is_valid(value, row.members):
        block = _without_nulls(value, row.base64)
        blocks.append(block)
        return _without_member(block, row.base64)
    return {name: _without_binary(member, blocks) for name, member in value.items()}


def _without_nulls(block: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return a block without the members that are null, also in the objects that a path leads through."""
    members = without_none(block)
    if len(path) > 1:
        members[path[0]] = _without_nulls(members[path[0]], path[1:])
    return members


def _without_member(block: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return a block without the member at a path."""
    if len(path) > 1:
        return {**block, path[0]: _without_member(block[path[0]], path[1:])}
    return without(block, path[0])


def _is_valid(value: Any, checks: Checks) -> bool:
    """Return whether a value is an object whose members pass their checks. A missing member is checked as None."""
    return isinstance(value, dict) and all(check(value.get(name)) for name, check in checks.items())


def _optional(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_base64(text: Any) -> bool:
    if not isinstance(text, str):
        return False
    try:
        return len(b64decode(text, validate=True)) > 0
    except ValueError:
        return False


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_audience(value: Any) -> bool:
    return isinstance(value, list) and all(role in _ROLES for role in value)


def _is_priority(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


_ANNOTATIONS: Checks = {
    "audience": _optional(_is_audience),
    "priority": _optional(_is_priority),
    "lastModified": _optional(_is_time),
}
_COMMON: Checks = {
    "annotations": _optional(lambda value: _is_valid(value, _ANNOTATIONS)),
    "_meta": _optional(_is_object),
}
_DATA_BLOCK: Checks = {"data": _is_base64, "mimeType": _matches(_MEDIA_TYPE), **_COMMON}
_BLOB: Checks = {
    "uri": _matches(_URI),
    "blob": _is_base64,
    "text": lambda value: value is None,
    "mimeType": _optional(_matches(_MEDIA_TYPE)),
    "_meta": _optional(_is_object),
}
_RESOURCE_BLOCK: Checks = {"resource": lambda value: _is_valid(value, _BLOB), **_COMMON}


def _text_of_data(block: Block) -> str:
    return f"[{block.get('type')} {block.get('mimeType', '')}, {len(str(block.get('data', '')))} base64 characters]"


def _text_of_link(block: Block) -> str:
    return f"[link {block.get('uri')}]"


def _text_of_resource(block: Block) -> str:
    resource = block.get("resource")
    if not isinstance(resource, dict):
        resource = {}
    if "text" in resource:
        return str(resource["text"])
    return f"[resource {resource.get('uri')}, {len(str(resource.get('blob', '')))} base64 characters]"


def _older_link(block: Block) -> str:
    return f"{block.get('title') or block['name']}: {block['uri']}"


BLOCK_TYPES: dict[str, BlockType] = {
    row.name: row
    for row in (
        BlockType("text", "2024-11-05", ("text",), lambda block: str(block.get("text"))),
        BlockType(
            "image",
            "2024-11-05",
            ("data", "mimeType"),
            _text_of_data,
            ("data",),
            _DATA_BLOCK,
            format="png",
            subtypes={"jpg": "jpeg", "svg": "svg+xml", "tif": "tiff"},
        ),
        BlockType(
            "audio",
            "2025-03-26",
            ("data", "mimeType"),
            _text_of_data,
            ("data",),
            _DATA_BLOCK,
            format="wav",
            subtypes={"mp3": "mpeg", "m4a": "mp4"},
        ),
        BlockType(
            "resource_link",
            "2025-06-18",
            ("uri", "name"),
            _text_of_link,
            older=_older_link,
            optional={
                **_EVERY_TYPE,
                **dict.fromkeys(("title", "description", "mimeType", "size"), "2025-06-18"),
                "icons": "2025-11-25",
            },
        ),
        BlockType(
            "resource",
            "2024-11-05",
            (),
            _text_of_resource,
            ("resource", "blob"),
            _RESOURCE_BLOCK,
            optional={**_EVERY_TYPE, "resource": "2024-11-05"},
        ),
    )
}

MEDIA_TYPES = tuple(row.name for row in BLOCK_TYPES.values() if row.format)
"""The types of blocks with bytes of their own: images and sounds."""
