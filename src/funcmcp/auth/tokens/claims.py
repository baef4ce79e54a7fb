"""What the claims of a token must say, and whom they then name.

Source: RFC 7519 section 4.1 (registered claims), RFC 8707 and RFC 9068 section 4 (audience, issuer, `typ`),
RFC 8725 sections 3.8 to 3.12; MCP "basic/authorization", "Token Handling".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp.auth.principal import Principal
from funcmcp.auth.tokens.compact import TokenError
from funcmcp.auth.tokens.keys import ALGORITHMS, SHARED_SECRET_ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LONGEST_LEEWAY = 300.0
_LATEST = 2**53  # what every implementation can hold
_OF_ID_TOKENS = ("nonce", "at_hash", "c_hash")
_KINDS_OF_ID_TOKENS = {"typ": "ID", "token_use": "id"}
"""How two widespread authorization servers (Keycloak, Cognito) mark theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """What is demanded of tokens beside their issuer and audience.

    Attributes:
        algorithms: the signature algorithms (RFC 7518) that are accepted.
        types: the media types (`typ`) that are accepted, without ``application/``. Add ``"JWT"`` for an issuer whose
            access tokens have that type or none; tokens that show to be ID tokens are refused then as well.
        leeway: seconds, at most 300, by which the issuer's clock may differ.
        required: claims that must be there, with the value that each must have or None for any.
        any_of: groups of claims; of each group at least one must be there, with something in it.
        roles_claim: the claim that holds the roles, as a list of strings.
    """

    algorithms: Sequence[str] = ("RS256", "ES256")
    types: Sequence[str] = ("at+jwt",)
    leeway: float = 60.0
    required: Mapping[str, object] = field(default_factory=dict)
    any_of: Sequence[Sequence[str]] = ()
    roles_claim: str = "roles"

    def __post_init__(self) -> None:
        for name in ("algorithms", "types"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"TokenRules.{name} is a list of strings, not one string.")
        if any(isinstance(group, str) for group in self.any_of):
            raise TypeError("TokenRules.any_of is a list of lists of strings.")
        unknown = set(self.algorithms) - ALGORITHMS
        if unknown or not self.algorithms:
            raise ValueError(f"TokenRules.algorithms are some of {sorted(ALGORITHMS)}.")
        if 0 < len(SHARED_SECRET_ALGORITHMS.intersection(self.algorithms)) < len(set(self.algorithms)):
            raise ValueError("Algorithms of secrets (HS...) and of public keys don't go together.")
        if not 0.0 <= self.leeway <= _LONGEST_LEEWAY:
            raise ValueError(f"TokenRules.leeway is between 0 and {_LONGEST_LEEWAY:.0f} seconds.")
        object.__setattr__(self, "types", tuple(kind.lower().removeprefix("application/") for kind in self.types))

    def check_type(self, kind: str | None) -> None:
        """Raise TokenError unless tokens of a type are accepted; one without a type is as one of type JWT."""
        if (kind or "jwt") not in self.types:
            raise TokenError("The token is not of a type that is accepted here.")

    def check(self, claims: Mapping[str, Any], now: float) -> float:
        """Return when the token ends, in seconds since 1970; raise TokenError unless it is good now."""
        end = _time(claims, "exp")
        start = _time(claims, "nbf")
        _time(claims, "iat")
        if end is None:
            raise TokenError("The token has no end.")
        if now >= end + self.leeway:
            raise TokenError("The token has expired.")
        if start is not None and now < start - self.leeway:
            raise TokenError("The token is not valid yet.")
        if any(name in claims for name in _OF_ID_TOKENS) or any(
            claims.get(name) == kind for name, kind in _KINDS_OF_ID_TOKENS.items()
        ):
            raise TokenError("The token is an ID token, not an access token.")
        for name, value in self.required.items():
            if claims.get(name) is None or (value is not None and claims[name] != value):
                raise TokenError("The token lacks a claim that is required here.")
        if not all(any(claims.get(name) for name in group) for group in self.any_of):
            raise TokenError("The token lacks a claim that is required here.")
        return end

    def principal(self, claims: Mapping[str, Any]) -> Principal:
        """Return whom the claims name; raise TokenError if they name nobody or are not as they have to be."""
        subject = claims.get("sub")
        if not isinstance(subject, str) or not subject:
            raise TokenError("The token has no subject.")
        return Principal(
            subject=subject,
            issuer=claims["iss"],
            client_id=_first_text(claims, "client_id", "azp", "appid") or "",
            scopes=_words(claims, "scope") | _words(claims, "scp"),
            roles=_words(claims, self.roles_claim),
            claims=claims,
            name=_first_text(claims, "name", "preferred_username"),
        )


def check_issuer(claims: Mapping[str, Any], issuers: frozenset[str]) -> None:
    """Raise TokenError unless the token is from one of the issuers, exactly as they are written."""
    issuer = claims.get("iss")
    if not isinstance(issuer, str) or issuer not in issuers:
        raise TokenError("The token is from an issuer that is not accepted here.")


def check_audience(claims: Mapping[str, Any], audiences: frozenset[str]) -> None:
    """Raise TokenError unless the token is for one of the audiences, which are given without a slash at the end."""
    given = claims.get("aud")
    named = [given] if isinstance(given, str) else given
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise TokenError("The token has no audience.")
    if audiences.isdisjoint(name.removesuffix("/") for name in named):
        raise TokenError("The token is for another audience.")


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a NumericDate, which is a finite number (RFC 7519 section 2) and neither true nor a string."""
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LATEST < value < _LATEST:
        raise TokenError("A time in the token is no number.")
    return value


def _words(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """Return a claim that is one text with spaces between the words, or a list of words."""
    value = claims.get(name)
    if value is None:
        return frozenset()
    words = value.split(" ") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise TokenError("A claim of the token is neither a text nor a list of texts.")
    return frozenset(word for word in words if word)


def _first_text(claims: Mapping[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := claims.get(name), str) and value), None)
