"""Sealed texts: payloads with a message authentication code, which only servers with the same keys can create.

How it works: a token is ``1.<payload>.<code>``, where 1 is the version of the format and both parts are base64url
without padding. The code is HMAC-SHA-256 with a key that is derived for one purpose, so a token for one purpose is
invalid for any other. The first key of a ring seals and all keys open, so keys can be replaced one after the other. The
payload is readable: it contains only data that the client already has.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import TYPE_CHECKING

from funcmcp._public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_VERSION = "1"
KEY_BYTES = 32
"""Minimum length of a secret."""


@public("funcmcp.state")
class KeyRing:
    """Keys that seal and open texts. The first key seals, and all keys open.

    Args:
        keys: Secrets of at least 32 bytes, the current one first. Without keys the ring has a random key, which no
            other process has.

    Attributes:
        shared: Whether other processes can have the same keys.
        on_foreign: A function that is called for a token of the right form that no key of the ring has sealed.

    Raises:
        ValueError: A key is shorter than 32 bytes.
    """

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        if any(len(key) < KEY_BYTES for key in keys):
            raise ValueError(f"A key must have at least {KEY_BYTES} bytes.")
        self.shared: bool = bool(keys)
        self.on_foreign: Callable[[], None] | None = None
        self._keys = tuple(keys) or (os.urandom(KEY_BYTES),)

    def of(self, server: str) -> KeyRing:
        """Return keys that are derived from these for one server. They differ from those of any other server."""
        ring = KeyRing([hmac.digest(key, b"funcmcp server " + server.encode(), hashlib.sha256) for key in self._keys])
        ring.shared = self.shared
        return ring

    def seal(self, purpose: str, payload: bytes) -> str:
        """Return a token with a payload."""
        signed = f"{_VERSION}.{_to_text(payload)}"
        return f"{signed}.{_to_text(_code(self._keys[0], purpose, signed))}"

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


def _code(key: bytes, purpose: str, signed: str) -> bytes:
    derived_key = hmac.digest(key, b"funcmcp " + purpose.encode(), hashlib.sha256)
    return hmac.digest(derived_key, signed.encode(), hashlib.sha256)


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _to_bytes(text: str) -> bytes | None:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    # Only the canonical encoding is valid: the unused bits of the last character must be zero.
    return data if _to_text(data) == text else None
