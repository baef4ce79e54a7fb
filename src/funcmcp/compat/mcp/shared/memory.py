"""Names of `mcp.shared.memory` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.original_clients import create_connected_server_and_client_session as create_connected_server_and_client_session
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.original_clients": [
            "create_connected_server_and_client_session",
        ],
    })
