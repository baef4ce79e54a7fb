"""Names of `mcp.server.fastmcp.prompts` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp import Prompt as Prompt
    from funcmcp.compat.mcp.server.fastmcp.prompts import base as base
    from funcmcp.compat.mcp.server.fastmcp.prompts import manager as manager
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat.mcp": [
            "Prompt",
        ],
    })
