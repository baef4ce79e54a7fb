"""Content blocks, messages and results that tools, resources and prompts return, and files that tools take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._authoring.calling.uploaded_file import UploadedFile
    from funcmcp._authoring.features.ui import UI, UIResource
    from funcmcp._authoring.results.content import (
        Audio,
        Content,
        Contents,
        EmbeddedResource,
        File,
        Icon,
        Image,
        Message,
        PromptResult,
        ResourceInfo,
        ResourceLink,
        Text,
        ToolResult,
    )
    from funcmcp._authoring.signatures.signature import JSONRPCRequest, JSONRPCResponse

__all__ = [
    "UI",
    "Audio",
    "Content",
    "Contents",
    "EmbeddedResource",
    "File",
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
    "UploadedFile",
]

_HOMES = {
    "_authoring.calling.uploaded_file": ["UploadedFile"],
    "_authoring.features.ui": ["UI", "UIResource"],
    "_authoring.signatures.signature": ["JSONRPCRequest", "JSONRPCResponse"],
    "_authoring.results.content": [
        "Audio",
        "Content",
        "Contents",
        "EmbeddedResource",
        "File",
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
