"""Names of the official SDK that mean something else in FastMCP. The other names are in `funcmcp.compat`.

The modules below have the names of the SDK's modules with the same paths: ``mcp.server.fastmcp`` and
``mcp.server.mcpserver``, ``mcp.types`` and so on.

``Tool.run``, ``Prompt.render`` and ``Resource.read`` return plain values here, as in the package `mcp`, and take a
context. A `funcmcp.compat.MCPServer` registers functions as objects of these classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._compat.sdk_apps import Apps, ResourceCsp, ResourcePermissions, client_supports_apps
    from funcmcp._compat.sdk_components import (
        BinaryResource,
        DirectoryResource,
        FileResource,
        FunctionResource,
        Prompt,
        Resource,
        ResourceTemplate,
        TextResource,
        Tool,
    )
    from funcmcp._compat.sdk_extensions import (
        Extension,
        MethodBinding,
        ResourceBinding,
        ToolBinding,
        require_client_extension,
    )
    from funcmcp._compat.security import ResourceSecurityError

_HOMES = {
    "_compat.sdk_apps": ["Apps", "ResourceCsp", "ResourcePermissions", "client_supports_apps"],
    "_compat.sdk_components": [
        "BinaryResource",
        "DirectoryResource",
        "FileResource",
        "FunctionResource",
        "Prompt",
        "Resource",
        "ResourceTemplate",
        "TextResource",
        "Tool",
    ],
    "_compat.sdk_extensions": [
        "Extension",
        "MethodBinding",
        "ResourceBinding",
        "ToolBinding",
        "require_client_extension",
    ],
    "_compat.security": ["ResourceSecurityError"],
}

_OF_PACKAGE = {
    "funcmcp": ["MCPError"],
    "funcmcp._compat.context": ["ServerSession"],
    "funcmcp._compat.sdk_errors": ["MCPDeprecationWarning", "UrlElicitationRequiredError"],
    "funcmcp.compat": ["McpError"],
    "funcmcp.compat.mcp.client": ["Client"],
    "funcmcp.compat.mcp.client.session": ["ClientSession"],
    "funcmcp.compat.mcp.client.session_group": ["ClientSessionGroup"],
    "funcmcp.compat.mcp.client.stdio": ["StdioServerParameters", "stdio_client"],
}
"""Names of the package `mcp` itself. Those of its client need the package."""

__all__ = [
    "Apps",
    "BinaryResource",
    "DirectoryResource",
    "Extension",
    "FileResource",
    "FunctionResource",
    "MethodBinding",
    "Prompt",
    "Resource",
    "ResourceBinding",
    "ResourceCsp",
    "ResourcePermissions",
    "ResourceSecurityError",
    "ResourceTemplate",
    "TextResource",
    "Tool",
    "ToolBinding",
    "client_supports_apps",
    "require_client_extension",
]

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    _load, __dir__ = lazy_names(__name__, _HOMES)

    def __getattr__(name: str) -> Any:
        if name in __all__:
            return _load(name)
        from funcmcp._compat.module_trees import names_of  # noqa: PLC0415 - only for submodules and missing names

        return names_of(__name__, _OF_PACKAGE)[0](name)
