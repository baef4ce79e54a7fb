"""Keys that verify signatures, and the algorithms of each key.

Source: RFC 7517 (JSON Web Keys), RFC 7518 section 3.1 (the type and the length of the keys of each algorithm),
RFC 8725 section 3.1 (a key is used only with its own algorithms), RFC 9864 (Ed25519).
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from funcmcp._objects.public_names import public

try:
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key
    from joserfc.jws import JWSRegistry
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Checking tokens needs: pip install "funcmcp[auth]"', name=error.name) from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from joserfc.jwk import Key

    from funcmcp._auth.tokens.compact import SignedToken

_KINDS: Final[Mapping[str, tuple[str, str | None]]] = {
    "HS256": ("oct", None),
    "HS384": ("oct", None),
    "HS512": ("oct", None),
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
    "PS256": ("RSA", None),
    "PS384": ("RSA", None),
    "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}
"""The type and the curve of the keys of each algorithm."""

ALGORITHMS: Final = frozenset(_KINDS)
SHARED_SECRET_ALGORITHMS: Final = frozenset({"HS256", "HS384", "HS512"})
"""Algorithms whose keys both create and verify signatures."""

_RSA_BITS: Final = range(2048, 8192 + 1)
_MAX_EXPONENT: Final = 2**32  # a larger exponent makes verification slow, and no issuer uses one
_MAX_KEYS: Final = 100
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2,3})?")
_ROCA_GENERATOR: Final = 65537
_ROCA_PRIMES: Final = (
    11, 13, 17, 19, 37, 53, 61, 71, 73, 79, 97, 103, 107, 109, 127, 151, 157,
)  # fmt: skip


class UnfitKeyError(ValueError):
    """A key can't verify signatures."""


class KeySource(Protocol):
    """A source of keys."""

    async def find(self, token: SignedToken) -> Sequence[VerificationKey]:
        """Return the keys that may verify a token; raise TokenError while they are not available."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key and its algorithms.

    Attributes:
        key_id: The name of the key. None: the key matches any name.
        algorithms: Algorithms whose signatures the key may verify.
        key: The key itself.
        issuer: The only issuer that signs with the key, if its publisher has several (a member of Microsoft's keys).
    """

    key_id: str | None
    algorithms: frozenset[str]
    key: Key = field(repr=False)
    issuer: str | None = None

    def fits(self, token: SignedToken) -> bool:
        """Return whether the name and the algorithms of the key match a token."""
        if self.key_id is not None and token.key_id is not None and self.key_id != token.key_id:
            return False
        return token.algorithm in self.algorithms

    def verifies(self, token: SignedToken) -> bool:
        """Return whether the key verifies the signature of a token that it fits."""
        return JWSRegistry.algorithms[token.algorithm].verify(token.signed, token.signature, self.key)


def read_key(jwk: Mapping[str, Any]) -> VerificationKey:
    """Return the key in a JSON Web Key; raise UnfitKeyError if it can't verify signatures."""
    _check_purpose(jwk)
    # Weak keys are rejected before they are imported: the library only warns of them.
    if jwk.get("kty") == "RSA":
        _check_rsa(_number(jwk, "n"), _number(jwk, "e"))
    algorithms = _algorithms_of(jwk)
    if not algorithms:
        raise UnfitKeyError("The key is too short, or has no supported algorithm.")
    try:
        key = import_key(dict(jwk))
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnfitKeyError("The key is invalid.") from error
    issuer = jwk.get("issuer")
    return VerificationKey(jwk.get("kid"), algorithms, key, issuer if isinstance(issuer, str) else None)


def _check_purpose(jwk: Mapping[str, Any]) -> None:
    """Raise UnfitKeyError if a key is malformed, private, or not for verifying signatures."""
    operations = jwk.get("key_ops", ["verify"])
    has_names = isinstance(jwk.get("kid"), str | None) and isinstance(jwk.get("alg"), str | None)
    if not has_names or not isinstance(operations, list):
        raise UnfitKeyError("The key is invalid.")
    if jwk.get("use", "sig") != "sig" or "verify" not in operations:
        raise UnfitKeyError("The key is not for verifying signatures.")
    if jwk.get("kty") != "oct" and "d" in jwk:
        raise UnfitKeyError("The key is private.")


