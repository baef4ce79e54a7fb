"""Names of `mcp.server.context` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.middleware_adapters import CallNext as CallNext
    from funcmcp._compat.middleware_adapters import HandlerResult as HandlerResult
    from funcmcp._compat.middleware_adapters import ServerRequestContext as ServerRequestContext
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.middleware_adapters": [
            "CallNext",
            "HandlerResult",
            "ServerRequestContext",
        ],
    })
