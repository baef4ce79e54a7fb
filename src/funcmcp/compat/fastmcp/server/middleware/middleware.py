"""Names of `fastmcp.server.middleware.middleware` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import CallNext as CallNext
    from funcmcp.compat import Middleware as Middleware
    from funcmcp.compat import MiddlewareContext as MiddlewareContext
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "CallNext",
            "Middleware",
            "MiddlewareContext",
        ],
    })
