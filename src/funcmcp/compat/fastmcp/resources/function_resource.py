"""Names of `fastmcp.resources.function_resource` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.standalone import ResourceMeta as ResourceMeta
    from funcmcp.compat import FunctionResource as FunctionResource
    from funcmcp.compat import resource as resource
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.standalone": [
            "ResourceMeta",
        ],
        "funcmcp.compat": [
            "FunctionResource",
            "resource",
        ],
    })
