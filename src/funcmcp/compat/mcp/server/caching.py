"""Names of `mcp.server.caching` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
