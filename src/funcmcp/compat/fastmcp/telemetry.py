"""Names of `fastmcp.telemetry` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.tracers import get_tracer as get_tracer
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.tracers": [
            "get_tracer",
        ],
    })
