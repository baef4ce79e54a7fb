"""Names of `fastmcp.tools.tool_transform` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import ArgTransform as ArgTransform
    from funcmcp.compat import ArgTransformConfig as ArgTransformConfig
    from funcmcp.compat import ToolTransformConfig as ToolTransformConfig
    from funcmcp.compat import TransformedTool as TransformedTool
    from funcmcp.compat import forward as forward
    from funcmcp.compat import forward_raw as forward_raw
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "ArgTransform",
            "ArgTransformConfig",
            "ToolTransformConfig",
            "TransformedTool",
            "forward",
            "forward_raw",
        ],
    })
