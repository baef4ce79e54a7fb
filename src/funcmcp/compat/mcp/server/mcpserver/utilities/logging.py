"""Names of `mcp.server.mcpserver.utilities.logging` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import configure_logging as configure_logging
    from funcmcp.compat import get_logger as get_logger
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "configure_logging",
            "get_logger",
        ],
    })
