"""Stores for the sign-ins of an `OAuthProxy`: small encrypted records that several instances change safely.

How it works: a record is changed in two ways only. `SignInStore.take` creates it if it does not exist, and
`SignInStore.replace` changes it if it still has the value that was read. So of several callers that try the same,
exactly one succeeds, at whichever instance. Each value that is written is different, as it is encrypted with random
bytes. A write that is sent again after its reply was lost finds its own value, and knows that it has succeeded.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol

from funcmcp._public_names import public
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_SWEEP = 1000
"""Number of records at which the expired ones are removed for the first time."""

STORE = "store of sign-ins"
"""The name of the store in errors."""


@public("funcmcp.state")
class SignInStore(Protocol):
    """Stores records for an `OAuthProxy`, each until it expires.

    Keys are digests of 64 characters. Values are encrypted texts of ASCII characters, and no two calls write the same
    value. Each method is atomic, and may raise StoreUnavailableError.

    Attributes:
        shared: Whether other processes reach the same records.
    """

    shared: bool

    async def get(self, key: str) -> str | None:
        """Return the value of a key; None if it has none, or if it has expired."""

    async def take(self, key: str, value: str, seconds: float) -> bool:
        """Store a value under a key that has none; return whether the key has this value now.

        Args:
            key: The key.
            value: The value.
            seconds: Seconds after which the value expires.
        """

    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        """Store a value in place of another one; return whether the key has the new value now.

        Args:
            key: The key.
            old: The value that the key must have.
            new: The value that it gets.
            seconds: Seconds after which the new value expires.
        """

    async def remove(self, key: str) -> None:
        """Remove the value of a key, if it has one."""

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""


class _Record(NamedTuple):
    """A value, and when it expires."""

    value: str
    expires: float


@public("funcmcp.state")
class MemorySignIns:
    """Sign-ins in the memory of one process. They end with the process.

    Args:
        limit: Maximum number of records (about 2 to 6 KB each). A sign-in has two. Beyond it, sign-ins get 503.
        clock: A monotonic clock in seconds.

    Raises:
        ValueError: The limit is not positive.
    """

    shared: bool = False

    def __init__(self, *, limit: int = 10_000, clock: Callable[[], float] = monotonic) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1; got {limit}.")
        self._limit = limit
        self._clock = clock
        self._records: dict[str, _Record] = {}
        self._sweep_at = min(_FIRST_SWEEP, limit)

    def __len__(self) -> int:
        return len(self._records)

    async def get(self, key: str) -> str | None:
        """See `SignInStore.get`."""
        return self._value(key)

    async def take(self, key: str, value: str, seconds: float) -> bool:
        """See `SignInStore.take`."""
        current = self._value(key)
        if current is not None:
            return current == value
        if len(self._records) >= self._sweep_at:
            self._sweep()
        self._records[key] = _Record(value, self._clock() + seconds)
        return True

    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        """See `SignInStore.replace`."""
        current = self._value(key)
        if current == old:
            self._records[key] = _Record(new, self._clock() + seconds)
            return True
        return current == new

    async def remove(self, key: str) -> None:
        """See `SignInStore.remove`."""
        self._records.pop(key, None)

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

    def _value(self, key: str) -> str | None:
        record = self._records.get(key)
        return None if record is None or self._clock() >= record.expires else record.value

    def _sweep(self) -> None:
        """Remove the expired records; raise StoreUnavailableError if there is no room for another one."""
        now = self._clock()
        self._records = {key: record for key, record in self._records.items() if now < record.expires}
        self._sweep_at = min(max(_FIRST_SWEEP, 2 * len(self._records)), self._limit)
        if len(self._records) >= self._limit:
            raise StoreUnavailableError(60, store=STORE, nothing_written=True)
