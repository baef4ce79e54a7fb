"""Names of `fastmcp.server.lifespan` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import ContextManagerLifespan as ContextManagerLifespan
    from funcmcp.compat import Lifespan as Lifespan
    from funcmcp.compat import lifespan as lifespan
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "ContextManagerLifespan",
            "Lifespan",
            "lifespan",
        ],
    })
