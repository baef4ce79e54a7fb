"""Results with classes of the official SDK or of FastMCP, and pictures, which are converted without importing any.

Servers that move to funcmcp may continue to return ``CallToolResult``, ``TextContent`` and similar objects. A class
belongs to those packages if it, or one of its base classes, is defined in one of them. Classes of the SDK's versions 1
and 2 differ in the names of their attributes, but have the same JSON form.
"""

from __future__ import annotations

import functools
from typing import Any

from funcmcp._authoring.results.content import Content, Contents, Image, Message, PromptResult, ToolResult
from funcmcp._authoring.results.pictures import is_picture_type, picture_of

_PACKAGES = frozenset({"fastmcp", "mcp", "mcp_types"})
_OWN_TYPES = "funcmcp.compat.mcp.types"
"""The module with the same types for servers that move here."""
_CONVERTERS = ("to_image_content", "to_audio_content", "to_resource_content")
"""Methods of helper classes such as ``Image``, which return a content block."""


class _Block(Content):
    """A content block in JSON form."""

    __slots__ = ()

    def __init__(self, block: dict[str, Any]) -> None:
        self.block = block


def is_sdk_type(cls: Any) -> bool:
    """Return whether `converted` may convert objects of a class: one of the official SDK or FastMCP, or a picture."""
    return isinstance(cls, type) and _is_sdk_class(cls)


@functools.lru_cache(maxsize=1024)
def _is_sdk_class(cls: type) -> bool:
    modules = [base.__module__ for base in cls.__mro__]
    has_name = any(module.partition(".")[0] in _PACKAGES or module == _OWN_TYPES for module in modules)
    return has_name or is_picture_type(cls)


def converted(value: Any) -> Any:
    """Return funcmcp's counterpart of an object of another library. Other values are returned unchanged."""
    if not is_sdk_type(type(value)):
        return value
    picture = picture_of(value)
    if picture is not None:
        return Image(picture.data, mime_type=picture.media_type)
    for method in _CONVERTERS:
        if hasattr(value, method):
            return converted(getattr(value, method)())
    if hasattr(value, "messages"):
        messages = [converted(message) for message in value.messages]
        return PromptResult(messages, description=_attribute(value, "description"), meta=_attribute(value, "meta"))
    if hasattr(value, "role"):
        return Message(_block(value.content), role=value.role)
    if hasattr(value, "contents"):
        return [converted(contents) for contents in value.contents]
    if isinstance(_attribute(value, "content"), list):
        return _tool_result(value)
    return _from_wire(value)


def _tool_result(value: Any) -> ToolResult:
    return ToolResult(
        [_block(block) for block in value.content],
        structured_content=_attribute(value, "structured_content", "structuredContent"),
        is_error=bool(_attribute(value, "is_error", "isError")),
        meta=_attribute(value, "meta"),
    )


def _from_wire(value: Any) -> Any:
    """Return an object as a content block or contents of a resource, if its JSON form is one of these."""
    if not hasattr(value, "model_dump"):
        return value
    wire: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if "type" in wire:
        return _Block(wire)
    if "uri" in wire and ("text" in wire or "blob" in wire):
        contents = Contents("")
        contents.wire = wire
        return contents
    return value


def _block(value: Any) -> Any:
    block = converted(value)
    return block if isinstance(block, str | Content) else str(block)


def _attribute(value: Any, *names: str) -> Any:
    return next((getattr(value, name) for name in names if hasattr(value, name)), None)
