"""Content blocks, messages and results that tools, resources and prompts return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._authoring.features.ui import UI, UIResource
    from funcmcp._authoring.signatures.signature import JSONRPCRequest, JSONRPCResponse
    from funcmcp._authoring.values.content import (
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
    "UI",
    "Audio",
    "Content",
    "Contents",
    "EmbeddedResource",
    "Icon",
    "Image",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "Message",
    "PromptResult",
    "ResourceInfo",
    "ResourceLink",
    "Text",
    "ToolResult",
    "UIResource",
]

_HOMES = {
    "_authoring.features.ui": ["UI", "UIResource"],
    "_authoring.signatures.signature": ["JSONRPCRequest", "JSONRPCResponse"],
    "_authoring.values.content": [
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
    ],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
