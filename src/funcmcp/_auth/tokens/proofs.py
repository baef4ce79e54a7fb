"""Proofs of possession (DPoP): that the sender of a request has the private key to which a token is bound.

How it works: a proof is a signed token that brings its own public key. `Proofs.read` checks all that is in the proof
and in the request: type, algorithm, key, signature, method, URL, token and time. It returns the thumbprint of the key,
which the caller compares with that of the token. `Proofs.use` comes last and remembers the proof, so that it is good
for one request, and so that requests that are refused anyway take up no memory.

Source: RFC 9449 sections 4.2, 4.3, 7.1, 8, 9 and 11; RFC 7638 (thumbprints); RFC 8725 sections 3.1 and 3.11.
"""

from __future__ import annotations

import base64
import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from funcmcp._auth.dpop import PROOF_ALGORITHMS, normalized
from funcmcp._auth.tokens.compact import TokenError, read, read_object
from funcmcp._auth.tokens.keys import UnfitKeyError, read_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._auth.tokens.compact import SignedToken
    from funcmcp._auth.tokens.keys import VerificationKey

WINDOW_SECONDS: Final = 300.0
"""How far `iat` may be from the time of the server, in both directions, as the draft for MCP (SEP-1932) wants it."""

_MAX_PROOF: Final = 8 * 1024
_MAX_URL: Final = 2048
_MAX_ID: Final = 512
_TYPE: Final = "dpop+jwt"
_PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_PUBLIC_MEMBERS: Final = ("kty", "crv", "x", "y", "n", "e", "use", "key_ops", "alg")
_MAX_TIME: Final = 2**53


