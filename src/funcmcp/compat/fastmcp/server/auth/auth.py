"""Names of `fastmcp.server.auth.auth` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AccessToken as AccessToken
    from funcmcp.compat import AuthProvider as AuthProvider
    from funcmcp.compat import MultiAuth as MultiAuth
    from funcmcp.compat import RemoteAuthProvider as RemoteAuthProvider
    from funcmcp.compat import TokenVerificationError as TokenVerificationError
    from funcmcp.compat import TokenVerifier as TokenVerifier
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AccessToken",
            "AuthProvider",
            "MultiAuth",
            "RemoteAuthProvider",
            "TokenVerificationError",
            "TokenVerifier",
        ],
    })
