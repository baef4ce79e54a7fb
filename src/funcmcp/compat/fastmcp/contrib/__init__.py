"""Names of `fastmcp.contrib` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.fastmcp.contrib import bulk_tool_caller as bulk_tool_caller
    from funcmcp.compat.fastmcp.contrib import component_manager as component_manager
    from funcmcp.compat.fastmcp.contrib import mcp_mixin as mcp_mixin
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
