"""Names of `fastmcp.server.extensions` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.extensions import read_client_extension_settings as read_client_extension_settings
    from funcmcp.compat import ServerExtension as ServerExtension
    from funcmcp.compat.mcp import MethodBinding as MethodBinding
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.extensions": [
            "read_client_extension_settings",
        ],
        "funcmcp.compat": [
            "ServerExtension",
        ],
        "funcmcp.compat.mcp": [
            "MethodBinding",
        ],
    })
