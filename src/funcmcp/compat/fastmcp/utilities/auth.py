"""Names of `fastmcp.utilities.auth` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.scope_texts import parse_scopes as parse_scopes
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.scope_texts": [
            "parse_scopes",
        ],
    })
