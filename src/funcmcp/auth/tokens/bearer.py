"""Bearer tokens that are signed JSON Web Tokens.

Source: RFC 6750 section 2.1 (only the Authorization header counts; MCP forbids the query string), RFC 7519,
RFC 8725, RFC 9068; MCP "basic/authorization", "Token Handling".
"""

from __future__ import annotations

import hashlib
import logging
from time import time
from typing import TYPE_CHECKING

from funcmcp.auth.authenticator import Challenge
from funcmcp.auth.tokens.claims import TokenRules, check_audience, check_issuer
from funcmcp.auth.tokens.compact import TokenError, read, read_object
from funcmcp.auth.tokens.keys import SHARED_SECRET_ALGORITHMS, StaticKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp.auth.principal import Principal
    from funcmcp.auth.tokens.keys import KeySource

_logger = logging.getLogger("funcmcp")

_REMEMBERED = 4096
_REMEMBERED_FOR = 240.0
"""Seconds after which a token is checked again. A key may have checked it as long as 335 seconds after it was withdrawn
(the lifetime of keys, a pause and a fetch), and so stops to count within ten minutes."""


class BearerTokens:
    """Accepts callers with a token that one of some issuers signed for this server.

    A token that was found good is remembered by its digest, so that the next requests with it cost next to nothing.

    Args:
        issuer: the `iss` of tokens, exactly as they have it; several where they share their keys.
        audience: the `aud` that names this server, usually its URL; several where it has several names.
        keys: what tokens are signed with: ``JWKS(url)`` or ``StaticKeys(...)``.
        rules: what else is demanded of tokens.
        clock: returns seconds since 1970.

    Raises:
        ValueError: no issuer, no audience, or algorithms that do not go with the keys.
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
            raise ValueError("Algorithms HS... go with secrets among StaticKeys, and only with them.")
        self._verified: dict[bytes, tuple[Principal, float]] = {}

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        """Return the caller that the token names, why it is refused, or None without a bearer token."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token.strip(" ")
        if not token or " " in token:
            return Challenge("invalid_request", "The Authorization header is not 'Bearer' with one token.")
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        now = self._clock()
        known = self._verified.get(digest)
        if known is not None and now < known[1]:
            return known[0]
        try:
            principal, end = await self._check(token, now)
        except TokenError as error:
            return Challenge("invalid_token", str(error))
        except Exception as error:  # noqa: BLE001 - whatever a token makes a library do, it is no reason to let it in
            _logger.warning("event=token_check_failed exception=%s", type(error).__name__)
            return Challenge("invalid_token", "The token can't be checked.")
        self._remember(digest, principal, min(end, now + _REMEMBERED_FOR))
        return principal

    async def _check(self, token: str, now: float) -> tuple[Principal, float]:
        """Return the caller and the end of a token; raise TokenError if it is not good.

        The claims that need no key come first, so that what is not for us never makes us fetch keys.
        """
        given = read(token)
        if given.algorithm not in self._algorithms:
            raise TokenError("The token is signed with an algorithm that is not accepted here.")
        self._rules.check_type(given.type)
        claims = read_object(given.payload, "payload")
        check_issuer(claims, self._issuers)
        check_audience(claims, self._audiences)
        end = self._rules.check(claims, now)
        principal = self._rules.principal(claims)
        if not any(key.verifies(given) for key in await self._keys.find(given)):
            raise TokenError("The signature of the token is not one of the issuer.")
        return principal, end

    def _remember(self, digest: bytes, principal: Principal, end: float) -> None:
        """Keep a good token in mind; the oldest makes room."""
        if len(self._verified) >= _REMEMBERED:
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = principal, end


def _names(what: str, given: str | Sequence[str]) -> frozenset[str]:
    names = frozenset([given] if isinstance(given, str) else given)
    if not names or "" in names:
        raise ValueError(f"BearerTokens needs an {what}: without one it would accept tokens made for others.")
    return names
