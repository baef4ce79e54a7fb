"""API keys: secrets that callers send in a header."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING

from funcmcp.auth.authenticator import Challenge
from funcmcp.auth.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_DIGEST_PREFIX = "sha256:"
_SHORTEST = 16
_HEADER = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
_SECRET = re.compile(r"[\x21-\x7e]+")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class APIKeys:
    """Accepts callers that send one of some keys.

    Only digests of the keys are kept, and each one given is compared with all of them in constant time.

    Args:
        keys: the key of each caller by the caller's name, or several of them where one takes over from another. A key
            has at least 16 visible ASCII characters; ``"sha256:<64 hex digits>"`` is the digest of one, so that a
            configuration need not hold the key itself.
        header: the header that carries the key. In ``"authorization"`` it comes as ``Bearer <key>``.
        scopes: what callers are allowed, by name.
        roles: what callers are, by name.

    Raises:
        ValueError: there is no key, a key or the header's name is not as above, a key belongs to two callers, or
            scopes or roles are of somebody without a key.
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
        self._header = header.lower()
        if not _HEADER.fullmatch(self._header):
            raise ValueError(f"{header!r} is no name of a header.")
        scopes, roles = scopes or {}, roles or {}
        strangers = (scopes.keys() | roles.keys()) - keys.keys()
        if strangers:
            raise ValueError(f"Scopes or roles of {sorted(strangers)}, who have no key.")
        self._callers: dict[bytes, Principal] = {}
        for name, given in keys.items():
            caller = Principal(
                name, self.ISSUER, name=name, scopes=_set(scopes.get(name, ())), roles=_set(roles.get(name, ()))
            )
            for key in [given] if isinstance(given, str) else given:
                if self._callers.setdefault(_digest(key, name), caller) is not caller:
                    raise ValueError(f"The key of {name!r} is another caller's, too.")
        if not self._callers:
            raise ValueError("APIKeys needs at least one key.")

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        """Return the caller whose key came, a challenge for an unknown key, or None without the header."""
        given = headers.get(self._header)
        if given is not None and self._header == "authorization":
            given = _bearer(given)
        if given is None:
            return None
        digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest()
        found: Principal | None = None
        for known, caller in self._callers.items():  # all of them: the time taken must not tell which one it was
            if hmac.compare_digest(known, digest):
                found = caller
        return found or Challenge("invalid_token", "The API key is not known.")


def _set(values: Iterable[str]) -> frozenset[str]:
    if isinstance(values, str):
        raise TypeError("Scopes and roles are lists of strings, not one string.")
    return frozenset(values)


def _bearer(field: str) -> str | None:
    scheme, _, given = field.partition(" ")
    return given.strip(" ") if scheme.lower() == "bearer" else None


def _digest(key: str, name: str) -> bytes:
    if key.startswith(_DIGEST_PREFIX):
        digest = key.removeprefix(_DIGEST_PREFIX).lower()
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"The digest of {name!r}'s key is not {_DIGEST_PREFIX}<64 hex digits>.")
        return bytes.fromhex(digest)
    if len(key) < _SHORTEST or not _SECRET.fullmatch(key):
        raise ValueError(f"The key of {name!r} must have at least {_SHORTEST} visible ASCII characters.")
    return hashlib.sha256(key.encode("ascii")).digest()
