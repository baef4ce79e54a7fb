"""Names of `fastmcp.server.providers.addressing` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.app_addresses import HASH_LENGTH as HASH_LENGTH
    from funcmcp._compat.app_addresses import TOOL_HASH_META_KEY as TOOL_HASH_META_KEY
    from funcmcp._compat.app_addresses import hash_tool as hash_tool
    from funcmcp._compat.app_addresses import hashed_backend_name as hashed_backend_name
    from funcmcp._compat.app_addresses import hashed_resource_uri as hashed_resource_uri
    from funcmcp._compat.app_addresses import is_app_tool_with_identity as is_app_tool_with_identity
    from funcmcp._compat.app_addresses import parse_hashed_backend_name as parse_hashed_backend_name
    from funcmcp._compat.app_addresses import parse_hashed_resource_uri as parse_hashed_resource_uri
    from funcmcp._compat.app_addresses import tool_identity as tool_identity
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.app_addresses": [
            "HASH_LENGTH",
            "TOOL_HASH_META_KEY",
            "hash_tool",
            "hashed_backend_name",
            "hashed_resource_uri",
            "is_app_tool_with_identity",
            "parse_hashed_backend_name",
            "parse_hashed_resource_uri",
            "tool_identity",
        ],
    })
