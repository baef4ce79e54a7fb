"""API keys: secrets that callers send in a header."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from funcmcp._auth.authenticator import Challenge, Fit
from funcmcp._auth.principal import Principal
from funcmcp._auth.tokens.compact import has_shape
from funcmcp._objects.public_names import public
from funcmcp._protocol.http_rules import FIELD_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_DIGEST_PREFIX = "sha256:"
_MIN_KEY_LENGTH = 16
_SECRET = re.compile(r"[\x21-\x7e]+")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@public("funcmcp.auth")
class APIKeys:
    """An authenticator for API keys.

    Only the digests of the keys are stored. The key of a request is compared with all of them in constant time.

    Args:
        keys: The key of each caller by the caller's name. A caller may have several keys, for example while one
            replaces another. A key has at least 16 visible ASCII characters. ``"sha256:<64 hex digits>"`` is the digest
            of a key, which keeps the key itself out of the configuration.
        header: The name of the header with the key. The value of ``"authorization"`` is ``Bearer <key>``.
        scopes: Scopes of the callers, by name.
        roles: Roles of the callers, by name.

    Raises:
        TypeError: The keys are not a dict.
        ValueError: There are no keys, a key or the name of the header is invalid, two callers have the same key, or a
            caller with scopes or roles has no key.
    """

    ISSUER = "api-key"

    def __init__(
        self,
        keys: Mapping[str, str | Sequence[str]],
        *,
        header: str = "x-api-key",
        scopes: Mapping[str, Iterable[str]] | None = None,
        roles: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        if not isinstance(keys, Mapping):
            raise TypeError(
                f'APIKeys takes a dict with the key of each caller, such as {{"ada": KEY}}; got {type(keys).__name__}.'
            )
        self._header = header.lower()
        if not FIELD_NAME.fullmatch(self._header):
            raise ValueError(f"{header!r} is not a valid header name.")
        scopes = scopes or {}
        roles = roles or {}
        without_key = (scopes.keys() | roles.keys()) - keys.keys()
        if without_key:
            raise ValueError(f"These callers have scopes or roles but no key: {sorted(without_key)}.")
        self._callers: dict[bytes, Principal] = {}
        for name, values in keys.items():
            caller = Principal(
                name,
                self.ISSUER,
                name=name,
                scopes=_as_set(scopes.get(name, ())),
                roles=_as_set(roles.get(name, ())),
            )
            for key in [values] if isinstance(values, str) else values:
                if self._callers.setdefault(_digest(key, name), caller) is not caller:
                    raise ValueError(f"The key of {name!r} is also the key of another caller.")
        if not self._callers:
            raise ValueError("APIKeys needs at least one key.")

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        """Return the caller with the key in the header, a challenge for an unknown key, or None without the header."""
        key = headers.get(self._header)
        if key is not None and self._header == "authorization":
            key = _bearer_value(key)
        if key is None:
            return None
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        principal: Principal | None = None
        # The loop has no early exit: the time must not depend on the key.
        for key_digest, caller in self._callers.items():
            if hmac.compare_digest(key_digest, digest):
                principal = caller
        return principal or Challenge("invalid_token", "The API key is not known.")

    def fit(self, headers: Mapping[str, str]) -> Fit:
        """Return how well the credentials of a request fit: a key has no spaces and is no signed token."""
        key = headers.get(self._header)
        if key is not None and self._header == "authorization":
            key = _bearer_value(key)
        is_key = key is not None and _SECRET.fullmatch(key) is not None and not has_shape(key)
        return Fit.KIND if is_key else Fit.NONE


def _as_set(values: Iterable[str]) -> frozenset[str]:
    if isinstance(values, str):
        raise TypeError("Scopes and roles are lists of strings, not one string.")
    return frozenset(values)


def _bearer_value(field: str) -> str | None:
    scheme, _, value = field.partition(" ")
    return value.strip(" ") if scheme.lower() == "bearer" else None


def _digest(key: str, name: str) -> bytes:
    if key.startswith(_DIGEST_PREFIX):
        digest = key.removeprefix(_DIGEST_PREFIX).lower()
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"The digest of {name!r}'s key is not {_DIGEST_PREFIX}<64 hex digits>.")
        return bytes.fromhex(digest)
    if len(key) < _MIN_KEY_LENGTH or not _SECRET.fullmatch(key):
        raise ValueError(f"The key of {name!r} must have at least {_MIN_KEY_LENGTH} visible ASCII characters.")
    return hashlib.sha256(key.encode("ascii")).digest()
