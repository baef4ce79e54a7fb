"""Names of `fastmcp.server.auth.providers.jwt` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import JWKData as JWKData
    from funcmcp.compat import JWKSData as JWKSData
    from funcmcp.compat import JWTVerifier as JWTVerifier
    from funcmcp.compat import RSAKeyPair as RSAKeyPair
    from funcmcp.compat import StaticTokenVerifier as StaticTokenVerifier
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "JWKData",
            "JWKSData",
            "JWTVerifier",
            "RSAKeyPair",
            "StaticTokenVerifier",
        ],
    })
