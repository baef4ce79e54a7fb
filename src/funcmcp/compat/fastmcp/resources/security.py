"""Names of `fastmcp.resources.security` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import DEFAULT_RESOURCE_SECURITY as DEFAULT_RESOURCE_SECURITY
    from funcmcp.compat import INHERIT_SECURITY as INHERIT_SECURITY
    from funcmcp.compat import ResourceSecurity as ResourceSecurity
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "DEFAULT_RESOURCE_SECURITY",
            "INHERIT_SECURITY",
            "ResourceSecurity",
        ],
    })
