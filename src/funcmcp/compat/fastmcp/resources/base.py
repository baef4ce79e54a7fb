"""Names of `fastmcp.resources.base` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import Resource as Resource
    from funcmcp.compat import ResourceContent as ResourceContent
    from funcmcp.compat import ResourceResult as ResourceResult
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "Resource",
            "ResourceContent",
            "ResourceResult",
        ],
    })
