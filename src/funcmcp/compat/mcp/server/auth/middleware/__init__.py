"""Names of `mcp.server.auth.middleware` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp.server.auth.middleware import auth_context as auth_context
    from funcmcp.compat.mcp.server.auth.middleware import bearer_auth as bearer_auth
    from funcmcp.compat.mcp.server.auth.middleware import client_auth as client_auth
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
