"""The keys that all processes and instances of a server share, from the environment.

How it works: the first of these sources gives the keys. FUNCMCP_KEYS has secrets that the operator chooses. On Azure
the platform sets the same 256-bit key for each instance of an app, and the keys are derived from it for this purpose
alone. Otherwise a process has a random key. `CommandKey` gives all processes of one command a common random key.

Source: RFC 5869 for HKDF. Azure's Functions host reads its key as hexadecimal if it has 64 characters, else as base64.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

from funcmcp._state.seal import KEY_BYTES, KeyRing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping
    from contextlib import AbstractContextManager

VARIABLE = "FUNCMCP_KEYS"
COMMAND_VARIABLE = "FUNCMCP_COMMAND_KEY"
"""The environment variable with the random key of a command, while its first process loads the server. In worker
processes the key is in FUNCMCP_KEYS as well, so that an equal value there is no key that an operator has set."""

PLATFORM_VARIABLES = ("WEBSITE_AUTH_ENCRYPTION_KEY", "CONTAINER_ENCRYPTION_KEY")

_HEX_CHARACTERS = 64
_SALT = b"funcmcp"
_INFO = b"key ring 1"


def configured_keys(environment: Mapping[str, str]) -> KeyRing:
    """Return the keys in FUNCMCP_KEYS, keys derived from the key of the Azure app, or a random key of this process.

    Args:
        environment: The environment variables. FUNCMCP_KEYS has base64url secrets of at least 32 bytes, separated by
            commas. The first one seals, and all of them open.

    Raises:
        ValueError: The value of a variable is invalid. The text has the name of the variable, never its value.
    """
    if VARIABLE in environment:
        ring = KeyRing([_secret(text) for text in environment[VARIABLE].split(",")])
        ring.lasting = environment.get(COMMAND_VARIABLE) != environment[VARIABLE]
        return ring
    for variable in PLATFORM_VARIABLES:
        if environment.get(variable):
            secret = _platform_secret(variable, environment[variable])
            return KeyRing([hkdf(secret, salt=_SALT, info=_INFO)])
    if environment.get(COMMAND_VARIABLE):
        ring = KeyRing([_secret(environment[COMMAND_VARIABLE])])
        ring.shared = ring.lasting = False  # only processes that replace this one get it
        return ring
    return KeyRing()


class CommandKey:
    """A random key for all processes of one command, unless the environment has keys.

    Args:
        environment: The environment variables. They have the key only inside the blocks of the methods.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        self._environment = environment
        self._key: str | None = None
        if not any(environment.get(variable) for variable in (VARIABLE, *PLATFORM_VARIABLES)):
            self._key = secrets.token_urlsafe(KEY_BYTES)

    def in_this_process(self) -> AbstractContextManager[None]:
        """Give the key to a server that is created inside a ``with`` block. It still counts as a random one."""
        return self._set(COMMAND_VARIABLE)

    def in_children(self) -> AbstractContextManager[None]:
        """Give the key to processes that start inside a ``with`` block."""
        return self._set(VARIABLE, COMMAND_VARIABLE)

    @contextlib.contextmanager
    def _set(self, *variables: str) -> Iterator[None]:
        if self._key is None:
            yield
            return
        before = {variable: self._environment.get(variable) for variable in variables}
        self._environment.update(dict.fromkeys(variables, self._key))
        try:
            yield
        finally:
            for variable, value in before.items():
                if value is None:
                    del self._environment[variable]
                else:
                    self._environment[variable] = value


def hkdf(secret: bytes, *, salt: bytes, info: bytes) -> bytes:
    """Return 32 bytes derived with HKDF-SHA-256. This length needs a single round of the expand step."""
    extracted = hmac.digest(salt, secret, hashlib.sha256)
    return hmac.digest(extracted, info + b"\x01", hashlib.sha256)


def _secret(text: str) -> bytes:
    unpadded = text.strip().rstrip("=").replace("+", "-").replace("/", "_")
    try:
        secret = base64.b64decode(unpadded + "=" * (-len(unpadded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) < KEY_BYTES:
        raise ValueError(
            f"The environment variable {VARIABLE} must contain secrets of at least {KEY_BYTES} bytes in base64url, "
            f'separated by commas. To create one: python -c "import secrets; print(secrets.token_urlsafe({KEY_BYTES}))"'
        )
    return secret


def _platform_secret(variable: str, text: str) -> bytes:
    try:
        secret = bytes.fromhex(text) if len(text) == _HEX_CHARACTERS else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) < KEY_BYTES:
        raise ValueError(
            f"The environment variable {variable} must contain a key of {KEY_BYTES} bytes in hexadecimal or base64, "
            f"as Azure sets it. To use other keys, set {VARIABLE}."
        )
    return secret
