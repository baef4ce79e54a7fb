"""Names of `fastmcp.utilities.lifespan` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.lifespans import combine_lifespans as combine_lifespans
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.lifespans": [
            "combine_lifespans",
        ],
    })
