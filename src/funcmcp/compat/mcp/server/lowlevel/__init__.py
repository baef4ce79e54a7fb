"""Names of `mcp.server.lowlevel` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp.server.lowlevel import experimental as experimental
    from funcmcp.compat.mcp.server.lowlevel import func_inspection as func_inspection
    from funcmcp.compat.mcp.server.lowlevel import helper_types as helper_types
    from funcmcp.compat.mcp.server.lowlevel import server as server
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
