"""Content blocks with base64 inside JSON values: images, sounds and files.

A model pays for each character of a text. The base64 of a picture of 100 kB takes about 100,000 tokens, and no model
can see the picture in it. Therefore a text never contains the base64 of a block.

Source: 2026-07-28 schema, ImageContent, AudioContent, EmbeddedResource.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

_WITH_DATA = ("image", "audio")


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
    if value.get("type") in _WITH_DATA and isinstance(value.get("mimeType"), str) and _is_base64(value.get("data")):
        blocks.append(_without_null(value))
        return _without_null({**value, "data": None})
    if value.get("type") == "resource" and _is_binary_resource(value.get("resource")):
        resource = value["resource"]
        blocks.append({**_without_null(value), "resource": _without_null(resource)})
        return {**_without_null(value), "resource": _without_null({**resource, "blob": None})}
    return {name: _without_binary(member, blocks) for name, member in value.items()}


def _is_binary_resource(resource: Any) -> bool:
    return isinstance(resource, dict) and isinstance(resource.get("uri"), str) and _is_base64(resource.get("blob"))


def _without_null(value: dict[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in value.items() if member is not None}


def _is_base64(text: Any) -> bool:
    if not isinstance(text, str):
        return False
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return True
