"""Renewals by the identity provider that have not reached the client, for the next attempt.

How it works: without a store, nothing remembers what the provider has given for a refresh token. If a function of the
author then fails, the client sends its refresh token again, and the provider may accept its own only once. So the
answer of the provider stays in memory for a few minutes, and counts for the same refresh token in the same process.
"""

from __future__ import annotations

import hashlib
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._oauth_proxy.upstream import SignIn

_SECONDS: Final = 300.0
_MAX_RENEWALS: Final = 200
"""Maximum number of renewals, so that they take some 50 MiB with the longest answers."""


class _Renewal(NamedTuple):
    sign_in: SignIn
    until: float


class Renewals:
    """Renewals of one process, by the refresh token of the client.

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._renewals: dict[bytes, _Renewal] = {}

    def get(self, refresh_token: str) -> SignIn | None:
        """Return what the provider has given for a refresh token; None if it has to be asked."""
        renewal = self._renewals.get(_digest(refresh_token))
        return None if renewal is None or self._clock() >= renewal.until else renewal.sign_in

    def keep(self, refresh_token: str, sign_in: SignIn) -> None:
        """Keep what the provider has given. A further attempt does not prolong the time."""
        now, digest = self._clock(), _digest(refresh_token)
        if digest not in self._renewals:
            self._renewals = {key: renewal for key, renewal in self._renewals.items() if now < renewal.until}
            if len(self._renewals) >= _MAX_RENEWALS:  # the oldest one leaves
                del self._renewals[next(iter(self._renewals))]
            self._renewals[digest] = _Renewal(sign_in, now + _SECONDS)

    def forget(self, refresh_token: str) -> None:
        """Forget what the provider has given: the client has its tokens, or may not have any."""
        self._renewals.pop(_digest(refresh_token), None)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
