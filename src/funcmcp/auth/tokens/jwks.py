"""The keys that an issuer publishes, fetched when they are needed and kept.

Source: RFC 7517 section 5 (a set has keys that are not for us: they are passed over); MCP security best practices,
"Server-Side Request Forgery" (only the configured URL is fetched, redirects are not followed).
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING, Any

from funcmcp.auth.tokens.compact import TokenError
from funcmcp.auth.tokens.keys import SHARED_SECRET_ALGORITHMS, UnfitKeyError, read_key, sort_out
from funcmcp.auth.urls import checked
from funcmcp.protocol.codec import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ssl import SSLContext

    from funcmcp.auth.tokens.compact import SignedToken
    from funcmcp.auth.tokens.keys import VerificationKey


class _BadAnswerError(ValueError):
    """The issuer answers, but not with keys; the text says why and repeats nothing of the answer."""


_logger = logging.getLogger("funcmcp")

_SHORTEST_LIFETIME = 300.0
_PAUSE = 30.0
"""Seconds between two fetches, however many unknown keys are named: anybody can name one."""

_PAUSE_WITHOUT_KEYS = 5.0
_LONGEST_USE = 86_400.0
_LARGEST = 256 * 1024
_OK = 200


class JWKS:
    """The keys at a URL.

    They are fetched when the first token comes. Keys older than `lifetime` are fetched anew beside the requests; a
    token waits for the fetch only if none has been tried for long, or if it names an unknown key, for which there is a
    fetch at most every 30 seconds. While the issuer can't be reached, the keys that were fetched last stay good for a
    day.

    Args:
        url: the `jwks_uri` of the issuer: https, or http on a loopback address.
        lifetime: seconds, at least 300, for which keys are not fetched again.
        timeout: seconds that a fetch may take in all.
        clock: returns seconds that never go backwards.

    Raises:
        ValueError: the URL or the lifetime is not as above.
    """

    def __init__(
        self, url: str, *, lifetime: float = 300.0, timeout: float = 5.0, clock: Callable[[], float] = monotonic
    ) -> None:
        parts = checked("The URL of a JWKS", url)
        if not lifetime >= _SHORTEST_LIFETIME:
            raise ValueError(f"The lifetime of keys is at least {_SHORTEST_LIFETIME:.0f} seconds.")
        self._url = url
        self._name = f"{parts.scheme}://{parts.netloc}{parts.path}"
        self._lifetime = lifetime
        self._timeout = timeout
        self._clock = clock
        self._keys: tuple[VerificationKey, ...] = ()
        self._fetched = 0.0
        self._next_fetch = -_LONGEST_USE
        self._fetching: asyncio.Task[None] | None = None
        self._tls: SSLContext | None = None

    async def find(self, token: SignedToken) -> Sequence[VerificationKey]:
        """Return the keys that a token may be signed with; raise TokenError while the issuer's keys can't be had."""
        now = self._clock()
        age = now - self._fetched
        if age > _LONGEST_USE:
            self._keys = ()
        found = self._fitting(token)
        if found and age < self._lifetime:
            return found
        after_a_pause = now >= self._next_fetch + self._lifetime
        fetching = self._fetch(now)
        if fetching is not None and (after_a_pause or not found):
            # Whoever waits may go away; the fetch is everybody's and goes on.
            await asyncio.shield(fetching)
            found = self._fitting(token)
        if not self._keys:
            raise TokenError("The keys of the issuer can't be had now.")
        return found

    def _fitting(self, token: SignedToken) -> Sequence[VerificationKey]:
        return [key for key in self._keys if key.fits(token)]

    def _fetch(self, now: float) -> asyncio.Task[None] | None:
        """Return the fetch that is under way, a new one, or None while it is too early for another."""
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
        except Exception as error:  # noqa: BLE001 - whatever it is, the keys that are here stay good
            reason = str(error) if isinstance(error, _BadAnswerError) else type(error).__name__
            _logger.warning("event=jwks_fetch_failed url=%s reason=%s", self._name, reason)
        else:
            self._fetched = self._clock()
            self._next_fetch = self._fetched + _PAUSE

    async def _get(self) -> bytes:
        import httpx2  # noqa: PLC0415 - takes longer to load than all of this room, and given keys don't need it

        if self._tls is None:  # reading all the authorities of the world takes longer than a fetch
            self._tls = httpx2.create_ssl_context()
        # Nothing is decompressed: a few bytes could become too many.
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        body = bytearray()
        async with (
            asyncio.timeout(self._timeout),
            httpx2.AsyncClient(verify=self._tls, headers=headers, timeout=None) as client,
            client.stream("GET", self._url, follow_redirects=False) as response,
        ):
            if response.status_code != _OK:
                raise _BadAnswerError(f"it answers {response.status_code}")
            async for part in response.aiter_raw():
                body += part
                if len(body) > _LARGEST:
                    raise _BadAnswerError("its answer is too large")
        return bytes(body)


def _read(document: bytes) -> tuple[VerificationKey, ...]:
    """Return the usable public keys of a set; raise ValueError for what is none, and for one without such keys."""
    value = decode(document)
    jwks = value.get("keys") if isinstance(value, dict) else None
    keys = [key for jwk in jwks if (key := _read_one(jwk)) is not None] if isinstance(jwks, list) else []
    usable = sort_out(keys)
    if not usable:
        raise _BadAnswerError("its answer has no usable keys")
    return usable


def _read_one(jwk: Any) -> VerificationKey | None:
    """Return a public key, or None: who publishes a secret has no secret."""
    try:
        key = read_key(jwk) if isinstance(jwk, dict) else None
    except UnfitKeyError:
        return None
    return key if key is not None and key.algorithms.isdisjoint(SHARED_SECRET_ALGORITHMS) else None
