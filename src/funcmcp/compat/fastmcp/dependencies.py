"""Names of `fastmcp.dependencies` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import CallArgument as CallArgument
    from funcmcp.compat import CurrentAccessToken as CurrentAccessToken
    from funcmcp.compat import CurrentContext as CurrentContext
    from funcmcp.compat import CurrentFastMCP as CurrentFastMCP
    from funcmcp.compat import CurrentHeaders as CurrentHeaders
    from funcmcp.compat import CurrentRequest as CurrentRequest
    from funcmcp.compat import Depends as Depends
    from funcmcp.compat import Progress as Progress
    from funcmcp.compat import Shared as Shared
    from funcmcp.compat import TokenClaim as TokenClaim
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "CallArgument",
            "CurrentAccessToken",
            "CurrentContext",
            "CurrentFastMCP",
            "CurrentHeaders",
            "CurrentRequest",
            "Depends",
            "Progress",
            "Shared",
            "TokenClaim",
        ],
    })
