"""Proofs that were used, and nonces for proofs: what makes a proof of possession (DPoP) good for one request.

How it works: a proof is valid until a time that is in the proof itself. So the same proof always belongs to the same
period of ten seconds, and is looked up in the set of this period alone. A set is dropped as a whole once its period is
over, never earlier: if there is no room, new proofs are refused. If the clock is set back, proofs of a dropped period
and of all earlier ones are refused, too. With a store, each proof also has a key in it, which only one instance can
take.

A nonce is a sealed time. Any instance with the same keys issues and reads it, and none is stored.

Source: RFC 9449 sections 8, 9 and 11.1.
"""

from __future__ import annotations

import hashlib
import os
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from funcmcp._state.seal import base64url
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._state.key_values import SignInStore
    from funcmcp._state.seal import KeyRing

ENTRY_BYTES = 160
"""Bytes of memory that a used proof takes up."""

NONCE_SECONDS = 300.0
"""Seconds for which a nonce is valid."""

_PERIOD = 10
_DIGEST_BYTES = 16
_MAX_NONCE = 256
_MAX_AHEAD = 60.0
"""Seconds by which the clock of the instance that has issued a nonce may be ahead."""

_PURPOSE = "dpop nonce"


class Account(Protocol):
    """Counts the memory of used proofs, for all callers and for each. `check` raises an error if there is no room."""

    def check(self, caller: str | None, amount: int) -> None: ...

    def count(self, caller: str | None, amount: int) -> None: ...

    def give_back(self, caller: str | None, amount: int) -> None: ...


class FixedAccount:
    """An account with the same room for each caller; raises StoreUnavailableError if there is none.

    Args:
        limit: Bytes for all callers.
        share: Bytes for each caller.
    """

    def __init__(self, limit: int, share: int) -> None:
        self._limit = limit
        self._share = share
        self._total = 0
        self._used: dict[str | None, int] = {}

    def check(self, caller: str | None, amount: int) -> None:
        """Raise StoreUnavailableError unless there is room for so many bytes more."""
        is_full = self._total + amount > self._limit
        if is_full or self._used.get(caller, 0) + amount > self._share:
            raise StoreUnavailableError(_PERIOD, reason="Too many proofs were used lately; try again later.")

    def count(self, caller: str | None, amount: int) -> None:
        """Count bytes that were checked."""
        self._total += amount
        self._used[caller] = self._used.get(caller, 0) + amount

    def give_back(self, caller: str | None, amount: int) -> None:
        """Release bytes that were counted."""
        self._total -= amount
        remaining = self._used.pop(caller, amount) - amount
        if remaining:
            self._used[caller] = remaining


class _Period:
    """The proofs of one period, and how many each caller has."""

    __slots__ = ("callers", "proofs")

    def __init__(self) -> None:
        self.proofs: set[bytes] = set()
        self.callers: dict[str, int] = {}


class Replays:
    """Remembers used proofs until they are not valid any more.

    Args:
        account: Counts their memory.
        clock: Returns seconds since 1970.
        store: A store that other processes reach, too; None: each process remembers the proofs that it has seen.
    """

    def __init__(self, account: Account, clock: Callable[[], float], store: SignInStore | None = None) -> None:
        self._account = account
        self._clock = clock
        self._store = store
        self._periods: dict[int, _Period] = {}
        self._dropped = 0  # the latest period whose proofs were dropped
        self._current = 0
        self._lock = Lock()  # event loops of several threads may use one server

    def __len__(self) -> int:
        return sum(len(period.proofs) for period in self._periods.values())

    async def use_once(self, proof: str, caller: str, until: float) -> bool:
        """Return whether a proof has not been used before, and remember it.

        Args:
            proof: What identifies the proof: its key and its id.
            caller: The caller, whose share of the memory it uses.
            until: When it ceases to be valid, in seconds since 1970.

        Raises:
            StoreUnavailableError: The store can't be reached, so that nothing is known about the proof.
        """
        now = self._clock()
        digest = hashlib.sha256(proof.encode("utf-8", "surrogatepass"))
        with self._lock:
            self._drop(now)
            if not self._remember(digest.digest()[:_DIGEST_BYTES], caller, until):
                return False
        if self._store is None:
            return True
        key = hashlib.sha256(b"dpop proof " + digest.digest()).hexdigest()
        return await self._store.take(key, base64url(os.urandom(_DIGEST_BYTES)), until - now + _MAX_AHEAD)

    def _remember(self, digest: bytes, caller: str, until: float) -> bool:
        number = int(until // _PERIOD) + 1
        if number <= self._dropped:
            return False
        period = self._periods.get(number)
        if period is not None and digest in period.proofs:
            return False
        self._account.check(caller, ENTRY_BYTES)
        if period is None:
            period = self._periods[number] = _Period()
        period.proofs.add(digest)
        period.callers[caller] = period.callers.get(caller, 0) + 1
        self._account.count(caller, ENTRY_BYTES)
        return True

    def _drop(self, now: float) -> None:
        """Forget the proofs of all periods that are over."""
        current = int(now // _PERIOD)
        if current == self._current:
            return
        self._current = current
        for number in [number for number in self._periods if number <= current]:
            self._dropped = max(self._dropped, number)
            for caller, count in self._periods.pop(number).callers.items():
                self._account.give_back(caller, count * ENTRY_BYTES)


class Nonces:
    """Issues and reads the nonces of one server.

    Args:
        keys: The keys of the server.
        clock: Returns seconds since 1970.
    """

    def __init__(self, keys: KeyRing, clock: Callable[[], float]) -> None:
        self._keys = keys
        self._clock = clock

    def new(self) -> str:
        """Return a nonce: visible ASCII characters without quotes and backslashes."""
        return self._keys.seal(_PURPOSE, str(int(self._clock())).encode())

    def end_of(self, nonce: object) -> float | None:
        """Return until when a nonce is valid, in seconds since 1970; None if it is not valid now."""
        if not isinstance(nonce, str) or len(nonce) > _MAX_NONCE:
            return None
        payload = self._keys.open(_PURPOSE, nonce)
        if payload is None:
            return None
        issued = int(payload)
        return issued + NONCE_SECONDS if -_MAX_AHEAD <= self._clock() - issued < NONCE_SECONDS else None
