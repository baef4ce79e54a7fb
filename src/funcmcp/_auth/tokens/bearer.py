"""Bearer tokens that are signed JSON Web Tokens.

How it works: a token is parsed without being trusted. Everything that needs no key is checked first (algorithm, type,
issuer, audience, time), so that a token for another server never causes a request for keys. Then one of the issuer's
keys has to verify the signature. A valid token is cached for a short time, with its principal, by the
digest of the value that the Authorization header usually has for it.

Source: RFC 6750 section 2.1 (only the Authorization header counts; MCP forbids the query string), RFC 7519,
RFC 8725, RFC 9068; MCP "basic/authorization", "Token Handling".
"""

from __future__ import annotations

import logging
from dataclasses import replace
from hashlib import sha256
from time import time
from typing import TYPE_CHECKING

from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.principal import VerifiedToken
from funcmcp._auth.tokens.claims import TokenRules, check_audience, check_issuer
from funcmcp._auth.tokens.compact import TokenError, read, read_object
from funcmcp._auth.tokens.keys import SHARED_SECRET_ALGORITHMS, StaticKeys
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._auth.tokens.keys import KeySource

_logger = logging.getLogger("funcmcp")

_PREFIX = b"Bearer "
_CACHE_SIZE = 4096
_CACHE_SECONDS = 240.0
"""Seconds after which a token is verified again. A withdrawn key may verify tokens for 335 seconds (the lifetime of
keys, a pause and a request for keys). With the cache, its tokens are rejected within ten minutes."""


@public("funcmcp.auth")
class BearerTokens:
    """An authenticator for tokens that an issuer has signed for this server.

    Args:
        issuer: The exact ``iss`` of tokens. Issuers that share their keys may be several.
        audience: The ``aud`` of tokens for this server, usually its URL. A server may have several.
        keys: The keys of the issuer: ``JWKS(url)`` or ``StaticKeys(...)``.
        rules: Rules for the tokens.
        clock: A function that returns seconds since 1970.

    Raises:
        ValueError: There is no issuer or no audience, or the algorithms don't match the keys.
    """

    def __init__(
        self,
        issuer: str | Sequence[str],
        audience: str | Sequence[str],
        *,
        keys: KeySource,
        rules: TokenRules | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        self._issuers = _names("issuer", issuer)
        self._audiences = frozenset(name.removesuffix("/") for name in _names("audience", audience))
        self._keys = keys
        self._rules = rules or TokenRules()
        self._clock = clock
        self._algorithms = frozenset(self._rules.algorithms)
        secret = isinstance(keys, StaticKeys) and keys.secret
        if secret == self._algorithms.isdisjoint(SHARED_SECRET_ALGORITHMS):
            raise ValueError("Algorithms HS... require secrets in StaticKeys, and secrets require these algorithms.")
        self._verified: dict[bytes, tuple[Principal, float]] = {}

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        """Return the caller of the token, a challenge for an invalid token, or None without a bearer token."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token.strip(" ")
        if not token or " " in token:
            return Challenge("invalid_request", "The Authorization header is not 'Bearer' with one token.")
        digest = sha256(_PREFIX + token.encode("utf-8", "surrogatepass")).digest()
        principal = self.recall(digest)
        if principal is not None:
            return principal
        now = self._clock()
        try:
            principal, end = await self._check(token, now)
        except TokenError as error:
            return Challenge("invalid_token", str(error))
        except Exception as error:  # noqa: BLE001 - a token that makes a library fail is rejected
            _logger.warning("event=token_check_failed exception=%s", type(error).__name__)
            return Challenge("invalid_token", "The token can't be verified.")
        self._remember(digest, principal, min(end, now + _CACHE_SECONDS))
        return principal

    def recall(self, digest: bytes) -> Principal | None:
        """Return the caller of an Authorization header whose token is in the cache; None to call the authenticator.

        Args:
            digest: The SHA-256 digest of the value of the header.
        """
        cached = self._verified.get(digest)
        if cached is None or self._clock() >= cached[1]:
            return None
        return cached[0]

    async def _check(self, token: str, now: float) -> tuple[Principal, float]:
        """Return the caller and the expiry of a token; raise TokenError if the token is invalid."""
        signed = read(token)
        if signed.algorithm not in self._algorithms:
            raise TokenError("The server does not accept the algorithm of the token.")
        self._rules.check_type(signed.type)
        claims = read_object(signed.payload, "payload")
        check_issuer(claims, self._issuers)
        check_audience(claims, self._audiences)
        end = self._rules.check(claims, now)
        principal = self._rules.principal(claims)
        if not any(key.verifies(signed) for key in await self._keys.find(signed)):
            raise TokenError("The signature of the token is invalid.")
        return replace(principal, verified_token=VerifiedToken(token)), end

    def _remember(self, digest: bytes, principal: Principal, end: float) -> None:
        """Cache a valid token, in place of the oldest one if the cache is full."""
        if len(self._verified) >= _CACHE_SIZE:
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = principal, end


def _names(parameter: str, values: str | Sequence[str]) -> frozenset[str]:
    names = frozenset([values] if isinstance(values, str) else values)
    if not names or "" in names:
        raise ValueError(f"BearerTokens needs an {parameter}. Without it, tokens for other servers would be accepted.")
    return names
