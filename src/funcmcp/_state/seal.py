"""Sealed and concealed texts: payloads that only servers with the same keys can create, and read if concealed.

How it works: a sealed token is ``1.<payload>.<code>``, where 1 is the version of the format and both parts are
base64url without padding. The code is HMAC-SHA-256 with a key that is derived for one purpose, so a token for one
purpose is invalid for any other. The payload is readable: it contains only data that the client already has.

A concealed token is ``c1.<data>``. The data are 24 random bytes and the payload, encrypted with AES-256-GCM. Its key
and nonce are the HMAC-SHA-512 of the random bytes with a key that is derived for the purpose. So each token has its own
key, and the number of tokens is not limited by the 96 bits of a nonce (NIST SP 800-38D section 8.3).

The first key of a ring seals and conceals; all keys open and reveal, so keys can be replaced one after the other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_VERSION = "1"
_CONCEALED = "c1."
_SALT_BYTES = 24
_TAG_BYTES = 16
_CIPHER_KEY_BYTES = 32
_NONCE_BYTES = 12
KEY_BYTES = 32
"""Minimum length of a secret."""


@public("funcmcp.state")
class KeyRing:
    """Keys that seal and open texts, and conceal and reveal them. The first key seals and conceals.

    Args:
        keys: Secrets of at least 32 bytes, the current one first. Without keys the ring has a random key, which no
            other process has.

    Attributes:
        shared: Whether other processes can have the same keys.
        lasting: Whether a later start of the server has the same keys. False for random ones.
        on_foreign: A function that is called for a token of the right form that no key of the ring has sealed.

    Raises:
        ValueError: A key is shorter than 32 bytes.
    """

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        if any(len(key) < KEY_BYTES for key in keys):
            raise ValueError(f"A key must have at least {KEY_BYTES} bytes.")
        self.shared: bool = bool(keys)
        self.lasting: bool = bool(keys)
        self.on_foreign: Callable[[], None] | None = None
        self._keys = tuple(keys) or (os.urandom(KEY_BYTES),)

    def of(self, server: str) -> KeyRing:
        """Return keys that are derived from these for one server. They differ from those of any other server."""
        ring = KeyRing([hmac.digest(key, b"funcmcp server " + server.encode(), hashlib.sha256) for key in self._keys])
        ring.shared, ring.lasting = self.shared, self.lasting
        return ring

    def seal(self, purpose: str, payload: bytes) -> str:
        """Return a token with a payload."""
        signed = f"{_VERSION}.{base64url(payload)}"
        return f"{signed}.{base64url(_code(self._keys[0], purpose, signed))}"

    def open(self, purpose: str, token: str) -> bytes | None:
        """Return the payload of a token that `seal` created for this purpose, or None."""
        signed, _, code = token.rpartition(".")
        version, _, payload = signed.partition(".")
        received_code = _to_bytes(code)
        if version != _VERSION or received_code is None or not token.isascii():
            return None
        # All keys are compared, so that the time does not depend on the matching key.
        matches = [hmac.compare_digest(_code(key, purpose, signed), received_code) for key in self._keys]
        if any(matches):
            return _to_bytes(payload)
        if self.on_foreign is not None:
            self.on_foreign()
        return None

    def conceal(self, purpose: str, payload: bytes) -> str:
        """Return a token with a payload that only servers with the same keys can read.

        The token has letters, digits, ``-``, ``_`` and one dot. Its length shows the length of the payload. It needs
        ``pip install "funcmcp[auth]"``.
        """
        salt = os.urandom(_SALT_BYTES)
        cipher, nonce = _cipher(self.derive(f"conceal {purpose}")[0], salt)
        return _CONCEALED + base64url(salt + cipher.encrypt(nonce, payload, None))

    def reveal(self, purpose: str, token: str) -> bytes | None:
        """Return the payload of a token that `conceal` created for this purpose, or None."""
        decoded = _to_bytes(token.removeprefix(_CONCEALED)) if token.startswith(_CONCEALED) else None
        if decoded is None or len(decoded) < _SALT_BYTES + _TAG_BYTES:
            return None
        salt, encrypted = decoded[:_SALT_BYTES], decoded[_SALT_BYTES:]
        for key in self.derive(f"conceal {purpose}"):
            payload = _decrypt(*_cipher(key, salt), encrypted)
            if payload is not None:
                return payload
        if self.on_foreign is not None:
            self.on_foreign()
        return None

    def derive(self, purpose: str) -> tuple[bytes, ...]:
        """Return a secret of 32 bytes for a purpose from each key of the ring, that of the first key first."""
        return tuple(hmac.digest(key, b"funcmcp derive " + purpose.encode(), hashlib.sha256) for key in self._keys)


def require_cipher(user: str) -> None:
    """Raise ModuleNotFoundError if nothing can be concealed. This imports nothing large."""
    if find_spec("cryptography") is None:
        raise ModuleNotFoundError(
            f'{user} encrypts what it stores, which needs: pip install "funcmcp[auth]"', name="cryptography"
        )


def _cipher(key: bytes, salt: bytes) -> tuple[AESGCM, bytes]:
    """Return the cipher and the nonce of the token with these random bytes."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - few servers conceal anything
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('Concealing needs: pip install "funcmcp[auth]"', name=error.name) from error

    derived = hmac.digest(key, salt, hashlib.sha512)
    nonce = derived[_CIPHER_KEY_BYTES : _CIPHER_KEY_BYTES + _NONCE_BYTES]
    return AESGCM(derived[:_CIPHER_KEY_BYTES]), nonce


def _decrypt(cipher: AESGCM, nonce: bytes, encrypted: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above

    try:
        return cipher.decrypt(nonce, encrypted, None)
    except InvalidTag:
        return None


def _code(key: bytes, purpose: str, signed: str) -> bytes:
    derived_key = hmac.digest(key, b"funcmcp " + purpose.encode(), hashlib.sha256)
    return hmac.digest(derived_key, signed.encode(), hashlib.sha256)


def base64url(data: bytes) -> str:
    """Return bytes as base64url without padding (RFC 4648 section 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _to_bytes(text: str) -> bytes | None:
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    # Only the canonical encoding is valid: the unused bits of the last character must be zero.
    return decoded if base64url(decoded) == text else None
