"""Names of `fastmcp.server.middleware.caching` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import CallToolSettings as CallToolSettings
    from funcmcp.compat import GetPromptSettings as GetPromptSettings
    from funcmcp.compat import ListPromptsSettings as ListPromptsSettings
    from funcmcp.compat import ListResourcesSettings as ListResourcesSettings
    from funcmcp.compat import ListToolsSettings as ListToolsSettings
    from funcmcp.compat import ReadResourceSettings as ReadResourceSettings
    from funcmcp.compat import ResponseCachingMiddleware as ResponseCachingMiddleware
    from funcmcp.compat import ResponseCachingStatistics as ResponseCachingStatistics
    from funcmcp.compat import SharedMethodSettings as SharedMethodSettings
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "CallToolSettings",
            "GetPromptSettings",
            "ListPromptsSettings",
            "ListResourcesSettings",
            "ListToolsSettings",
            "ReadResourceSettings",
            "ResponseCachingMiddleware",
            "ResponseCachingStatistics",
            "SharedMethodSettings",
        ],
    })
