"""Who calls the server: authenticators, and what callers may do.

An authenticator is an async function from the headers of a request to a `Principal`, a `Challenge` or None. `APIKeys`,
`BearerTokens`, `Introspection`, `EasyAuth`, `OAuthProxy` and what `entra` returns are authenticators; `first_of`
combines several. Pass one to ``MCPServer(auth=...)``, or `Auth` with an authenticator and more options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._auth.api_key import APIKeys
    from funcmcp._auth.authenticator import Authenticator, Challenge, UnavailableError, first_of
    from funcmcp._auth.easy_auth import EasyAuth
    from funcmcp._auth.entra_id import entra
    from funcmcp._auth.grants import Grant, GrantProvider
    from funcmcp._auth.policy import Auth
    from funcmcp._auth.principal import Principal, UpstreamTokenError, VerifiedToken
    from funcmcp._auth.protected_resource import ProtectedResource, unauthorized
    from funcmcp._auth.tokens.bearer import BearerTokens
    from funcmcp._auth.tokens.claims import TokenRules
    from funcmcp._auth.tokens.introspection import Introspection
    from funcmcp._auth.tokens.jwks import JWKS
    from funcmcp._auth.tokens.keys import StaticKeys
    from funcmcp._oauth_proxy.certificates import ClientCertificate
    from funcmcp._oauth_proxy.clients import ClientWithSecret
    from funcmcp._oauth_proxy.entra import EntraID, ManagedIdentity
    from funcmcp._oauth_proxy.github import GitHub
    from funcmcp._oauth_proxy.google import Google
    from funcmcp._oauth_proxy.oauth2 import OAuth2
    from funcmcp._oauth_proxy.oidc import OIDC
    from funcmcp._oauth_proxy.programs import Program
    from funcmcp._oauth_proxy.proxy import OAuthProxy
    from funcmcp._oauth_proxy.upstream import (
        AuthorizationRequest,
        ClaimsRequest,
        IssuedToken,
        SignIn,
        Upstream,
        UpstreamError,
        UpstreamHTTP,
        UpstreamMisconfiguredError,
        UpstreamRefusedError,
        UpstreamUnavailableError,
        User,
    )

__all__ = [
    "JWKS",
    "OIDC",
    "APIKeys",
    "Auth",
    "Authenticator",
    "AuthorizationRequest",
    "BearerTokens",
    "Challenge",
    "ClaimsRequest",
    "ClientCertificate",
    "ClientWithSecret",
    "EasyAuth",
    "EntraID",
    "GitHub",
    "Google",
    "Grant",
    "GrantProvider",
    "Introspection",
    "IssuedToken",
    "ManagedIdentity",
    "OAuth2",
    "OAuthProxy",
    "Principal",
    "Program",
    "ProtectedResource",
    "SignIn",
    "StaticKeys",
    "TokenRules",
    "UnavailableError",
    "Upstream",
    "UpstreamError",
    "UpstreamHTTP",
    "UpstreamMisconfiguredError",
    "UpstreamRefusedError",
    "UpstreamTokenError",
    "UpstreamUnavailableError",
    "User",
    "VerifiedToken",
    "entra",
    "first_of",
    "unauthorized",
]

_HOMES = {
    "_auth.api_key": ["APIKeys"],
    "_auth.authenticator": ["Authenticator", "Challenge", "UnavailableError", "first_of"],
    "_auth.easy_auth": ["EasyAuth"],
    "_auth.entra_id": ["entra"],
    "_auth.grants": ["Grant", "GrantProvider"],
    "_auth.policy": ["Auth"],
    "_auth.principal": ["Principal", "UpstreamTokenError", "VerifiedToken"],
    "_auth.protected_resource": ["ProtectedResource", "unauthorized"],
    "_auth.tokens.bearer": ["BearerTokens"],
    "_auth.tokens.claims": ["TokenRules"],
    "_auth.tokens.introspection": ["Introspection"],
    "_auth.tokens.jwks": ["JWKS"],
    "_auth.tokens.keys": ["StaticKeys"],
    "_oauth_proxy.certificates": ["ClientCertificate"],
    "_oauth_proxy.entra": ["EntraID", "ManagedIdentity"],
    "_oauth_proxy.github": ["GitHub"],
    "_oauth_proxy.clients": ["ClientWithSecret"],
    "_oauth_proxy.google": ["Google"],
    "_oauth_proxy.oauth2": ["OAuth2"],
    "_oauth_proxy.oidc": ["OIDC"],
    "_oauth_proxy.programs": ["Program"],
    "_oauth_proxy.proxy": ["OAuthProxy"],
    "_oauth_proxy.upstream": [
        "AuthorizationRequest",
        "ClaimsRequest",
        "IssuedToken",
        "ClaimsRequest",
        "SignIn",
        "Upstream",
        "UpstreamError",
        "UpstreamHTTP",
        "UpstreamMisconfiguredError",
        "UpstreamRefusedError",
        "UpstreamUnavailableError",
        "User",
    ],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