class ProofError(Exception):
    """A proof is refused. The text is a sentence for developers, without any part of the proof.

    Args:
        reason: The text.
        error: The error code of RFC 9449.
        nonce: The nonce that the next proof must have; None if it needs none.
    """

    def __init__(
        self,
        reason: str,
        error: Literal["invalid_dpop_proof", "use_dpop_nonce"] = "invalid_dpop_proof",
        nonce: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.error: Literal["invalid_dpop_proof", "use_dpop_nonce"] = error
        self.nonce = nonce


class Proof(NamedTuple):
    """A proof that fits its request.

    Attributes:
        jkt: The SHA-256 thumbprint of its key.
        id: Its id, which is unique among the proofs of its key.
        until: When it ceases to be valid, in seconds since 1970.
    """

    jkt: str
    id: str
    until: float


class UsedProofs(Protocol):
    """Remembers proofs, such as `funcmcp._state.replays.Replays`."""

    async def use_once(self, proof: str, caller: str, until: float) -> bool:
        """Return whether a proof has not been used before."""


class NonceSource(Protocol):
    """Issues nonces, such as `funcmcp._state.replays.Nonces`."""

    def new(self) -> str:
        """Return a nonce."""

    def end_of(self, nonce: object) -> float | None:
        """Return until when a nonce is valid; None if it is not valid now."""


class Proofs:
    """Checks proofs.

    Args:
        used: Remembers used proofs.
        clock: Returns seconds since 1970.
        nonces: Issues the nonces that proofs must have. None: they need none.
    """

    def __init__(self, used: UsedProofs, clock: Callable[[], float], nonces: NonceSource | None = None) -> None:
        self._used = used
        self._clock = clock
        self._nonces = nonces

    def read(self, text: str, method: str, url: str, token: str | None = None, *, is_repeated: bool = False) -> Proof:
        """Return a proof that fits a request.

        Args:
            text: The value of the header DPoP.
            method: The method of the request.
            url: The public URL of the request.
            token: The access token of the request; None at a token endpoint.
            is_repeated: Whether the same request was accepted before, so that its proof need not be new.

        Raises:
            ProofError: The proof is invalid, or lacks a nonce.
        """
        signed = _parsed(text)
        key = _key_of(signed)
        claims = _claims_of(signed, key)
        _check_request(claims, method, url)
        if token is not None:
            _check_token(claims, token)
        proof_id = claims.get("jti")
        if not isinstance(proof_id, str) or not 0 < len(proof_id) <= _MAX_ID:
            raise ProofError(f"The proof needs an id (jti) of at most {_MAX_ID} characters.")
        until = 0.0 if is_repeated else self._end_of(claims)
        return Proof(key.key.thumbprint(), proof_id, until)

    async def use(self, proof: Proof, caller: str) -> None:
        """Remember a proof; raise ProofError if it has been used before."""
        if not await self._used.use_once(f"{proof.jkt} {proof.id}", caller, proof.until):
            raise ProofError("The proof has been used before. Each request needs a new one.")

    def _end_of(self, claims: Mapping[str, Any]) -> float:
        """Return when a proof ceases to be valid; raise ProofError if it is not valid now."""
        issued = claims.get("iat")
        if isinstance(issued, bool) or not isinstance(issued, int | float) or not 0 <= issued < _MAX_TIME:
            raise ProofError("The proof needs the time at which it was made (iat).")
        seconds = self._clock() - issued
        if abs(seconds) > WINDOW_SECONDS:
            side = "ahead of" if seconds < 0 else "behind"
            raise ProofError(
                f"The time of the proof (iat) is {abs(seconds):.0f} seconds {side} the clock of the server. At most "
                f"{WINDOW_SECONDS:.0f} are accepted. The proof is too old, or a clock is wrong."
            )
        if self._nonces is None:
            return issued + WINDOW_SECONDS
        end = self._nonces.end_of(claims.get("nonce"))
        if end is None:
            raise ProofError("The proof needs the nonce of this answer.", "use_dpop_nonce", self._nonces.new())
        return min(issued + WINDOW_SECONDS, end)


def is_key_of(jkt: object, proof: Proof) -> bool:
    """Return whether a thumbprint in a token is that of the key of a proof."""
    if not isinstance(jkt, str):
        return False
    return hmac.compare_digest(jkt.encode("utf-8", "surrogatepass"), proof.jkt.encode())


def _parsed(text: str) -> SignedToken:
    if len(text) > _MAX_PROOF:
        raise ProofError(f"The proof may have {_MAX_PROOF} characters.")
    try:
        signed = read(text)
    except TokenError:
        raise ProofError("The proof is not one signed JSON Web Token.") from None
    if signed.type != _TYPE:
        raise ProofError(f"The type (typ) of the proof must be {_TYPE}.")
    if signed.algorithm not in PROOF_ALGORITHMS:
        raise ProofError("The algorithm of the proof must be one of those in the metadata.")
    return signed


def _key_of(signed: SignedToken) -> VerificationKey:
    """Return the public key in a proof, without what else is beside it, such as certificates."""
    jwk = signed.jwk
    if not isinstance(jwk, dict):
        raise ProofError("The proof needs its public key (jwk).")
    if jwk.keys() & _PRIVATE_MEMBERS:
        raise ProofError("The proof has a private key. Do not use this key any more.")
    try:
        key = read_key({name: jwk[name] for name in _PUBLIC_MEMBERS if name in jwk})
    except (UnfitKeyError, TypeError):  # of a member that is a list where a name is expected
        raise ProofError("The key of the proof is not usable.") from None
    if not key.fits(signed):
        raise ProofError("The key of the proof is not for its algorithm.")
    return key


def _claims_of(signed: SignedToken, key: VerificationKey) -> dict[str, Any]:
    """Return the claims of a proof; raise ProofError unless its own key has signed it."""
    try:
        is_signed = key.verifies(signed)
        claims = read_object(signed.payload, "payload")
    except Exception:  # noqa: BLE001 - a signature that makes a library fail is not valid
        is_signed, claims = False, {}
    if not is_signed:
        raise ProofError("The signature of the proof is invalid.")
    return claims


def _check_request(claims: Mapping[str, Any], method: str, url: str) -> None:
    """Raise ProofError unless a proof is for a request."""
    if claims.get("htm") != method:
        raise ProofError("The proof is for another method (htm).")
    claimed = claims.get("htu")
    if not isinstance(claimed, str) or len(claimed) > _MAX_URL:
        raise ProofError("The proof needs the URL of the request (htu).")
    expected = normalized(url)
    if expected is None or normalized(claimed) != expected:
        raise ProofError("The proof is for another URL (htu).")


def _check_token(claims: Mapping[str, Any], token: str) -> None:
    """Raise ProofError unless a proof is for a token."""
    digest = base64.urlsafe_b64encode(sha256(token.encode("utf-8", "surrogatepass")).digest()).rstrip(b"=")
    claimed = claims.get("ath")
    if not isinstance(claimed, str) or not hmac.compare_digest(claimed.encode("utf-8", "surrogatepass"), digest):
        raise ProofError("The proof is for another token (ath).")
