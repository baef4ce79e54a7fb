"""Who calls the server: authenticators, and what callers may do.

An authenticator is an async function from the headers of a request to a `Principal`, a `Challenge` or None. `APIKeys`,
`BearerTokens`, `EasyAuth` and what `entra` returns are authenticators; `first_of` combines several. Pass one to
``MCPServer(auth=...)``, or `Auth` with an authenticator and more options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp.lazy_names import lazy_names

if TYPE_CHECKING:
    from funcmcp.auth.api_key import APIKeys
    from funcmcp.auth.authenticator import Authenticator, Challenge, first_of
    from funcmcp.auth.easy_auth import EasyAuth
    from funcmcp.auth.entra_id import entra
    from funcmcp.auth.policy import Auth
    from funcmcp.auth.principal import Principal
    from funcmcp.auth.protected_resource import ProtectedResource, unauthorized
    from funcmcp.auth.tokens.bearer import BearerTokens
    from funcmcp.auth.tokens.claims import TokenRules
    from funcmcp.auth.tokens.jwks import JWKS
    from funcmcp.auth.tokens.keys import StaticKeys

__all__ = [
    "JWKS",
    "APIKeys",
    "Auth",
    "Authenticator",
    "BearerTokens",
    "Challenge",
    "EasyAuth",
    "Principal",
    "ProtectedResource",
    "StaticKeys",
    "TokenRules",
    "entra",
    "first_of",
    "unauthorized",
]

_HOMES = {
    "auth.api_key": ["APIKeys"],
    "auth.authenticator": ["Authenticator", "Challenge", "first_of"],
    "auth.easy_auth": ["EasyAuth"],
    "auth.entra_id": ["entra"],
    "auth.policy": ["Auth"],
    "auth.principal": ["Principal"],
    "auth.protected_resource": ["ProtectedResource", "unauthorized"],
    "auth.tokens.bearer": ["BearerTokens"],
    "auth.tokens.claims": ["TokenRules"],
    "auth.tokens.jwks": ["JWKS"],
    "auth.tokens.keys": ["StaticKeys"],
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
