"""Names of `fastmcp.server.sampling` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import SamplingResult as SamplingResult
    from funcmcp.compat.fastmcp.server.sampling import run as run
    from funcmcp.compat.fastmcp.server.sampling import sampling_tool as sampling_tool
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "SamplingResult",
        ],
    })
