"""Bearer tokens that are signed JSON Web Tokens.

How it works: a token is parsed without being trusted. Everything that needs no key is checked first (algorithm, type,
issuer, audience, time), so that a token for another server never causes a request for keys. Then one of the issuer's
keys has to verify the signature. A valid token is cached for a short time, with its principal, by the
digest of the value that the Authorization header usually has for it.

A token that is bound to a key of the client (``cnf.jkt``) is presented with the scheme DPoP and a proof, or not at all.
The token is cached as others are, but `recall` never returns its principal: each request needs its own proof. The proof
is checked last, so that only holders of valid tokens can make the server remember proofs.

Source: RFC 6750 section 2.1 (only the Authorization header counts; MCP forbids the query string), RFC 7519,
RFC 8725, RFC 9068; RFC 9449 sections 6.1 and 7; MCP "basic/authorization", "Token Handling".
"""

from __future__ import annotations

import logging
from dataclasses import replace
from hashlib import sha256
from time import time
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from funcmcp._auth.authenticator import Challenge, ProvableHeaders
from funcmcp._auth.dpop import checked_dpop
from funcmcp._auth.principal import VerifiedToken
from funcmcp._auth.tokens.claims import TokenRules, check_audience, check_issuer
from funcmcp._auth.tokens.compact import TokenError, read, read_object
from funcmcp._auth.tokens.keys import SHARED_SECRET_ALGORITHMS, StaticKeys
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._auth.dpop import DPoP
    from funcmcp._auth.principal import Principal
    from funcmcp._auth.tokens.keys import KeySource

_logger = logging.getLogger("funcmcp")

_PREFIX = b"Bearer "
_CACHE_SIZE = 4096
_CACHE_SECONDS = 240.0
"""Seconds after which a token is verified again. A withdrawn key may verify tokens for 335 seconds (the lifetime of
keys, a pause and a request for keys). With the cache, its tokens are rejected within ten minutes."""

_NO_PROOFS: Final = "The server can't check proofs here, because a function around its authenticator hides the request."


class _Verified(NamedTuple):
    """A valid token: its caller, when it has to be verified again, and whether it is bound to a key."""

    principal: Principal
    end: float
    is_bound: bool


