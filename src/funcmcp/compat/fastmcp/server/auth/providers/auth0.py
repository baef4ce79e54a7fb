"""Names of `fastmcp.server.auth.providers.auth0` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import Auth0JWTVerifier as Auth0JWTVerifier
    from funcmcp.compat import Auth0MCPProvider as Auth0MCPProvider
    from funcmcp.compat import Auth0Provider as Auth0Provider
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "Auth0JWTVerifier",
            "Auth0MCPProvider",
            "Auth0Provider",
        ],
    })
