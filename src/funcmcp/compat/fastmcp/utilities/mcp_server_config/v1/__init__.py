"""Names of `fastmcp.utilities.mcp_server_config.v1` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.fastmcp.utilities.mcp_server_config.v1 import environments as environments
    from funcmcp.compat.fastmcp.utilities.mcp_server_config.v1 import mcp_server_config as mcp_server_config
    from funcmcp.compat.fastmcp.utilities.mcp_server_config.v1 import sources as sources
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
