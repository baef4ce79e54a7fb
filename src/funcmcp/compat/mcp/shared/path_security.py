"""Names of `mcp.shared.path_security` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.security import PathEscapeError as PathEscapeError
    from funcmcp._compat.security import contains_path_traversal as contains_path_traversal
    from funcmcp._compat.security import is_absolute_path as is_absolute_path
    from funcmcp._compat.security import safe_join as safe_join
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.security": [
            "PathEscapeError",
            "contains_path_traversal",
            "is_absolute_path",
            "safe_join",
        ],
    })
