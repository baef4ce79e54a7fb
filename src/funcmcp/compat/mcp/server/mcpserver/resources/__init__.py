"""Names of `mcp.server.mcpserver.resources` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import DEFAULT_RESOURCE_SECURITY as DEFAULT_RESOURCE_SECURITY
    from funcmcp.compat import HttpResource as HttpResource
    from funcmcp.compat import ResourceSecurity as ResourceSecurity
    from funcmcp.compat.mcp import BinaryResource as BinaryResource
    from funcmcp.compat.mcp import DirectoryResource as DirectoryResource
    from funcmcp.compat.mcp import FileResource as FileResource
    from funcmcp.compat.mcp import FunctionResource as FunctionResource
    from funcmcp.compat.mcp import Resource as Resource
    from funcmcp.compat.mcp import ResourceSecurityError as ResourceSecurityError
    from funcmcp.compat.mcp import ResourceTemplate as ResourceTemplate
    from funcmcp.compat.mcp import TextResource as TextResource
    from funcmcp.compat.mcp.server.mcpserver.resources import base as base
    from funcmcp.compat.mcp.server.mcpserver.resources import resource_manager as resource_manager
    from funcmcp.compat.mcp.server.mcpserver.resources import templates as templates
    from funcmcp.compat.mcp.server.mcpserver.resources import types as types
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "DEFAULT_RESOURCE_SECURITY",
            "HttpResource",
            "ResourceSecurity",
        ],
        "funcmcp.compat.mcp": [
            "BinaryResource",
            "DirectoryResource",
            "FileResource",
            "FunctionResource",
            "Resource",
            "ResourceSecurityError",
            "ResourceTemplate",
            "TextResource",
        ],
    })
