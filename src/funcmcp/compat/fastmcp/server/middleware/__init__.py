"""Names of `fastmcp.server.middleware` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AuthMiddleware as AuthMiddleware
    from funcmcp.compat import CallNext as CallNext
    from funcmcp.compat import Middleware as Middleware
    from funcmcp.compat import MiddlewareContext as MiddlewareContext
    from funcmcp.compat import PingMiddleware as PingMiddleware
    from funcmcp.compat.fastmcp.server.middleware import authorization as authorization
    from funcmcp.compat.fastmcp.server.middleware import caching as caching
    from funcmcp.compat.fastmcp.server.middleware import dereference as dereference
    from funcmcp.compat.fastmcp.server.middleware import error_handling as error_handling
    from funcmcp.compat.fastmcp.server.middleware import logging as logging
    from funcmcp.compat.fastmcp.server.middleware import middleware as middleware
    from funcmcp.compat.fastmcp.server.middleware import ping as ping
    from funcmcp.compat.fastmcp.server.middleware import rate_limiting as rate_limiting
    from funcmcp.compat.fastmcp.server.middleware import response_limiting as response_limiting
    from funcmcp.compat.fastmcp.server.middleware import timing as timing
    from funcmcp.compat.fastmcp.server.middleware import tool_injection as tool_injection
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AuthMiddleware",
            "CallNext",
            "Middleware",
            "MiddlewareContext",
            "PingMiddleware",
        ],
    })
