"""Names of `fastmcp.utilities.mcp_server_config` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.fastmcp.utilities.mcp_server_config import v1 as v1
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
