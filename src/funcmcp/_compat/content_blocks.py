"""Content blocks in JSON form, as FastMCP makes them of the values of tools."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from funcmcp._authoring.results.content import Content, ToolResult
from funcmcp._authoring.results.sdk_results import converted
from funcmcp._authoring.schemas.iterators import BUILT_IN
from funcmcp._compat.serialization import json_text
from funcmcp._protocol.objects import ContentBlock


def native_result_of(value: Any) -> Any:
    """Return a result or a content block of another package as funcmcp's; other values are returned unchanged."""
    if type(value) in BUILT_IN:
        return value
    native = converted(value)
    return native if isinstance(native, ToolResult | Content) else value


def blocks_of(value: Any) -> list[dict[str, Any]] | None:
    """Return the blocks of a value that is content, or a list with content; None for other values."""
    if is_block(value):
        return [_block(value)]
    if not isinstance(value, list | tuple) or not any(map(is_block, value)):
        return None
    return [_block(item) for item in value]


def is_block(value: Any) -> bool:
    """Return whether a value is a content block: one of funcmcp, of another package, or of an earlier result."""
    if type(value) in BUILT_IN:
        return False
    return isinstance(value, ContentBlock) or isinstance(native_result_of(value), Content)


def content_of(value: Any) -> list[dict[str, Any]]:
    """Return a value as the content of a result."""
    if value is None or (isinstance(value, list | tuple) and not value):
        return []
    blocks = blocks_of(value)
    return [_block(value)] if blocks is None else blocks


def _block(value: Any) -> dict[str, Any]:
    if isinstance(value, ContentBlock):
        return dict(value)
    block = native_result_of(value)
    if isinstance(block, Content):
        return dict(block.block)
    if isinstance(value, bytes):
        try:
            return {"type": "text", "text": value.decode()}
        except UnicodeDecodeError:
            return {"type": "text", "text": b64encode(value).decode()}
    return {"type": "text", "text": str(value) if isinstance(value, str) else json_text(value)}


def plain_blocks(value: Any) -> Any:
    """Return content as data, for a tool with an output schema."""
    if is_block(value):
        return _block(value)
    return [_block(item) if is_block(item) else item for item in value]
