"""Names of `mcp.server.elicitation` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AcceptedElicitation as AcceptedElicitation
    from funcmcp.compat import AcceptedUrlElicitation as AcceptedUrlElicitation
    from funcmcp.compat import CancelledElicitation as CancelledElicitation
    from funcmcp.compat import DeclinedElicitation as DeclinedElicitation
    from funcmcp.compat import ElicitationResult as ElicitationResult
    from funcmcp.compat import elicit_url as elicit_url
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AcceptedElicitation",
            "AcceptedUrlElicitation",
            "CancelledElicitation",
            "DeclinedElicitation",
            "ElicitationResult",
            "elicit_url",
        ],
    })