def _algorithms_of(jwk: Mapping[str, Any]) -> frozenset[str]:
    """Return the algorithms that a key is for, and for which it is long enough if it is a secret."""
    kind, curve = jwk.get("kty"), jwk.get("crv")
    algorithms = {name for name, fitting in _KINDS.items() if fitting in ((kind, None), (kind, curve))}
    if jwk.get("alg") is not None:
        algorithms &= {jwk["alg"]}
    if kind == "oct":
        bits = len(_bytes(jwk, "k")) * 8
        algorithms = {name for name in algorithms if bits >= int(name.removeprefix("HS"))}
    return frozenset(algorithms)


def _bytes(jwk: Mapping[str, Any], name: str) -> bytes:
    value = jwk.get(name)
    if not isinstance(value, str) or not _BASE64.fullmatch(value):
        raise UnfitKeyError("The key is invalid.")
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))


def _number(jwk: Mapping[str, Any], name: str) -> int:
    return int.from_bytes(_bytes(jwk, name), "big")


def _check_rsa(modulus: int, exponent: int) -> None:
    if modulus.bit_length() not in _RSA_BITS:
        raise UnfitKeyError(f"An RSA key must have {_RSA_BITS[0]} to {_RSA_BITS[-1]} bits.")
    if exponent > _MAX_EXPONENT:
        raise UnfitKeyError("The exponent of the RSA key is too large.")
    if all(_is_power(modulus % prime, prime) for prime in _ROCA_PRIMES):
        raise UnfitKeyError("The RSA key comes from a generator whose keys can be factored (CVE-2017-15361).")


def _is_power(value: int, prime: int) -> bool:
    """Return whether a value is a power of 65537 modulo a prime, as the moduli of such a generator always are."""
    power = 1
    for _ in range(prime):
        if power == value:
            return True
        power = power * _ROCA_GENERATOR % prime
    return False


def without_ambiguous(keys: Iterable[VerificationKey]) -> tuple[VerificationKey, ...]:
    """Return at most 100 keys, without those that have the same name for the same algorithm."""
    candidates = list(keys)[:_MAX_KEYS]
    return tuple(key for key in candidates if not any(_are_ambiguous(key, other) for other in candidates))


def _are_ambiguous(key: VerificationKey, other: VerificationKey) -> bool:
    if key is other:
        return False
    return key.key_id is not None and key.key_id == other.key_id and not key.algorithms.isdisjoint(other.algorithms)


@public("funcmcp.auth")
class StaticKeys:
    """Keys from the configuration.

    Args:
        keys: JSON Web Keys, JSON Web Key Sets, or public keys as PEM text. They are either all secrets (``oct``) or all
            public keys.

    Raises:
        UnfitKeyError: There are no keys. A key is not for verifying signatures, is private, too short or weak, or has
            the name of another key. There are both secrets and public keys.
    """

    def __init__(self, *keys: Mapping[str, Any] | str) -> None:
        verification_keys: list[VerificationKey] = []
        for key in keys:
            if isinstance(key, str):
                verification_keys.append(_read_pem(key))
            else:
                verification_keys.extend(read_key(jwk) for jwk in key.get("keys", [key]))
        self._keys = without_ambiguous(verification_keys)
        if not verification_keys or len(self._keys) != len(verification_keys):
            raise UnfitKeyError("StaticKeys needs at least one key, and each key needs its own name.")
        kinds = {not key.algorithms.isdisjoint(SHARED_SECRET_ALGORITHMS) for key in verification_keys}
        if len(kinds) > 1:
            raise UnfitKeyError("StaticKeys can't have both secrets and public keys.")
        self.secret: bool = kinds.pop()

    async def find(self, token: SignedToken) -> Sequence[VerificationKey]:
        """Return the keys that may verify a token."""
        return [key for key in self._keys if key.fits(token)]


def _read_pem(text: str) -> VerificationKey:
    """Return a public key. The text is never imported as a secret."""
    for kind in ("RSA", "EC", "OKP"):
        try:
            jwk = import_key(text, kind).as_dict()
        except (JoseError, ValueError, TypeError):
            continue
        return read_key(jwk)
    raise UnfitKeyError("The text is not a public key in PEM format.")
