"""Names of `fastmcp.utilities.authorization` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AuthContext as AuthContext
    from funcmcp.compat import require_roles as require_roles
    from funcmcp.compat import require_scopes as require_scopes
    from funcmcp.compat import restrict_tag as restrict_tag
    from funcmcp.compat import run_auth_checks as run_auth_checks
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AuthContext",
            "require_roles",
            "require_scopes",
            "restrict_tag",
            "run_auth_checks",
        ],
    })
