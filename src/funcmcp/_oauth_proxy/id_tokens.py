"""ID tokens of an OpenID provider, with which a sign-in ends, and its userinfo.

Source: OpenID Connect Core 1.0 sections 2 and 3.1.3.7 (validation), 5.1 (`email_verified`), 5.3 (userinfo), 12.2 (ID
tokens of a refresh); RFC 8725 (algorithms).
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

from funcmcp._auth.tokens.claims import claim_at
from funcmcp._auth.tokens.compact import MissingKeyError, TokenError, read, read_object
from funcmcp._auth.tokens.keys import ALGORITHMS, SHARED_SECRET_ALGORITHMS
from funcmcp._oauth_proxy.failures import (
    ID_TOKEN_ALGORITHM,
    ID_TOKEN_CLIENT,
    ID_TOKEN_ENCRYPTED,
    ID_TOKEN_ISSUER,
    ID_TOKEN_MALFORMED,
    ID_TOKEN_MISSING,
    ID_TOKEN_NO_NONCE,
    ID_TOKEN_OTHER_NONCE,
    ID_TOKEN_SIGNATURE,
    ID_TOKEN_SUBJECT,
    ID_TOKEN_TIME,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._auth.tokens.compact import SignedToken
    from funcmcp._auth.tokens.keys import KeySource
    from funcmcp._oauth_proxy.failures import Failure

ACCEPTED = ALGORITHMS - SHARED_SECRET_ALGORITHMS
"""The algorithms that ID tokens may have. With a shared secret, everybody who has it could issue them."""

_DOTS_OF_ENCRYPTED = 4
"""Dots in the compact serialization of an encrypted token (RFC 7516 section 3.1)."""

_LEEWAY = 60.0
_MAX_TIME = 2**53
_MAX_TOKEN = 192 * 1024
"""Maximum number of characters of a token. It comes in an answer of the provider, which has 256 KiB at most."""

MAX_EXACT = 255
"""Maximum number of characters of a subject (OpenID Connect Core 1.0 section 2), and of a claim that decides."""

_PAIRS = (("email", "email_verified"), ("phone_number", "phone_number_verified"))
"""Claims, and the claims that say whether they are verified."""


class IDTokenError(TokenError):
    """An ID token is invalid.

    Args:
        failure: Why.
        detail: What is special about this token, without secrets; "" for nothing.
    """

    def __init__(self, failure: Failure, detail: str = "") -> None:
        super().__init__(f"{failure.operator} ({detail})" if detail else failure.operator)
        self.failure = failure
        self.detail = detail


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
        signed = _read(token)
        if signed.algorithm not in ACCEPTED:
            raise IDTokenError(ID_TOKEN_ALGORITHM, f"it has {signed.algorithm!r:.40}")
        claims = read_object(signed.payload, "payload")
        self._check_parties(claims)
        _check_times(claims, now)
        _check_nonce(claims, nonce, is_required=self._requires_nonce)
        keys = await self._keys.find(signed)
        if not keys:
            raise MissingKeyError("The key of the ID token is not available.")
        if not any(key.verifies(signed) for key in keys):
            raise IDTokenError(ID_TOKEN_SIGNATURE)
        return claims

    async def userinfo(self, body: bytes, subject: str) -> dict[str, Any]:
        """Return the claims in an answer of the userinfo endpoint: JSON, or a signed token.

        Args:
            body: The body of the answer.
            subject: The ``sub`` of the ID token, which the answer must have (section 5.3.2).

        Raises:
            TokenError: The answer is not valid.
            MissingKeyError: It may be valid, but its key is not available.
        """
        text = body.strip()
        if text.startswith(b"{"):
            claims = read_object(text, "userinfo")
        else:
            claims = await self._signed_userinfo(text.decode("ascii", "replace"))
        if not _equal(claims.get("sub"), subject):
            raise TokenError("The userinfo is of another user than the ID token.")
        return claims

    async def _signed_userinfo(self, token: str) -> dict[str, Any]:
        if token.count(".") == _DOTS_OF_ENCRYPTED:
            raise TokenError("The userinfo is encrypted. Let the provider send JSON, or sign it only.")
        signed = read(token, _MAX_TOKEN)
        if signed.algorithm not in ACCEPTED:
            raise TokenError("The userinfo has an algorithm that the server does not accept.")
        claims = read_object(signed.payload, "payload")
        if claims.get("iss", self._issuer) != self._issuer:
            raise TokenError("The userinfo has another issuer.")
        audience = claims.get("aud", self._client_id)
        if self._client_id not in (audience if isinstance(audience, list) else [audience]):
            raise TokenError("The userinfo is for another client.")
        keys = await self._keys.find(signed)
        if not keys:
            raise MissingKeyError("The key of the userinfo is not available.")
        if not any(key.verifies(signed) for key in keys):
            raise TokenError("The signature of the userinfo is invalid.")
        return claims

    def _check_parties(self, claims: dict[str, Any]) -> None:
        if claims.get("iss") != self._issuer:
            raise IDTokenError(ID_TOKEN_ISSUER, f"it has {claims.get('iss')!r:.200}")
        audience = claims.get("aud")
        audiences = [audience] if isinstance(audience, str) else audience
        if not isinstance(audiences, list) or self._client_id not in audiences:
            raise IDTokenError(ID_TOKEN_CLIENT, "aud is another one")
        party = claims.get("azp")
        if (party is not None or len(audiences) > 1) and party != self._client_id:
            raise IDTokenError(ID_TOKEN_CLIENT, "azp is another one")
        subject = claims.get("sub")
        if not isinstance(subject, str) or not subject:
            raise IDTokenError(ID_TOKEN_SUBJECT, f"it is of the type {type(subject).__name__}")
        if len(subject) > MAX_EXACT:
            raise IDTokenError(ID_TOKEN_SUBJECT, f"it has {len(subject)} characters, and {MAX_EXACT} are allowed")


def _check_times(claims: dict[str, Any], now: float) -> None:
    end, issued = claims.get("exp"), claims.get("iat")
    for time in (end, issued):
        if isinstance(time, bool) or not isinstance(time, int | float) or not 0 < time < _MAX_TIME:
            raise IDTokenError(ID_TOKEN_TIME, "it has no time of issue or no expiry")
    if now >= claims["exp"] + _LEEWAY:
        raise IDTokenError(ID_TOKEN_TIME, "it has expired")
    if now < claims["iat"] - _LEEWAY:
        raise IDTokenError(ID_TOKEN_TIME, "it was issued in the future")


def _read(token: object) -> SignedToken:
    """Return the parts of an ID token; raise IDTokenError if it is not a signed token."""
    if not isinstance(token, str):
        raise IDTokenError(ID_TOKEN_MISSING)
    try:
        return read(token, _MAX_TOKEN)
    except TokenError as error:
        is_encrypted = token.count(".") == _DOTS_OF_ENCRYPTED
        failure = ID_TOKEN_ENCRYPTED if is_encrypted else ID_TOKEN_MALFORMED
        raise IDTokenError(failure, str(error)) from None


def _check_nonce(claims: dict[str, Any], nonce: str | None, *, is_required: bool) -> None:
    """Raise IDTokenError unless a token has the nonce of its sign-in; None: it needs none."""
    if nonce is None:
        return
    if claims.get("nonce") is None:
        if is_required:
            raise IDTokenError(ID_TOKEN_NO_NONCE)
    elif not _equal(claims["nonce"], nonce):
        raise IDTokenError(ID_TOKEN_OTHER_NONCE)


def _equal(value: object, expected: str) -> bool:
    return isinstance(value, str) and hmac.compare_digest(value.encode(), expected.encode())


def text_claim(claims: dict[str, Any], *names: str) -> str | None:
    """Return the first of some claims that is a text, for people to read; None if there is none. A long one is cut."""
    for name in names:
        value = claims.get(name)
        if isinstance(value, str) and value:
            return value[:200]
    return None


def exact_claim(claims: Mapping[str, Any], name: str) -> str | None:
    """Return a claim by which a server decides; None if it is not a text of at most 255 printable characters.

    It is never cut: the beginning of ``somebody@example.com.evil.example`` is an address of example.com.
    """
    value = claims.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= MAX_EXACT and value.isprintable() else None


def verified_email(claims: Mapping[str, Any]) -> str | None:
    """Return the e-mail address, if the issuer says that it has verified it."""
    return exact_claim(claims, "email") if claims.get("email_verified") is True else None


def with_userinfo(claims: Mapping[str, Any], userinfo: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims of an ID token with those of userinfo that it lacks.

    Whether an address is verified counts for the address that it came with only: otherwise the verified address of one
    source would verify another address of the other one.
    """
    added = {name: value for name, value in userinfo.items() if value is not None}
    present = {name: value for name, value in claims.items() if value is not None}
    for name, mark in _PAIRS:
        if name not in present and name in added:
            present.pop(mark, None)
        elif name in present and added.get(name) != present[name]:
            added.pop(mark, None)
    return added | present


def roles_in(claims: Mapping[str, Any], path: str) -> frozenset[str] | None:
    """Return the roles in a claim, or at a path such as ``realm_access.roles``; None if they have another form.

    They are a list of texts, one text (ADFS, for a user with one role), or an object whose members are objects, with
    the roles as names (Zitadel). A claim that is missing has no roles.
    """
    value = claim_at(claims, path)
    if value is None:
        return frozenset()
    if isinstance(value, str):
        return frozenset([value] if value else [])
    if isinstance(value, dict) and all(isinstance(member, dict) for member in value.values()):
        value = list(value)
    if not isinstance(value, list):
        return None
    roles = frozenset(role for role in value if isinstance(role, str) and role)
    return roles if roles or not value else None


def texts_claim(claims: dict[str, Any], name: str) -> frozenset[str]:
    """Return a claim that is a list of texts; an empty set for any other value."""
    value = claims.get(name)
    if not isinstance(value, list):
        return frozenset()
    return frozenset(text for text in value if isinstance(text, str) and text)
