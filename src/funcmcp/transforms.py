"""Changes of features before clients see them: other names, descriptions and arguments, fewer features, or other kinds.

A transform belongs to a server (`MCPServer.add_transform`), to a mounted server (``mcp.mount(..., transforms=[...])``)
or to a provider. See guides/transforms.md.

Example:
    ```python
    mcp.mount(crm, prefix="crm", transforms=[Select(tags={"public"}), Rename({"search_v2_final": "search"})])
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._providers.features_as_tools import PromptsAsTools, ResourcesAsTools
    from funcmcp._providers.namespace import Namespace
    from funcmcp._providers.selection import Describe, Hide, Rename, Select, VersionFilter
    from funcmcp._providers.tool_changes import ArgumentChange, ToolChange, ToolTransform, Wrap
    from funcmcp._server.catalog.transformed import Transform

__all__ = [
    "ArgumentChange",
    "Describe",
    "Hide",
    "Namespace",
    "PromptsAsTools",
    "Rename",
    "ResourcesAsTools",
    "Select",
    "ToolChange",
    "ToolTransform",
    "Transform",
    "VersionFilter",
    "Wrap",
]

_HOMES = {
    "_providers.features_as_tools": ["PromptsAsTools", "ResourcesAsTools"],
    "_providers.namespace": ["Namespace"],
    "_providers.selection": ["Describe", "Hide", "Rename", "Select", "VersionFilter"],
    "_providers.tool_changes": ["ArgumentChange", "ToolChange", "ToolTransform", "Wrap"],
    "_server.catalog.transformed": ["Transform"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
