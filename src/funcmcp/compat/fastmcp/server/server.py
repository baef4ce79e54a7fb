"""Names of `fastmcp.server.server` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import FastMCP as FastMCP
    from funcmcp.compat import create_proxy as create_proxy
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "FastMCP",
            "create_proxy",
        ],
    })
