"""The claims of a token: rules for them, and the principal that they name.

Source: RFC 7519 section 4.1 (registered claims), RFC 8707 and RFC 9068 section 4 (audience, issuer, `typ`),
RFC 8725 sections 3.8 to 3.12; MCP "basic/authorization", "Token Handling".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from funcmcp._auth.principal import Principal
from funcmcp._auth.tokens.compact import TokenError
from funcmcp._auth.tokens.keys import ALGORITHMS, SHARED_SECRET_ALGORITHMS
from funcmcp._objects.public_names import public

ClaimPath: TypeAlias = str | Sequence[str]
"""The name of a claim, or the path to a claim that is in another one: names with dots between them, or a tuple."""

_MAX_LEEWAY = 300.0
_MAX_TIME = 2**53  # larger integers are not exact in every JSON implementation
_ID_TOKEN_CLAIMS = ("nonce", "at_hash", "c_hash")
_ID_TOKEN_MARKS = {"typ": "ID", "token_use": "id"}
"""Claims with which Keycloak and Cognito mark ID tokens."""


@public("funcmcp.auth")
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """Rules for tokens, in addition to their issuer and audience.

    Attributes:
        algorithms: Accepted signature algorithms (RFC 7518).
        types: Accepted media types (``typ``), without ``application/``. Add ``"JWT"`` for an issuer whose access tokens
            have this type or none. Tokens with the marks of ID tokens are rejected in any case.
        leeway: Maximum difference between the clocks of the issuer and of the server, in seconds, at most 300.
        required: Required claims with their values. None: any value.
        any_of: Groups of claims. A token needs at least one claim of each group, and its value must not be empty.
        roles_claim: The claim with the roles, a list of strings or one string. A claim in another one is named by a
            path with dots, such as ``"realm_access.roles"``, or by a tuple if a name in the path has a dot itself.
        scope_claims: The claims with the scopes: strings with a space between scopes, or lists. Auth0 writes the rights
            of users into ``"permissions"``, Entra ID those of programs into ``"roles"``. A path is as in `roles_claim`.
        scope_prefix: How the issuer begins the scopes of this server, such as ``"https://orders.example.com/"`` at
            Cognito. Scopes are read without it, and scopes that begin otherwise are left out.
        subject_claims: The claims that may name the subject, the first one that the token has. With
            ``("sub", "client_id")``, a program whose token has no ``sub`` is the subject itself.
        clients_without_audience: Clients (``client_id``) whose tokens need no ``aud``, for issuers that write none,
            such as Cognito. Tokens that have an ``aud`` are for this server only if they say so. None by default.
    """

    algorithms: Sequence[str] = ("RS256", "ES256")
    types: Sequence[str] = ("at+jwt",)
    leeway: float = 60.0
    required: Mapping[str, object] = field(default_factory=dict)
    any_of: Sequence[Sequence[str]] = ()
    roles_claim: ClaimPath = "roles"
    scope_claims: Sequence[ClaimPath] = ("scope", "scp")
    scope_prefix: str = ""
    subject_claims: Sequence[str] = ("sub",)
    clients_without_audience: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("algorithms", "types", "scope_claims", "subject_claims", "clients_without_audience"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"TokenRules.{name} is a list of strings, not one string.")
        if any(isinstance(group, str) for group in self.any_of):
            raise TypeError("TokenRules.any_of is a list of lists of strings.")
        unknown = set(self.algorithms) - ALGORITHMS
        if unknown or not self.algorithms:
            raise ValueError(f"TokenRules.algorithms must be one or more of {sorted(ALGORITHMS)}.")
        if 0 < len(SHARED_SECRET_ALGORITHMS.intersection(self.algorithms)) < len(set(self.algorithms)):
            raise ValueError("TokenRules.algorithms can't have both algorithms of secrets (HS...) and of public keys.")
        if not 0.0 <= self.leeway <= _MAX_LEEWAY:
            raise ValueError(f"TokenRules.leeway must be between 0 and {_MAX_LEEWAY:.0f} seconds.")
        object.__setattr__(self, "types", tuple(kind.lower().removeprefix("application/") for kind in self.types))

    def check_type(self, kind: str | None) -> None:
        """Raise TokenError unless tokens of a type are accepted. A token without a type has the type JWT."""
        if (kind or "jwt") not in self.types:
            raise TokenError(f"The type (typ) of the token must be {' or '.join(self.types)}.")

    def check(self, claims: Mapping[str, Any], now: float) -> float:
        """Return the expiry of the token in seconds since 1970; raise TokenError if the claims are invalid now."""
        end = _time(claims, "exp")
        start = _time(claims, "nbf")
        _time(claims, "iat")
        if end is None:
            raise TokenError("The token has no expiry.")
        if now >= end + self.leeway:
            raise TokenError("The token has expired.")
        if start is not None and now < start - self.leeway:
            raise TokenError("The token is not valid yet.")
        if _is_id_token(claims):
            raise TokenError("The token is an ID token, not an access token.")
        for name, value in self.required.items():
            if claims.get(name) is None or (value is not None and claims[name] != value):
                raise TokenError(f"The token lacks the claim {name}, or has another value of it than required.")
        for group in self.any_of:
            if not any(claims.get(name) for name in group):
                raise TokenError(f"The token has none of the claims {', '.join(group)}.")
        return end

    def principal(self, claims: Mapping[str, Any]) -> Principal:
        """Return the principal in the claims; raise TokenError if a claim is missing or invalid."""
        return Principal(
            subject=self._subject(claims),
            issuer=claims["iss"],
            client_id=_first_text(claims, "client_id", "azp", "appid") or "",
            scopes=self._scopes(claims),
            roles=_roles(claim_at(claims, self.roles_claim)),
            claims=claims,
            name=_first_text(claims, "name", "preferred_username"),
        )

    def _subject(self, claims: Mapping[str, Any]) -> str:
        subject = next((claims[name] for name in self.subject_claims if claims.get(name) is not None), None)
        if not isinstance(subject, str) or not subject:
            raise TokenError("The token has no subject.")
        return subject

    def _scopes(self, claims: Mapping[str, Any]) -> frozenset[str]:
        scopes = frozenset[str]().union(*(_words(claim_at(claims, path)) for path in self.scope_claims))
        prefix = self.scope_prefix
        return frozenset(scope.removeprefix(prefix) for scope in scopes if scope.startswith(prefix)) - {""}


def _is_id_token(claims: Mapping[str, Any]) -> bool:
    if any(name in claims for name in _ID_TOKEN_CLAIMS):
        return True
    return any(claims.get(name) == kind for name, kind in _ID_TOKEN_MARKS.items())


def claim_at(claims: Mapping[str, Any], path: ClaimPath) -> Any:
    """Return the claim at a path; None if it is missing.

    Args:
        claims: The claims.
        path: The name of a claim; the names of nested claims with dots between them; or a tuple of these names. A
            claim whose name is the whole text comes first, because names such as ``"https://example.com/roles"`` have
            dots themselves.
    """
    if isinstance(path, str):
        if path in claims:
            return claims[path]
        path = path.split(".")
    value: Any = claims
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def check_issuer(claims: Mapping[str, Any], issuers: frozenset[str]) -> None:
    """Raise TokenError unless ``iss`` is exactly one of the issuers."""
    issuer = claims.get("iss")
    if not isinstance(issuer, str) or issuer not in issuers:
        raise TokenError("The server does not accept the issuer of the token.")


def check_audience(
    claims: Mapping[str, Any], audiences: frozenset[str], clients_without_audience: Sequence[str] = ()
) -> None:
    """Raise TokenError unless ``aud`` has one of the audiences. A slash at the end is ignored.

    Args:
        claims: The claims of the token.
        audiences: Audiences without a slash at the end.
        clients_without_audience: Clients whose tokens need no ``aud``. A token that has one is checked as any other.
    """
    if "aud" not in claims and clients_without_audience:
        if claims.get("client_id") not in clients_without_audience:
            raise TokenError("The token has no audience, and is of another client.")
        return
    names = claims.get("aud")
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TokenError("The token has no audience.")
    if audiences.isdisjoint(name.removesuffix("/") for name in names):
        raise TokenError("The token is for another audience.")


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a NumericDate, a finite number (RFC 7519 section 2), or None if the claim is missing."""
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MAX_TIME < value < _MAX_TIME:
        raise TokenError("A time in the token is not a number.")
    return value


def _words(value: object) -> frozenset[str]:
    """Return the words of a claim: a text with spaces between words, or a list of words."""
    return _texts(value.split(" ") if isinstance(value, str) else value)


def _roles(value: object) -> frozenset[str]:
    """Return the roles in a claim. A string is one role, as AD FS writes it, and may have spaces."""
    return _texts([value] if isinstance(value, str) else value)


def _texts(value: object) -> frozenset[str]:
    """Return the texts of a list that are not empty; none for a missing claim."""
    texts = [] if value is None else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TokenError("A claim of the token is neither a string nor a list of strings.")
    return frozenset(text for text in texts if text)


def _first_text(claims: Mapping[str, Any], *names: str) -> str | None:
    for name in names:
        value = claims.get(name)
        if isinstance(value, str) and value:
            return value
    return None
