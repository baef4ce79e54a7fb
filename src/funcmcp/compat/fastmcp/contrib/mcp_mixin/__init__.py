"""Names of `fastmcp.contrib.mcp_mixin` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.mixin import MCPMixin as MCPMixin
    from funcmcp._compat.mixin import mcp_prompt as mcp_prompt
    from funcmcp._compat.mixin import mcp_resource as mcp_resource
    from funcmcp._compat.mixin import mcp_tool as mcp_tool
    from funcmcp.compat.fastmcp.contrib.mcp_mixin import mcp_mixin as mcp_mixin
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.mixin": [
            "MCPMixin",
            "mcp_prompt",
            "mcp_resource",
            "mcp_tool",
        ],
    })
