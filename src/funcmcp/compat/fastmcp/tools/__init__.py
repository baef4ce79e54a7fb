"""Names of `fastmcp.tools` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import FunctionTool as FunctionTool
    from funcmcp.compat import Tool as Tool
    from funcmcp.compat import ToolResult as ToolResult
    from funcmcp.compat import forward as forward
    from funcmcp.compat import forward_raw as forward_raw
    from funcmcp.compat import tool as tool
    from funcmcp.compat.fastmcp.tools import base as base
    from funcmcp.compat.fastmcp.tools import function_parsing as function_parsing
    from funcmcp.compat.fastmcp.tools import function_tool as function_tool
    from funcmcp.compat.fastmcp.tools import tool_manager as tool_manager
    from funcmcp.compat.fastmcp.tools import tool_transform as tool_transform
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "FunctionTool",
            "Tool",
            "ToolResult",
            "forward",
            "forward_raw",
            "tool",
        ],
    }, shadowing=["tool"])
