"""Names of `mcp.server.mcpserver.resolve` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AcceptedElicitation as AcceptedElicitation
    from funcmcp.compat import CancelledElicitation as CancelledElicitation
    from funcmcp.compat import DeclinedElicitation as DeclinedElicitation
    from funcmcp.compat import Elicit as Elicit
    from funcmcp.compat import ElicitationResult as ElicitationResult
    from funcmcp.compat import ListRoots as ListRoots
    from funcmcp.compat import Resolve as Resolve
    from funcmcp.compat import Sample as Sample
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AcceptedElicitation",
            "CancelledElicitation",
            "DeclinedElicitation",
            "Elicit",
            "ElicitationResult",
            "ListRoots",
            "Resolve",
            "Sample",
        ],
    })
