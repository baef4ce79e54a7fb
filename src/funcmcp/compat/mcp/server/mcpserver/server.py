"""Names of `mcp.server.mcpserver.server` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import MCPServer as MCPServer
    from funcmcp.compat import Settings as Settings
    from funcmcp.compat.mcp import require_client_extension as require_client_extension
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "MCPServer",
            "Settings",
        ],
        "funcmcp.compat.mcp": [
            "require_client_extension",
        ],
    })
