"""Names of `mcp.server.auth` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp.server.auth import errors as errors
    from funcmcp.compat.mcp.server.auth import handlers as handlers
    from funcmcp.compat.mcp.server.auth import json_response as json_response
    from funcmcp.compat.mcp.server.auth import middleware as middleware
    from funcmcp.compat.mcp.server.auth import provider as provider
    from funcmcp.compat.mcp.server.auth import routes as routes
    from funcmcp.compat.mcp.server.auth import settings as settings
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
