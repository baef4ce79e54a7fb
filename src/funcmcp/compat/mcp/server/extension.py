"""Names of `mcp.server.extension` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp import Extension as Extension
    from funcmcp.compat.mcp import MethodBinding as MethodBinding
    from funcmcp.compat.mcp import ResourceBinding as ResourceBinding
    from funcmcp.compat.mcp import ToolBinding as ToolBinding
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat.mcp": [
            "Extension",
            "MethodBinding",
            "ResourceBinding",
            "ToolBinding",
        ],
    })
