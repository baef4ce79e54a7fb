"""Bearer tokens that are signed JSON Web Tokens.

How it works: a token is parsed without being trusted. Everything that needs no key is checked first (issuer, algorithm,
type, audience, time), so that a token for another server never causes a request for keys. Then one of the issuer's keys
has to verify the signature.

Source: RFC 7519, RFC 8725, RFC 9068; MCP "basic/authorization", "Token Handling".
"""

from __future__ import annotations

from dataclasses import replace
from time import time
from typing import TYPE_CHECKING, Final

from funcmcp._auth.principal import VerifiedToken
from funcmcp._auth.tokens.claims import TokenRules, check_audience, check_issuer
from funcmcp._auth.tokens.compact import TokenError, read, read_object
from funcmcp._auth.tokens.keys import SHARED_SECRET_ALGORITHMS, StaticKeys
from funcmcp._auth.tokens.presented import PresentedTokens, checked_names
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._auth.dpop import DPoP
    from funcmcp._auth.principal import Principal
    from funcmcp._auth.tokens.keys import KeySource

_CACHE_SECONDS: Final = 240.0
"""Seconds after which a token is verified again. A withdrawn key may verify tokens for 335 seconds (the lifetime of
keys, a pause and a request for keys). With the cache, its tokens are rejected within ten minutes."""


@public("funcmcp.auth")
class BearerTokens(PresentedTokens):
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
        audiences = checked_names("BearerTokens", "audience", audience)
        super().__init__(
            checked_names("BearerTokens", "issuer", issuer),
            frozenset(name.removesuffix("/") for name in audiences),
            cache_seconds=_CACHE_SECONDS,
            dpop=dpop,
            dpop_nonces=dpop_nonces,
            clock=clock,
        )
        self._keys = keys
        self._rules = rules or TokenRules()
        self._algorithms = frozenset(self._rules.algorithms)
        secret = isinstance(keys, StaticKeys) and keys.secret
        if secret == self._algorithms.isdisjoint(SHARED_SECRET_ALGORITHMS):
            raise ValueError("Algorithms HS... require secrets in StaticKeys, and secrets require these algorithms.")

    async def _check(self, token: str, now: float) -> tuple[Principal, float]:
        """Return the caller and the expiry of a token; raise TokenError if the token is invalid."""
        signed = read(token)
        claims = read_object(signed.payload, "payload")
        # The issuer is first: what else is wrong with a token of another issuer is not for this server to say.
        check_issuer(claims, self._issuers)
        if signed.algorithm not in self._algorithms:
            raise TokenError("The server does not accept the algorithm of the token.")
        self._rules.check_type(signed.type)
        check_audience(claims, self._audiences, self._rules.clients_without_audience)
        end = self._rules.check(claims, now)
        principal = self._rules.principal(claims)
        if not any(key.verifies(signed) for key in await self._keys.find(signed)):
            raise TokenError("The signature of the token is invalid.")
        return replace(principal, verified_token=VerifiedToken(token)), end
