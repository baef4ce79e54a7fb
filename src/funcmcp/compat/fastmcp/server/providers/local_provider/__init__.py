"""Names of `fastmcp.server.providers.local_provider` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import LocalProvider as LocalProvider
    from funcmcp.compat.fastmcp.server.providers.local_provider import decorators as decorators
    from funcmcp.compat.fastmcp.server.providers.local_provider import local_provider as local_provider
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "LocalProvider",
        ],
    })
