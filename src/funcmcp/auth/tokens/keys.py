"""Keys that signatures are checked with, and what each of them is good for.

Source: RFC 7517 (JSON Web Keys), RFC 7518 section 3.1 (which algorithm takes which key, and how long it has to be),
RFC 8725 section 3.1 (a key is used with the algorithms that it is for, whatever a token says), RFC 9864 (Ed25519).
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

try:
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key
    from joserfc.jws import JWSRegistry
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Checking tokens needs: pip install "funcmcp[auth]"', name=error.name) from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from joserfc.jwk import Key

    from funcmcp.auth.tokens.compact import SignedToken

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
"""The type and the curve of the keys that an algorithm takes."""

ALGORITHMS: Final = frozenset(_KINDS)
SHARED_SECRET_ALGORITHMS: Final = frozenset({"HS256", "HS384", "HS512"})
"""Algorithms whose key makes signatures as well as it checks them."""

_RSA_BITS: Final = range(2048, 8192 + 1)
_LARGEST_EXPONENT: Final = 2**32  # a larger one is nobody's and makes every check slow
_MOST_KEYS: Final = 100
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2,3})?")
_ROCA_GENERATOR: Final = 65537
_ROCA_PRIMES: Final = (
    11, 13, 17, 19, 37, 53, 61, 71, 73, 79, 97, 103, 107, 109, 127, 151, 157,
)  # fmt: skip


class UnfitKeyError(ValueError):
    """A key can't be used to check signatures with."""


class KeySource(Protocol):
    """Where keys come from."""

    async def find(self, token: SignedToken) -> Sequence[VerificationKey]:
        """Return the keys that a token may be signed with; raise TokenError where that can't be told now."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key with what it is good for.

    Attributes:
        key_id: its name, or None: then it may be any token's.
        algorithms: what it may check.
        key: the key itself.
    """

    key_id: str | None
    algorithms: frozenset[str]
    key: Key = field(repr=False)

    def fits(self, token: SignedToken) -> bool:
        """Tell whether a token may be signed with this key."""
        named = self.key_id is None or token.key_id is None or self.key_id == token.key_id
        return named and token.algorithm in self.algorithms

    def verifies(self, token: SignedToken) -> bool:
        """Tell whether a token that this key fits is signed with it."""
        return JWSRegistry.algorithms[token.algorithm].verify(token.signed, token.signature, self.key)


def read_key(jwk: Mapping[str, Any]) -> VerificationKey:
    """Return the key that a JSON Web Key is; raise UnfitKeyError for one that is not for checking signatures."""
    kind, key_id, algorithm = jwk.get("kty"), jwk.get("kid"), jwk.get("alg")
    operations = jwk.get("key_ops", ["verify"])
    if not isinstance(key_id, str | None) or not isinstance(algorithm, str | None) or not isinstance(operations, list):
        raise UnfitKeyError("The key can't be read.")
    if jwk.get("use", "sig") != "sig" or "verify" not in operations:
        raise UnfitKeyError("The key is not for checking signatures.")
    if kind != "oct" and "d" in jwk:
        raise UnfitKeyError("The key is a private one.")
    algorithms = {name for name, (of, curve) in _KINDS.items() if of == kind and curve in (None, jwk.get("crv"))}
    if algorithm is not None:
        algorithms &= {algorithm}
    # What a key is made of is looked at first: the library takes weak ones and only warns.
    if kind == "RSA":
        _check_rsa(_number(jwk, "n"), _number(jwk, "e"))
    if kind == "oct":
        bits = len(_bytes(jwk, "k")) * 8
        algorithms = {name for name in algorithms if bits >= int(name.removeprefix("HS"))}
    if not algorithms:
        raise UnfitKeyError("The key is too short, or for no algorithm that is known.")
    try:
        key = import_key(dict(jwk))
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnfitKeyError("The key can't be read.") from error
    return VerificationKey(key_id, frozenset(algorithms), key)


def _bytes(jwk: Mapping[str, Any], name: str) -> bytes:
    value = jwk.get(name)
    if not isinstance(value, str) or not _BASE64.fullmatch(value):
        raise UnfitKeyError("The key can't be read.")
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))


def _number(jwk: Mapping[str, Any], name: str) -> int:
    return int.from_bytes(_bytes(jwk, name), "big")


def _check_rsa(modulus: int, exponent: int) -> None:
    if modulus.bit_length() not in _RSA_BITS:
        raise UnfitKeyError(f"An RSA key must have {_RSA_BITS[0]} to {_RSA_BITS[-1]} bits.")
    if exponent > _LARGEST_EXPONENT:
        raise UnfitKeyError("The exponent of the RSA key is too large.")
    if all(_is_power(modulus % prime, prime) for prime in _ROCA_PRIMES):
        raise UnfitKeyError("The RSA key comes from a generator whose keys can be factored (CVE-2017-15361).")


def _is_power(value: int, prime: int) -> bool:
    """Tell whether a value is a power of 65537 modulo a prime, which the moduli of such a generator always are."""
    power = 1
    for _ in range(prime):
        if power == value:
            return True
        power = power * _ROCA_GENERATOR % prime
    return False


def sort_out(keys: Iterable[VerificationKey]) -> tuple[VerificationKey, ...]:
    """Return keys without those that can't be told apart: the same name for the same algorithm."""
    found = list(keys)[:_MOST_KEYS]
    return tuple(key for key in found if not any(_alike(key, other) for other in found if other is not key))


def _alike(key: VerificationKey, other: VerificationKey) -> bool:
    return key.key_id is not None and key.key_id == other.key_id and not key.algorithms.isdisjoint(other.algorithms)


class StaticKeys:
    """Keys that are known from the start.

    Args:
        keys: JSON Web Keys, JSON Web Key Sets, or public keys as PEM text. Secrets (`oct`) and public keys are not
            mixed.

    Raises:
        UnfitKeyError: a key is not for checking signatures, is private, too short or not sound, has another's name,
            or there are none, or secrets among public keys.
    """

    def __init__(self, *keys: Mapping[str, Any] | str) -> None:
        given: list[VerificationKey] = []
        for key in keys:
            if isinstance(key, str):
                given.append(_read_pem(key))
            else:
                given.extend(read_key(jwk) for jwk in key.get("keys", [key]))
        self._keys = sort_out(given)
        if not given or len(self._keys) != len(given):
            raise UnfitKeyError("StaticKeys needs keys, each with a name of its own.")
        kinds = {not key.algorithms.isdisjoint(SHARED_SECRET_ALGORITHMS) for key in given}
        if len(kinds) > 1:
            raise UnfitKeyError("Secrets and public keys don't go together.")
        self.secret = kinds.pop()

    async def find(self, token: SignedToken) -> Sequence[VerificationKey]:
        """Return the keys that a token may be signed with."""
        return [key for key in self._keys if key.fits(token)]


def _read_pem(text: str) -> VerificationKey:
    """Return a public key, which never becomes a secret whatever is written in it."""
    for kind in ("RSA", "EC", "OKP"):
        try:
            jwk = import_key(text, kind).as_dict()
        except (JoseError, ValueError, TypeError):
            continue
        return read_key(jwk)
    raise UnfitKeyError("The text is no public key in PEM.")
