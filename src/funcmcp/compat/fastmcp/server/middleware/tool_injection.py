"""Names of `fastmcp.server.middleware.tool_injection` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import PromptToolMiddleware as PromptToolMiddleware
    from funcmcp.compat import ResourceToolMiddleware as ResourceToolMiddleware
    from funcmcp.compat import ToolInjectionMiddleware as ToolInjectionMiddleware
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "PromptToolMiddleware",
            "ResourceToolMiddleware",
            "ToolInjectionMiddleware",
        ],
    })
