"""Names of `mcp.server.fastmcp.utilities` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp.server.fastmcp.utilities import context_injection as context_injection
    from funcmcp.compat.mcp.server.fastmcp.utilities import func_metadata as func_metadata
    from funcmcp.compat.mcp.server.fastmcp.utilities import logging as logging
    from funcmcp.compat.mcp.server.fastmcp.utilities import types as types
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
