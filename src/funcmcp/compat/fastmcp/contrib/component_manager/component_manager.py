"""Names of `fastmcp.contrib.component_manager.component_manager` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.component_routes import set_up_component_manager as set_up_component_manager
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.component_routes": [
            "set_up_component_manager",
        ],
    })
