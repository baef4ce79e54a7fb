"""Names of `mcp.server.mcpserver.exceptions` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import InvalidSignature as InvalidSignature
    from funcmcp.compat import ResourceError as ResourceError
    from funcmcp.compat import ResourceNotFoundError as ResourceNotFoundError
    from funcmcp.compat import ToolError as ToolError
    from funcmcp.compat import UnexpectedResourceError as UnexpectedResourceError
    from funcmcp.compat import UnexpectedToolError as UnexpectedToolError
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "InvalidSignature",
            "ResourceError",
            "ResourceNotFoundError",
            "ToolError",
            "UnexpectedResourceError",
            "UnexpectedToolError",
        ],
    })
