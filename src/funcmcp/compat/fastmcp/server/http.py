"""Names of `fastmcp.server.http` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import create_sse_app as create_sse_app
    from funcmcp.compat import create_streamable_http_app as create_streamable_http_app
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "create_sse_app",
            "create_streamable_http_app",
        ],
    })
