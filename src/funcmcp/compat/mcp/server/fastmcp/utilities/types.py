"""Names of `mcp.server.fastmcp.utilities.types` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import Audio as Audio
    from funcmcp.compat import Image as Image
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "Audio",
            "Image",
        ],
    })
