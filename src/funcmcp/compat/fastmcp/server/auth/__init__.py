"""Names of `fastmcp.server.auth` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AccessToken as AccessToken
    from funcmcp.compat import AuthCheck as AuthCheck
    from funcmcp.compat import AuthContext as AuthContext
    from funcmcp.compat import AuthProvider as AuthProvider
    from funcmcp.compat import DebugTokenVerifier as DebugTokenVerifier
    from funcmcp.compat import JWTVerifier as JWTVerifier
    from funcmcp.compat import MultiAuth as MultiAuth
    from funcmcp.compat import OAuthProxy as OAuthProxy
    from funcmcp.compat import OIDCProxy as OIDCProxy
    from funcmcp.compat import RemoteAuthProvider as RemoteAuthProvider
    from funcmcp.compat import StaticTokenVerifier as StaticTokenVerifier
    from funcmcp.compat import TokenVerificationError as TokenVerificationError
    from funcmcp.compat import TokenVerifier as TokenVerifier
    from funcmcp.compat import require_roles as require_roles
    from funcmcp.compat import require_scopes as require_scopes
    from funcmcp.compat import restrict_tag as restrict_tag
    from funcmcp.compat import run_auth_checks as run_auth_checks
    from funcmcp.compat.fastmcp.server.auth import auth as auth
    from funcmcp.compat.fastmcp.server.auth import authorization as authorization
    from funcmcp.compat.fastmcp.server.auth import cimd as cimd
    from funcmcp.compat.fastmcp.server.auth import handlers as handlers
    from funcmcp.compat.fastmcp.server.auth import identity_assertion as identity_assertion
    from funcmcp.compat.fastmcp.server.auth import jwt_issuer as jwt_issuer
    from funcmcp.compat.fastmcp.server.auth import middleware as middleware
    from funcmcp.compat.fastmcp.server.auth import oauth_proxy as oauth_proxy
    from funcmcp.compat.fastmcp.server.auth import oidc_proxy as oidc_proxy
    from funcmcp.compat.fastmcp.server.auth import providers as providers
    from funcmcp.compat.fastmcp.server.auth import redirect_validation as redirect_validation
    from funcmcp.compat.fastmcp.server.auth import ssrf as ssrf
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AccessToken",
            "AuthCheck",
            "AuthContext",
            "AuthProvider",
            "DebugTokenVerifier",
            "JWTVerifier",
            "MultiAuth",
            "OAuthProxy",
            "OIDCProxy",
            "RemoteAuthProvider",
            "StaticTokenVerifier",
            "TokenVerificationError",
            "TokenVerifier",
            "require_roles",
            "require_scopes",
            "restrict_tag",
            "run_auth_checks",
        ],
    })
