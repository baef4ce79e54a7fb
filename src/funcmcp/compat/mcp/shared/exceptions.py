"""Names of `mcp.shared.exceptions` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp import MCPError as MCPError
    from funcmcp._compat.sdk_errors import MCPDeprecationWarning as MCPDeprecationWarning
    from funcmcp._compat.sdk_errors import UrlElicitationRequiredError as UrlElicitationRequiredError
    from funcmcp.compat import McpError as McpError
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp": [
            "MCPError",
        ],
        "funcmcp._compat.sdk_errors": [
            "MCPDeprecationWarning",
            "UrlElicitationRequiredError",
        ],
        "funcmcp.compat": [
            "McpError",
        ],
    })
