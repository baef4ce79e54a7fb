"""Names of `mcp.server.mcpserver.resources.types` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import HttpResource as HttpResource
    from funcmcp.compat.mcp import BinaryResource as BinaryResource
    from funcmcp.compat.mcp import DirectoryResource as DirectoryResource
    from funcmcp.compat.mcp import FileResource as FileResource
    from funcmcp.compat.mcp import FunctionResource as FunctionResource
    from funcmcp.compat.mcp import TextResource as TextResource
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
            "TextResource",
        ],
    })
