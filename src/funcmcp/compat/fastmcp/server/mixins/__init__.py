"""Names of `fastmcp.server.mixins` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.fastmcp.server.mixins import extensions as extensions
    from funcmcp.compat.fastmcp.server.mixins import lifespan as lifespan
    from funcmcp.compat.fastmcp.server.mixins import mcp_operations as mcp_operations
    from funcmcp.compat.fastmcp.server.mixins import transport as transport
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
