"""Tokens for other APIs on behalf of the user of a call.

How it works: the access token of the proxy carries the provider's access token of the sign-in, encrypted. A tool that
needs a token for another API lets the provider exchange it (RFC 8693, or Entra's on-behalf-of). The token of the client
itself is never sent anywhere.

Why it is in the token, and not in a store: no store is needed, any instance can exchange it, and it ends with the token
that carries it. Only a server with the same keys can read it, and with Entra only the application's credential can
exchange it, so that a stolen token opens no other API. The provider's refresh token, which lasts longer and opens more,
is never in an access token. So the proxy's access token expires with the provider's at the latest, and the next refresh
of the client brings a new one.

Tokens for other APIs are kept in memory for the sign-in that they come from, until a minute before they expire.
"""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from funcmcp._auth.access import distinct
from funcmcp._auth.principal import UpstreamTokenError
from funcmcp._oauth_proxy.failures import PROVIDER_AWAY, PROVIDER_REFUSED, PROVIDER_REFUSES_SERVER
from funcmcp._oauth_proxy.upstream import (
    UpstreamMisconfiguredError,
    UpstreamRefusedError,
    UpstreamUnavailableError,
)
from funcmcp._state.line_limit import LineLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._auth.principal import UpstreamTokens
    from funcmcp._oauth_proxy.upstream import IssuedToken, TokenExchanger
    from funcmcp._state.seal import KeyRing

CLAIM: Final = "upstream"
"""The claim of an access token of the proxy with the provider's access token, encrypted."""

_PURPOSE: Final = "oauth upstream"
_MAX_TOKEN: Final = 4096
"""Maximum number of characters of a token that is kept: many proxies take headers of 8 KiB at most."""

_MARGIN: Final = 60.0
_MAX_CACHED: Final = 1024
_MAX_CACHED_TOKEN: Final = 8192
"""Maximum number of characters of a token that is cached, so that the cache takes 8 MiB at most."""


class _Key(NamedTuple):
    """What a token for another API was requested with: the digest of the sign-in, scopes and audience."""

    sign_in: bytes
    scopes: tuple[str, ...]
    audience: str | None


class _Cached(NamedTuple):
    token: str
    until: float


class Exchange:
    """Exchanges the access tokens of sign-ins for tokens for other APIs.

    Args:
        upstream: The identity provider.
        keys: Encrypt the access tokens of sign-ins.
        log_failure: Writes a line about a request that has failed.
    """

    def __init__(self, upstream: TokenExchanger, keys: KeyRing, log_failure: Callable[[str, Exception], None]) -> None:
        self._upstream = upstream
        self._keys = keys
        self._log_failure = log_failure
        self._too_long = LineLimit()
        self._cached: dict[_Key, _Cached] = {}
        self._running: dict[_Key, asyncio.Task[str]] = {}

    def conceal(self, access_token: IssuedToken) -> str | None:
        """Return the access token of a sign-in for the claim of a token; None if it is too long."""
        if len(access_token.token) > _MAX_TOKEN:
            self._too_long.write(
                "event=oauth_upstream_token_too_long characters=%d: tools get no tokens for other APIs.",
                len(access_token.token),
            )
            return None
        return self._keys.conceal(_PURPOSE, access_token.token.encode())

    def tokens_of(self, claim: object) -> UpstreamTokens | None:
        """Return what gives a caller's tools tokens for other APIs; None if the caller's token has no sign-in."""
        return partial(self._token, claim) if isinstance(claim, str) else None

    async def _token(self, claim: str, scopes: Sequence[str], audience: str | None) -> str:
        """Return a token for another API; raise UpstreamTokenError."""
        key = _Key(hashlib.sha256(claim.encode()).digest(), distinct(scopes), audience)
        cached = self._cached.get(key)
        if cached is not None and monotonic() < cached.until:
            return cached.token
        running = self._running.get(key)
        if running is None or running.done() or running.get_loop() is not asyncio.get_running_loop():
            running = self._running[key] = asyncio.create_task(self._requested(key, claim))
            running.add_done_callback(lambda task: self._forget(key, task))
        # The shield keeps the shared request running if this caller is cancelled.
        return await asyncio.shield(running)

    async def _requested(self, key: _Key, claim: str) -> str:
        """Exchange the token of a sign-in, and cache the answer."""
        subject_token = self._keys.reveal(_PURPOSE, claim)
        if subject_token is None:
            raise UpstreamTokenError("sign_in", "The sign-in is of an older key of the server. Sign in again.")
        started = monotonic()
        try:
            issued = await self._upstream.exchange_token(
                subject_token.decode(errors="replace"), key.scopes, key.audience
            )
        except UpstreamRefusedError as error:
            self._log_failure("exchange", error)
            text = error.advice
            if text is None or text == PROVIDER_REFUSED.user:
                text = "The identity provider gives no token for the other service. Sign in again."
            raise UpstreamTokenError("sign_in", text) from error
        except UpstreamUnavailableError as error:
            self._log_failure("exchange", error)
            raise _unavailable(error) from error
        if issued.seconds is not None and issued.seconds > _MARGIN and len(issued.token) <= _MAX_CACHED_TOKEN:
            self._remember(key, _Cached(issued.token, started + issued.seconds - _MARGIN))
        return issued.token

    def _remember(self, key: _Key, cached: _Cached) -> None:
        if len(self._cached) >= _MAX_CACHED:
            now = monotonic()
            self._cached = {name: value for name, value in self._cached.items() if now < value.until}
        if len(self._cached) >= _MAX_CACHED:
            del self._cached[next(iter(self._cached))]
        self._cached[key] = cached

    def _forget(self, key: _Key, task: asyncio.Task[str]) -> None:
        if self._running.get(key) is task:
            del self._running[key]
        if not task.cancelled():
            task.exception()  # a caller that was cancelled does not retrieve it


def _unavailable(error: UpstreamUnavailableError) -> UpstreamTokenError:
    if isinstance(error, UpstreamMisconfiguredError):
        return UpstreamTokenError("configuration", error.advice or PROVIDER_REFUSES_SERVER.user)
    return UpstreamTokenError("unavailable", error.advice or PROVIDER_AWAY.user)