@public("funcmcp.auth")
class BearerTokens:
    """An authenticator for tokens that an issuer has signed for this server.

    Args:
        issuer: The exact ``iss`` of tokens. Issuers that share their keys may be several.
        audience: The ``aud`` of tokens for this server, usually its URL. A server may have several.
        keys: The keys of the issuer: ``JWKS(url)`` or ``StaticKeys(...)``.
        rules: Rules for the tokens.
        dpop: Which tokens that are bound to a key of the client are accepted (RFC 9449). ``"allowed"``: they and
            others. ``"required"``: only they. None: none. Each request with one needs a proof, and `Auth` needs
            `resource`: proofs are for its URL. A bound token is never accepted as a bearer token.
        dpop_nonces: Whether proofs need a nonce of the server, so that no proof can be made in advance. It takes one
            request more at first, and every five minutes.
        clock: A function that returns seconds since 1970.

    Attributes:
        dpop: As above.
        dpop_nonces: As above.

    Raises:
        ValueError: There is no issuer or no audience, the algorithms don't match the keys, or `dpop` has another value.
    """

    def __init__(  # noqa: PLR0913 - options by name
        self,
        issuer: str | Sequence[str],
        audience: str | Sequence[str],
        *,
        keys: KeySource,
        rules: TokenRules | None = None,
        dpop: DPoP | None = None,
        dpop_nonces: bool = False,
        clock: Callable[[], float] = time,
    ) -> None:
        self.dpop: DPoP | None = checked_dpop("BearerTokens", dpop)
        self.dpop_nonces: bool = dpop_nonces
        self._issuers = _names("issuer", issuer)
        self._audiences = frozenset(name.removesuffix("/") for name in _names("audience", audience))
        self._keys = keys
        self._rules = rules or TokenRules()
        self._clock = clock
        self._algorithms = frozenset(self._rules.algorithms)
        secret = isinstance(keys, StaticKeys) and keys.secret
        if secret == self._algorithms.isdisjoint(SHARED_SECRET_ALGORITHMS):
            raise ValueError("Algorithms HS... require secrets in StaticKeys, and secrets require these algorithms.")
        self._verified: dict[bytes, _Verified] = {}
        self._has_warned = False

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        """Return the caller of the token, a challenge for an invalid token, or None without a token."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        has_proof = self.dpop is not None and scheme.lower() == "dpop"
        if not has_proof and scheme.lower() != "bearer":
            return None
        name: Literal["Bearer", "DPoP"] = "DPoP" if has_proof else "Bearer"
        token = token.strip(" ")
        if not token or " " in token:
            return Challenge("invalid_request", f"The Authorization header is not '{name}' with one token.", name)
        try:
            verified = await self._verify(token)
        except TokenError as error:
            return Challenge("invalid_token", str(error), name)
        except Exception as error:  # noqa: BLE001 - a token that makes a library fail is rejected
            _logger.warning("event=token_check_failed exception=%s", type(error).__name__)
            return Challenge("invalid_token", "The token can't be verified.", name)
        refusal = self._refusal(verified, has_proof=has_proof)
        if refusal is None and has_proof:
            refusal = await self._check_proof(headers, token, verified.principal)
        return verified.principal if refusal is None else refusal

    def recall(self, digest: bytes) -> Principal | None:
        """Return the caller of an Authorization header whose token is in the cache; None to call the authenticator.

        Args:
            digest: The SHA-256 digest of the value of the header.
        """
        verified = self._verified.get(digest)
        if verified is None or verified.is_bound or self.dpop == "required" or self._clock() >= verified.end:
            return None
        return verified.principal

    async def _verify(self, token: str) -> _Verified:
        """Return what is known about a token; raise TokenError if the token is invalid."""
        digest = sha256(_PREFIX + token.encode("utf-8", "surrogatepass")).digest()
        verified, now = self._verified.get(digest), self._clock()
        if verified is not None and now < verified.end:
            return verified
        principal, end = await self._check(token, now)
        verified = _Verified(principal, min(end, now + _CACHE_SECONDS), _is_bound(principal))
        if len(self._verified) >= _CACHE_SIZE:  # the oldest one leaves
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = verified
        return verified

    def _refusal(self, verified: _Verified, *, has_proof: bool) -> Challenge | None:
        """Return why a valid token can't be presented in this way."""
        if verified.is_bound and not has_proof:
            text = "The token is bound to a key, so it can't be a bearer token."
            return Challenge("invalid_token", text, "Bearer" if self.dpop is None else "DPoP")
        if not verified.is_bound and (has_proof or self.dpop == "required"):
            return Challenge("invalid_token", "The token is not bound to a key (cnf.jkt).", "DPoP")
        return None

    async def _check_proof(self, headers: Mapping[str, str], token: str, principal: Principal) -> Challenge | None:
        """Return why a request has no valid proof for its token."""
        if isinstance(headers, ProvableHeaders):
            return await headers.check_proof(token, principal)
        if not self._has_warned:  # clients can cause it
            self._has_warned = True
            _logger.warning("event=dpop_unavailable: pass BearerTokens to Auth itself, or in first_of.")
        return Challenge("invalid_dpop_proof", _NO_PROOFS, "DPoP")

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


def _is_bound(principal: Principal) -> bool:
    """Return whether a token is bound to a key of the client; raise TokenError if that can't be read."""
    confirmation = principal.claims.get("cnf", {})
    if not isinstance(confirmation, dict) or not isinstance(confirmation.get("jkt", ""), str):
        raise TokenError("The confirmation (cnf) of the token is malformed.")
    return "jkt" in confirmation


def _names(parameter: str, values: str | Sequence[str]) -> frozenset[str]:
    names = frozenset([values] if isinstance(values, str) else values)
    if not names or "" in names:
        raise ValueError(f"BearerTokens needs an {parameter}. Without it, tokens for other servers would be accepted.")
    return names
