"""Names of `fastmcp.server.auth.oauth_proxy` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import OAuthProxy as OAuthProxy
    from funcmcp.compat.fastmcp.server.auth.oauth_proxy import consent as consent
    from funcmcp.compat.fastmcp.server.auth.oauth_proxy import models as models
    from funcmcp.compat.fastmcp.server.auth.oauth_proxy import proxy as proxy
    from funcmcp.compat.fastmcp.server.auth.oauth_proxy import revocation as revocation
    from funcmcp.compat.fastmcp.server.auth.oauth_proxy import ui as ui
    from funcmcp.compat.fastmcp.server.auth.oauth_proxy import upstream as upstream
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "OAuthProxy",
        ],
    })
