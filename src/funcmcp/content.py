"""Content blocks, messages and whole results that tools, resources and prompts may return."""

from __future__ import annotations

from funcmcp.authoring.values.content import (
    Audio,
    Content,
    Contents,
    EmbeddedResource,
    Icon,
    Image,
    Message,
    PromptResult,
    ResourceInfo,
    ResourceLink,
    Text,
    ToolResult,
)

__all__ = [
    "Audio",
    "Content",
    "Contents",
    "EmbeddedResource",
    "Icon",
    "Image",
    "Message",
    "PromptResult",
    "ResourceInfo",
    "ResourceLink",
    "Text",
    "ToolResult",
]
