"""Names of `fastmcp.tools.function_tool` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.standalone import ToolMeta as ToolMeta
    from funcmcp.compat import FunctionTool as FunctionTool
    from funcmcp.compat import tool as tool
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.standalone": [
            "ToolMeta",
        ],
        "funcmcp.compat": [
            "FunctionTool",
            "tool",
        ],
    })
