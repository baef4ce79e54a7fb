"""Names of `fastmcp.server.openapi` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import FastMCPDeprecationWarning as FastMCPDeprecationWarning
    from funcmcp.compat import MCPType as MCPType
    from funcmcp.compat import OpenAPIProvider as OpenAPIProvider
    from funcmcp.compat import RouteMap as RouteMap
    from funcmcp.compat.fastmcp.server.openapi import components as components
    from funcmcp.compat.fastmcp.server.openapi import routing as routing
    from funcmcp.compat.fastmcp.server.openapi import server as server
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "FastMCPDeprecationWarning",
            "MCPType",
            "OpenAPIProvider",
            "RouteMap",
        ],
    })
