"""The published keys of an issuer, requested when they are needed and cached.

How it works: the cached keys are missing, fresh (younger than the lifetime), stale, or expired (older than a day).

- Missing or expired keys: a token starts a request for keys and waits for it.
- Fresh keys: no request, except for a token with an unknown key, which waits for it.
- Stale keys: a request runs in the background. Tokens wait for it only if none has been tried for a whole lifetime. If
  it fails, the keys stay valid until they expire.

One request runs at a time and all tokens share it. It continues if one of their callers is cancelled. At least 30
seconds (5 without any keys) are between two requests, because any client can name an unknown key.

Source: RFC 7517 section 5 (a set may contain other keys: they are ignored); MCP security best practices,
"Server-Side Request Forgery" (only the configured URL is fetched, redirects are not followed).
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING, Any

from funcmcp._auth.authorities import checked_ca_file, tls_context
from funcmcp._auth.connection_errors import reason_of
from funcmcp._auth.tokens.compact import MissingKeyError
from funcmcp._auth.tokens.keys import SHARED_SECRET_ALGORITHMS, UnfitKeyError, read_key, without_ambiguous
from funcmcp._auth.urls import checked, checked_insecure_hosts
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Sequence
    from ssl import SSLContext

    from funcmcp._auth.tokens.compact import SignedToken
    from funcmcp._auth.tokens.keys import VerificationKey


class _InvalidResponseError(ValueError):
    """The response of the issuer has no usable keys. The text is the reason, without any part of the response."""


_logger = logging.getLogger("funcmcp")

_MIN_LIFETIME = 300.0
_PAUSE = 30.0
"""Minimum number of seconds between two requests for keys."""

_PAUSE_WITHOUT_KEYS = 5.0
_MAX_AGE = 86_400.0
_MAX_RESPONSE = 256 * 1024
_OK = 200


@public("funcmcp.auth")
class JWKS:
    """The keys at a URL of an issuer.

    The keys are requested with the first token, and again after *lifetime* or for an unknown key. While the issuer is
    unreachable, the last keys stay valid for a day.

    Args:
        url: The ``jwks_uri`` of the issuer: https, or http on a loopback address.
        lifetime: Seconds for which keys are not requested again, at least 300.
        timeout: Maximum number of seconds for a request.
        ca_file: A PEM file with certificate authorities that are trusted as well, for an issuer with a private one.
        insecure_hosts: Hosts, with their port, whose URL may begin with ``http://``, such as ``["keycloak:8080"]``. For
            development only: whoever can change the answers can sign tokens.
        clock: A monotonic clock.

    Raises:
        TypeError: *insecure_hosts* is one string.
        ValueError: The URL, the lifetime, the file or a host is invalid.
    """

    def __init__(
        self,
        url: str,
        *,
        lifetime: float = 300.0,
        timeout: float = 5.0,
        ca_file: str | os.PathLike[str] | None = None,
        insecure_hosts: Collection[str] = (),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        parts = checked("The URL of a JWKS", url, checked_insecure_hosts("JWKS.insecure_hosts", insecure_hosts))
        if not lifetime >= _MIN_LIFETIME:
            raise ValueError(f"The lifetime of keys must be at least {_MIN_LIFETIME:.0f} seconds.")
        self._url = url
        self._name = f"{parts.scheme}://{parts.netloc}{parts.path}"
        self._lifetime = lifetime
        self._timeout = timeout
        self._ca_file = checked_ca_file("JWKS.ca_file", ca_file)
        self._clock = clock
        self._keys: tuple[VerificationKey, ...] = ()
        self._fetched = 0.0
        self._next_fetch = -_MAX_AGE
        self._fetching: asyncio.Task[None] | None = None
        self._tls: SSLContext | None = None

    async def find(self, token: SignedToken) -> Sequence[VerificationKey]:
        """Return the keys that may verify a token; raise MissingKeyError while no keys are available."""
        now = self._clock()
        age = now - self._fetched
        if age > _MAX_AGE:
            self._keys = ()
        keys = self._keys_for(token)
        if keys and age < self._lifetime:
            return keys
        not_tried_lately = now >= self._next_fetch + self._lifetime
        fetching = self._fetch(now)
        if fetching is not None and (not_tried_lately or not keys):
            # The shield keeps the shared request running if this caller is cancelled.
            await asyncio.shield(fetching)
            keys = self._keys_for(token)
        if not self._keys:
            raise MissingKeyError("The keys of the issuer are not available.")
        return keys

    def _keys_for(self, token: SignedToken) -> Sequence[VerificationKey]:
        return [key for key in self._keys if key.fits(token)]

    def _fetch(self, now: float) -> asyncio.Task[None] | None:
        """Return the running request or a new one, or None during the pause between two requests."""
        running = self._fetching
        if running is not None and not running.done() and running.get_loop() is asyncio.get_running_loop():
            return running
        if now < self._next_fetch:
            return None
        self._next_fetch = now + (_PAUSE if self._keys else _PAUSE_WITHOUT_KEYS)
        self._fetching = asyncio.create_task(self._replace_keys())
        return self._fetching

    async def _replace_keys(self) -> None:
        try:
            self._keys = _read(await self._get())
        except Exception as error:  # noqa: BLE001 - the current keys stay valid after any failure
            reason = str(error) if isinstance(error, _InvalidResponseError) else reason_of(error)
            _logger.warning("event=jwks_fetch_failed url=%s reason=%s", self._name, reason)
        else:
            self._fetched = self._clock()
            self._next_fetch = self._fetched + _PAUSE

    async def _get(self) -> bytes:
        import httpx2  # noqa: PLC0415 - slow to load, and StaticKeys don't need it

        if self._tls is None:  # loading the certificate authorities takes longer than a request
            self._tls = tls_context(self._ca_file)
        # A compressed response could become very large, so none is accepted.
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        body = bytearray()
        async with (
            asyncio.timeout(self._timeout),
            httpx2.AsyncClient(verify=self._tls, headers=headers, timeout=None) as client,
            client.stream("GET", self._url, follow_redirects=False) as response,
        ):
            if response.status_code != _OK:
                raise _InvalidResponseError(f"status {response.status_code}")
            async for part in response.aiter_raw():
                body += part
                if len(body) > _MAX_RESPONSE:
                    raise _InvalidResponseError("the response is too large")
        return bytes(body)


def _read(document: bytes) -> tuple[VerificationKey, ...]:
    """Return the usable public keys of a key set; raise ValueError if there are none."""
    value = decode(document)
    jwks = value.get("keys") if isinstance(value, dict) else None
    keys: list[VerificationKey] = []
    for jwk in jwks if isinstance(jwks, list) else []:
        key = _read_public_key(jwk)
        if key is not None:
            keys.append(key)
    usable = without_ambiguous(keys)
    if not usable:
        raise _InvalidResponseError("the response has no usable keys")
    return usable


def _read_public_key(jwk: Any) -> VerificationKey | None:
    """Return a public key, or None for any other value. A published secret is not secret."""
    try:
        key = read_key(jwk) if isinstance(jwk, dict) else None
    except UnfitKeyError:
        return None
    return key if key is not None and key.algorithms.isdisjoint(SHARED_SECRET_ALGORITHMS) else None
