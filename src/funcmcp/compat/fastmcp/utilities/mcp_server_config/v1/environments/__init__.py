"""Names of `fastmcp.utilities.mcp_server_config.v1.environments` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.fastmcp.utilities.mcp_server_config.v1.environments import base as base
    from funcmcp.compat.fastmcp.utilities.mcp_server_config.v1.environments import uv as uv
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
