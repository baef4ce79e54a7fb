"""Names of `mcp.server.apps` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp import Apps as Apps
    from funcmcp.compat.mcp import ResourceCsp as ResourceCsp
    from funcmcp.compat.mcp import ResourcePermissions as ResourcePermissions
    from funcmcp.compat.mcp import client_supports_apps as client_supports_apps
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat.mcp": [
            "Apps",
            "ResourceCsp",
            "ResourcePermissions",
            "client_supports_apps",
        ],
    })
