"""Content blocks with base64 inside JSON values: images, sounds and files.

A model pays for each character of a text. The base64 of a picture of 100 kB takes about 100,000 tokens, and no model
can see the picture in it. Therefore a text never contains the base64 of a block.

The data of a tool, such as a record that a user has written, can look like a block. Clients reject a whole result with
an invalid block. Therefore an object is a block only if each member that the specification defines is valid. Any other
object is data, and its text is complete.

Source: 2026-07-28 schema, ImageContent, AudioContent, EmbeddedResource, BlobResourceContents, Annotations.
"""

from __future__ import annotations

import re
from base64 import b64decode
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Checks = Mapping[str, Callable[[Any], bool]]

_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+( *;[\x20-\x7e]*)?", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[\x21-\x7e]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_ROLES = ("user", "assistant")


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
        return [_without_binary(item, blocks) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") in ("image", "audio") and _is_valid(value, _DATA_BLOCK):
        blocks.append(_without_null(value))
        return _without_null({**value, "data": None})
    if value.get("type") == "resource" and _is_valid(value, _RESOURCE_BLOCK):
        resource = value["resource"]
        blocks.append({**_without_null(value), "resource": _without_null(resource)})
        return {**_without_null(value), "resource": _without_null({**resource, "blob": None})}
    return {name: _without_binary(member, blocks) for name, member in value.items()}


def _without_null(value: dict[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in value.items() if member is not None}


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
