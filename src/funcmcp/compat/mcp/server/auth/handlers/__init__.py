"""Names of `mcp.server.auth.handlers` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp.server.auth.handlers import authorize as authorize
    from funcmcp.compat.mcp.server.auth.handlers import metadata as metadata
    from funcmcp.compat.mcp.server.auth.handlers import register as register
    from funcmcp.compat.mcp.server.auth.handlers import revoke as revoke
    from funcmcp.compat.mcp.server.auth.handlers import token as token
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
