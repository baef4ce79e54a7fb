"""Text that only this server can have made: a payload with a message authentication code.

The format is versioned: ``1.<payload>.<code>``, both parts base64url without padding. The code is HMAC-SHA-256
under a key derived for one purpose, so that a token made for one is worthless for another. The payload is not
secret: it holds only what the client knows already.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_VERSION = "1"
KEY_BYTES = 32
"""That a secret must have at least."""


class KeyRing:
    """Keys to seal with (the first) and to open with (all of them).

    Args:
        keys: secrets of at least 32 bytes, the current one first; by default one random key, which other
            processes do not have.

    Attributes:
        shared: whether other processes can have the same keys.
        on_foreign: called when a token has the right form, but no key of this ring has made it.

    Raises:
        ValueError: a key is shorter than 32 bytes.
    """

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        if any(len(key) < KEY_BYTES for key in keys):
            raise ValueError(f"A key must have at least {KEY_BYTES} bytes.")
        self.shared = bool(keys)
        self.on_foreign: Callable[[], None] | None = None
        self._keys = tuple(keys) or (os.urandom(KEY_BYTES),)

    def of(self, server: str) -> KeyRing:
        """Return keys of a server's own, made of these; another server with the same secret has others."""
        ring = KeyRing([hmac.digest(key, b"funcmcp server " + server.encode(), hashlib.sha256) for key in self._keys])
        ring.shared = self.shared
        return ring

    def seal(self, purpose: str, payload: bytes) -> str:
        """Return a token for a payload."""
        signed = f"{_VERSION}.{_to_text(payload)}"
        return f"{signed}.{_to_text(_code(self._keys[0], purpose, signed))}"

    def open(self, purpose: str, token: str) -> bytes | None:
        """Return the payload of a token that `seal` made for this purpose, or None."""
        signed, _, code = token.rpartition(".")
        version, _, payload = signed.partition(".")
        given = _to_bytes(code)
        if version != _VERSION or given is None or not token.isascii():
            return None
        # Every key is tried, so that the time taken does not tell which one it was.
        matches = [hmac.compare_digest(_code(key, purpose, signed), given) for key in self._keys]
        if any(matches):
            return _to_bytes(payload)
        if self.on_foreign is not None:
            self.on_foreign()
        return None


def _code(key: bytes, purpose: str, signed: str) -> bytes:
    own = hmac.digest(key, b"funcmcp " + purpose.encode(), hashlib.sha256)
    return hmac.digest(own, signed.encode(), hashlib.sha256)


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _to_bytes(text: str) -> bytes | None:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    # Only the canonical spelling counts: the unused bits of the last character must be zero.
    return data if _to_text(data) == text else None
