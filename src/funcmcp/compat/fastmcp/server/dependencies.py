"""Names of `fastmcp.server.dependencies` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AccessToken as AccessToken
    from funcmcp.compat import CurrentAccessToken as CurrentAccessToken
    from funcmcp.compat import CurrentContext as CurrentContext
    from funcmcp.compat import CurrentFastMCP as CurrentFastMCP
    from funcmcp.compat import CurrentHeaders as CurrentHeaders
    from funcmcp.compat import CurrentRequest as CurrentRequest
    from funcmcp.compat import Progress as Progress
    from funcmcp.compat import TokenClaim as TokenClaim
    from funcmcp.compat import get_access_token as get_access_token
    from funcmcp.compat import get_context as get_context
    from funcmcp.compat import get_http_headers as get_http_headers
    from funcmcp.compat import get_http_request as get_http_request
    from funcmcp.compat import get_server as get_server
    from funcmcp.compat import get_session as get_session
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AccessToken",
            "CurrentAccessToken",
            "CurrentContext",
            "CurrentFastMCP",
            "CurrentHeaders",
            "CurrentRequest",
            "Progress",
            "TokenClaim",
            "get_access_token",
            "get_context",
            "get_http_headers",
            "get_http_request",
            "get_server",
            "get_session",
        ],
    })
