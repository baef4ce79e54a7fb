"""Token verifiers of other frameworks as authenticators of funcmcp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.auth.authenticator import Challenge
from funcmcp.auth.policy import Auth
from funcmcp.auth.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp.auth.authenticator import Authenticator, Identity

_ADVICE = "Use auth= with an authenticator of funcmcp.auth, such as BearerTokens; see docs/guides/authentication.md."


def native_auth(auth: Any, token_verifier: Any) -> Auth | Authenticator | None:
    """Return the authenticator for the options of a server; None if it has none.

    Args:
        auth: An authenticator of funcmcp, an object with ``verify_token``, or settings of the official SDK.
        token_verifier: An object with ``verify_token``.

    Raises:
        TypeError: funcmcp has nothing for it. A server with auth must not start without it.
    """
    if auth is None and token_verifier is None:
        return None
    if isinstance(auth, Auth):
        return auth
    verifier = token_verifier if token_verifier is not None else auth
    if hasattr(verifier, "verify_token"):
        scopes = getattr(auth, "required_scopes", None) or getattr(verifier, "required_scopes", None) or ()
        return Auth(_authenticator(verifier), scopes=tuple(scopes), lists="closed")
    if callable(auth):
        return auth  # type: ignore[no-any-return] # an authenticator is a function
    raise TypeError(f"auth={type(auth).__name__} has no method verify_token. {_ADVICE}")


def _authenticator(verifier: Any) -> Authenticator:
    """Return an authenticator for an object whose ``verify_token`` returns an access token or None."""

    async def authenticate(headers: Mapping[str, str]) -> Identity:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        access = await verifier.verify_token(token.strip())
        if access is None:
            return Challenge("invalid_token", "The token is invalid or has expired.")
        claims = dict(getattr(access, "claims", None) or {})
        client_id = str(access.client_id)
        return Principal(
            subject=str(claims.get("sub") or getattr(access, "subject", None) or client_id),
            issuer=str(claims.get("iss") or type(verifier).__name__),
            client_id=client_id,
            scopes=frozenset(access.scopes or ()),
            claims=claims,
        )

    return authenticate


class StaticTokenVerifier:
    """Accepts the tokens of a dict, for tests.

    Args:
        tokens: The claims by token: ``client_id``, ``scopes`` and others.
        required_scopes: Scopes that every caller needs.
    """

    def __init__(self, tokens: Mapping[str, Mapping[str, Any]], required_scopes: list[str] | None = None) -> None:
        self.tokens = tokens
        self.required_scopes = required_scopes

    async def verify_token(self, token: str) -> Any:
        """Return the access token, or None if the token is unknown."""
        claims = self.tokens.get(token)
        return None if claims is None else VerifiedToken(token, claims)


class AuthProvider:
    """The base class of verifiers under its name in FastMCP."""

    def __init__(self, required_scopes: list[str] | None = None, **_: Any) -> None:
        self.required_scopes = required_scopes

    async def verify_token(self, token: str) -> Any:
        """Return the access token, or None if the token is invalid."""
        raise NotImplementedError


class TokenVerifier(AuthProvider):
    """The base class of verifiers: a subclass has an async method ``verify_token``."""


class VerifiedToken:
    """An access token that a verifier has accepted."""

    def __init__(self, token: str, claims: Mapping[str, Any]) -> None:
        self.token = token
        self.client_id = str(claims.get("client_id", "client"))
        self.scopes = list(claims.get("scopes", ()))
        self.expires_at = claims.get("expires_at")
        self.claims = dict(claims)
