"""Names of `mcp.server.fastmcp.resources` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import HttpResource as HttpResource
    from funcmcp.compat.mcp import BinaryResource as BinaryResource
    from funcmcp.compat.mcp import DirectoryResource as DirectoryResource
    from funcmcp.compat.mcp import FileResource as FileResource
    from funcmcp.compat.mcp import FunctionResource as FunctionResource
    from funcmcp.compat.mcp import Resource as Resource
    from funcmcp.compat.mcp import ResourceTemplate as ResourceTemplate
    from funcmcp.compat.mcp import TextResource as TextResource
    from funcmcp.compat.mcp.server.fastmcp.resources import base as base
    from funcmcp.compat.mcp.server.fastmcp.resources import resource_manager as resource_manager
    from funcmcp.compat.mcp.server.fastmcp.resources import templates as templates
    from funcmcp.compat.mcp.server.fastmcp.resources import types as types
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "HttpResource",
        ],
        "funcmcp.compat.mcp": [
            "BinaryResource",
            "DirectoryResource",
            "FileResource",
            "FunctionResource",
            "Resource",
            "ResourceTemplate",
            "TextResource",
        ],
    })
