"""Where the keys come from that all processes and instances of a server share.

Source: RFC 5869 for HKDF. On Azure the platform gives every instance of an app the same 256-bit key, in hexadecimal
or base64 as its own functions host reads it: 64 characters are hexadecimal.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

from funcmcp.state.seal import KEY_BYTES, KeyRing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

VARIABLE = "FUNCMCP_KEYS"
PLATFORM_VARIABLES = ("WEBSITE_AUTH_ENCRYPTION_KEY", "CONTAINER_ENCRYPTION_KEY")

_HEX_CHARACTERS = 64
_SALT = b"funcmcp"
_INFO = b"key ring 1"


def configured_keys(environment: Mapping[str, str]) -> KeyRing:
    """Return the keys that the environment gives.

    These are the secrets in FUNCMCP_KEYS, or else one derived from the key that Azure gives the app, or else a random
    one that no other process has.

    Args:
        environment: such as `os.environ`. FUNCMCP_KEYS has base64url secrets of at least 32 bytes with commas between
            them; the first one seals, and all of them open.

    Raises:
        ValueError: a variable is set to something else. The text names the variable and never what is in it.
    """
    if VARIABLE in environment:
        return KeyRing([_secret(text) for text in environment[VARIABLE].split(",")])
    for variable in PLATFORM_VARIABLES:
        if environment.get(variable):
            secret = _platform_secret(variable, environment[variable])
            return KeyRing([hkdf(secret, salt=_SALT, info=_INFO)])
    return KeyRing()


@contextlib.contextmanager
def shared_by_children(environment: MutableMapping[str, str]) -> Iterator[None]:
    """Give processes that are started inside a ``with`` block one random key, unless the environment gives some."""
    if any(environment.get(variable) for variable in (VARIABLE, *PLATFORM_VARIABLES)):
        yield
        return
    environment[VARIABLE] = secrets.token_urlsafe(KEY_BYTES)
    try:
        yield
    finally:
        del environment[VARIABLE]


def hkdf(secret: bytes, *, salt: bytes, info: bytes) -> bytes:
    """Return 32 bytes derived with HKDF-SHA-256; for so many, one round of its second step is enough."""
    extracted = hmac.digest(salt, secret, hashlib.sha256)
    return hmac.digest(extracted, info + b"\x01", hashlib.sha256)


def _secret(text: str) -> bytes:
    given = text.strip().rstrip("=").replace("+", "-").replace("/", "_")
    try:
        secret = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) < KEY_BYTES:
        raise ValueError(
            f"The environment variable {VARIABLE} must be secrets of at least {KEY_BYTES} bytes in base64url, with "
            f'commas between them. To make one: python -c "import secrets; print(secrets.token_urlsafe({KEY_BYTES}))"'
        )
    return secret


def _platform_secret(variable: str, text: str) -> bytes:
    try:
        secret = bytes.fromhex(text) if len(text) == _HEX_CHARACTERS else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) < KEY_BYTES:
        raise ValueError(
            f"The environment variable {variable} must be a key of {KEY_BYTES} bytes, in hexadecimal or base64 as "
            f"Azure has it. To use other keys, set {VARIABLE}."
        )
    return secret
