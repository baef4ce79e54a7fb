"""ID tokens of an OpenID provider, with which a sign-in ends.

Source: OpenID Connect Core 1.0 sections 2 and 3.1.3.7 (validation), 5.1 (`email_verified`), 12.2 (ID tokens of a
refresh); RFC 8725 (algorithms).
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

from funcmcp._auth.tokens.compact import MissingKeyError, TokenError, read, read_object
from funcmcp._auth.tokens.keys import ALGORITHMS, SHARED_SECRET_ALGORITHMS

if TYPE_CHECKING:
    from funcmcp._auth.tokens.keys import KeySource

_ACCEPTED = ALGORITHMS - SHARED_SECRET_ALGORITHMS
_LEEWAY = 60.0
_MAX_TIME = 2**53


class IDTokens:
    """Validates the ID tokens of one issuer for one client.

    Args:
        issuer: The exact ``iss``.
        client_id: The id of the proxy at the issuer.
        keys: The keys of the issuer.
        requires_nonce: Whether a token without a nonce is of another sign-in. A wrong nonce always is.
    """

    def __init__(self, issuer: str, client_id: str, keys: KeySource, *, requires_nonce: bool = True) -> None:
        self._issuer = issuer
        self._client_id = client_id
        self._keys = keys
        self._requires_nonce = requires_nonce

    async def validate(self, token: object, now: float, *, nonce: str | None) -> dict[str, Any]:
        """Return the claims of a token.

        Args:
            token: The ID token.
            now: Seconds since 1970.
            nonce: The nonce of the sign-in; None for the token of a refresh, which need not have one.

        Raises:
            TokenError: The token is not valid.
            MissingKeyError: It may be valid, but its key is not available.
        """
        if not isinstance(token, str):
            raise TokenError("The answer has no ID token.")
        signed = read(token)
        if signed.algorithm not in _ACCEPTED:
            raise TokenError("The ID token has an algorithm that the server does not accept.")
        claims = read_object(signed.payload, "payload")
        self._check_parties(claims)
        _check_times(claims, now)
        if nonce is not None and (self._requires_nonce or "nonce" in claims) and not _equal(claims.get("nonce"), nonce):
            raise TokenError("The ID token is of another sign-in.")
        keys = await self._keys.find(signed)
        if not keys:
            raise MissingKeyError("The key of the ID token is not available.")
        if not any(key.verifies(signed) for key in keys):
            raise TokenError("The signature of the ID token is invalid.")
        return claims

    def _check_parties(self, claims: dict[str, Any]) -> None:
        if claims.get("iss") != self._issuer:
            raise TokenError("The ID token has another issuer.")
        audience = claims.get("aud")
        audiences = [audience] if isinstance(audience, str) else audience
        if not isinstance(audiences, list) or self._client_id not in audiences:
            raise TokenError("The ID token is for another client.")
        party = claims.get("azp")
        if (party is not None or len(audiences) > 1) and party != self._client_id:
            raise TokenError("The ID token was issued to another client.")
        subject = claims.get("sub")
        if not isinstance(subject, str) or not subject:
            raise TokenError("The ID token has no subject.")


def _check_times(claims: dict[str, Any], now: float) -> None:
    end, issued = claims.get("exp"), claims.get("iat")
    for time in (end, issued):
        if isinstance(time, bool) or not isinstance(time, int | float) or not 0 < time < _MAX_TIME:
            raise TokenError("The ID token has no time of issue or no expiry.")
    if now >= claims["exp"] + _LEEWAY:
        raise TokenError("The ID token has expired.")
    if now < claims["iat"] - _LEEWAY:
        raise TokenError("The ID token was issued in the future.")


def _equal(value: object, expected: str) -> bool:
    return isinstance(value, str) and hmac.compare_digest(value.encode(), expected.encode())


def text_claim(claims: dict[str, Any], *names: str) -> str | None:
    """Return the first of some claims that is a text; None if there is none."""
    for name in names:
        value = claims.get(name)
        if isinstance(value, str) and value:
            return value[:200]
    return None


def verified_email(claims: dict[str, Any]) -> str | None:
    """Return the e-mail address, if the issuer says that it has verified it."""
    return text_claim(claims, "email") if claims.get("email_verified") is True else None


def texts_claim(claims: dict[str, Any], name: str) -> frozenset[str]:
    """Return a claim that is a list of texts; an empty set for any other value."""
    value = claims.get(name)
    if not isinstance(value, list):
        return frozenset()
    return frozenset(text for text in value if isinstance(text, str) and text)
