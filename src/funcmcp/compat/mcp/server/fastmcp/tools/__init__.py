"""Names of `mcp.server.fastmcp.tools` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp import Tool as Tool
    from funcmcp.compat.mcp.server.fastmcp.tools import base as base
    from funcmcp.compat.mcp.server.fastmcp.tools import tool_manager as tool_manager
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat.mcp": [
            "Tool",
        ],
    })
