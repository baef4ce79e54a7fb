"""Names of `fastmcp.experimental.transforms` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.fastmcp.experimental.transforms import code_mode as code_mode
    from funcmcp.compat.fastmcp.experimental.transforms import jev_search as jev_search
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
