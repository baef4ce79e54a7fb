"""Tokens as requests present them: the Authorization header, a cache of valid tokens, and proofs of possession.

How it works: a subclass checks a token (`_check`) and says how long the result holds. A valid token is cached, with its
principal, by the digest of the value that the Authorization header usually has for it.

A token that is bound to a key of the client (``cnf.jkt``) is presented with the scheme DPoP and a proof, or not at all.
The token is cached as others are, but `recall` never returns its principal: each request needs its own proof. The proof
is checked last, so that only holders of valid tokens can make the server remember proofs.

Source: RFC 6750 section 2.1 (only the Authorization header counts; MCP forbids the query string), RFC 9449 sections 6.1
and 7.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from funcmcp._auth.authenticator import Challenge, Fit, ProvableHeaders, UnavailableError
from funcmcp._auth.dpop import checked_dpop
from funcmcp._auth.tokens.compact import MissingKeyError, TokenError, has_shape, unverified_claims

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._auth.dpop import DPoP
    from funcmcp._auth.principal import Principal

_logger = logging.getLogger("funcmcp")

_PREFIX: Final = b"Bearer "
_CACHE_SIZE: Final = 4096
_LINE_SECONDS: Final = 60.0

_NO_PROOFS: Final = "The server can't check proofs here, because a function around its authenticator hides the request."


class _Verified(NamedTuple):
    """A valid token: its caller, when it has to be verified again, and whether it is bound to a key."""

    principal: Principal
    end: float
    is_bound: bool


class PresentedTokens(ABC):
    """An authenticator for tokens in the Authorization header.

    Args:
        issuers: The issuers of accepted tokens.
        audiences: The audiences of accepted tokens, without a slash at the end.
        cache_seconds: Seconds after which a token is checked again.
        dpop: Which tokens that are bound to a key of the client are accepted.
        dpop_nonces: Whether proofs need a nonce of the server.
        clock: A function that returns seconds since 1970.

    Attributes:
        dpop: As above.
        dpop_nonces: As above.
    """

    def __init__(
        self,
        issuers: frozenset[str],
        audiences: frozenset[str],
        *,
        cache_seconds: float,
        dpop: DPoP | None,
        dpop_nonces: bool,
        clock: Callable[[], float],
    ) -> None:
        self.dpop: DPoP | None = checked_dpop(type(self).__name__, dpop)
        self.dpop_nonces: bool = dpop_nonces
        self._issuers = issuers
        self._audiences = audiences
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._verified: dict[bytes, _Verified] = {}
        self._has_warned = False
        self._next_line = float("-inf")

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        """Return the caller of the token, a challenge for an invalid token, or None without a token."""
        presented = self._presented(headers)
        if presented is None:
            return None
        name, token = presented
        if not token or " " in token:
            return Challenge("invalid_request", f"The Authorization header is not '{name}' with one token.", name)
        try:
            verified = await self._verify(token)
        except MissingKeyError as error:
            raise UnavailableError(str(error)) from error
        except TokenError as error:
            return Challenge("invalid_token", str(error), name)
        except UnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - a token that makes a library fail is rejected
            self._log_failure_of_check(error)
            return Challenge("invalid_token", "The token can't be verified.", name)
        refusal = self._refusal(verified, has_proof=name == "DPoP")
        if refusal is None and name == "DPoP":
            refusal = await self._check_proof(headers, token, verified.principal)
        return verified.principal if refusal is None else refusal

    def _log_failure_of_check(self, error: Exception) -> None:
        """Log that a library or a source of keys has failed, at most once in a minute: clients can cause it."""
        now = monotonic()
        if now >= self._next_line:
            self._next_line = now + _LINE_SECONDS
            _logger.warning("event=token_check_failed exception=%s", type(error).__name__)

    def recall(self, digest: bytes) -> Principal | None:
        """Return the caller of an Authorization header whose token is in the cache; None to call the authenticator.

        Args:
            digest: The SHA-256 digest of the value of the header.
        """
        verified = self._verified.get(digest)
        if verified is None or verified.is_bound or self.dpop == "required" or self._clock() >= verified.end:
            return None
        return verified.principal

    def fit(self, headers: Mapping[str, str]) -> Fit:
        """Return how well the token of a request fits, by the issuer and the audience that it names itself."""
        presented = self._presented(headers)
        token = "" if presented is None else presented[1]
        if not has_shape(token):
            return self._fit_of_opaque(token)
        claims = unverified_claims(token)
        issuer, audience = claims.get("iss"), claims.get("aud")
        if not isinstance(issuer, str) or issuer not in self._issuers:
            return Fit.KIND
        names = audience if isinstance(audience, list) else [audience]
        is_for_server = any(isinstance(name, str) and name.removesuffix("/") in self._audiences for name in names)
        return Fit.AUDIENCE if is_for_server else Fit.ISSUER

    def _fit_of_opaque(self, token: str) -> Fit:
        """Return how well a token fits that is not a signed JSON Web Token, or an empty text."""
        del token
        return Fit.NONE

    @abstractmethod
    async def _check(self, token: str, now: float) -> tuple[Principal, float]:
        """Return the caller and the expiry of a token; raise TokenError if the token is invalid."""

    def _presented(self, headers: Mapping[str, str]) -> tuple[Literal["Bearer", "DPoP"], str] | None:
        """Return the scheme and the token in the Authorization header; None if it has another scheme."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip(" ")
        if self.dpop is not None and scheme.lower() == "dpop":
            return "DPoP", token
        return ("Bearer", token) if scheme.lower() == "bearer" else None

    async def _verify(self, token: str) -> _Verified:
        """Return what is known about a token; raise TokenError if the token is invalid."""
        digest = digest_of(token)
        verified, now = self._verified.get(digest), self._clock()
        if verified is not None and now < verified.end:
            return verified
        principal, end = await self._check(token, now)
        verified = _Verified(principal, min(end, now + self._cache_seconds), _is_bound(principal))
        if len(self._verified) >= _CACHE_SIZE:  # the oldest one leaves
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = verified
        return verified

    def _was_valid(self, token: str) -> bool:
        """Return whether a token is remembered as valid, though it has to be checked again."""
        return digest_of(token) in self._verified

    def _forget(self, digest: bytes) -> None:
        """Forget that the token with a digest (`digest_of`) was valid."""
        self._verified.pop(digest, None)

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
            _logger.warning(
                "event=dpop_unavailable: pass %s to Auth itself, or in first_of.", type(self).__name__.lstrip("_")
            )
        return Challenge("invalid_dpop_proof", _NO_PROOFS, "DPoP")


def digest_of(token: str) -> bytes:
    """Return the digest of the value that the Authorization header usually has for a token."""
    return sha256(_PREFIX + token.encode("utf-8", "surrogatepass")).digest()


def _is_bound(principal: Principal) -> bool:
    """Return whether a token is bound to a key of the client; raise TokenError if that can't be read."""
    confirmation = principal.claims.get("cnf", {})
    if not isinstance(confirmation, dict) or not isinstance(confirmation.get("jkt", ""), str):
        raise TokenError("The confirmation (cnf) of the token is malformed.")
    return "jkt" in confirmation


def checked_names(owner: str, parameter: str, values: str | Sequence[str]) -> frozenset[str]:
    """Return the names in an option; raise ValueError if there are none."""
    names = frozenset([values] if isinstance(values, str) else values)
    if not names or "" in names:
        raise ValueError(f"{owner} needs an {parameter}. Without it, tokens for other servers would be accepted.")
    return names
