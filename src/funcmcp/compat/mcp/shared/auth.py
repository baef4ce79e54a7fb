"""Names of `mcp.shared.auth`, for which its package has to be installed. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING, Any

from funcmcp._compat.original_clients import names_of_client

if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...
else:
    __getattr__, __dir__ = names_of_client(__name__)
