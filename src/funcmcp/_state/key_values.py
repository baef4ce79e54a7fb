"""Stores of small values under keys, which several instances change safely: sign-ins of an `OAuthProxy`, and state.

How it works: a value is changed in two ways only. `take` creates it if the key has none, and `replace` changes it if it
still is the value that was read. So of several callers that try the same, exactly one succeeds, at whichever instance.
No two calls write the same value, as it contains random bytes. A write that is sent again after its reply was lost
finds its own value, and knows that it has succeeded.

Each engine has one class, whose subclasses differ in the `Purpose` of what they store.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import ToolError
from funcmcp._state.line_limit import LineLimit
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_SWEEP = 1000
"""Number of records at which the expired ones are removed for the first time."""

_MIB = 1024 * 1024
_RECORD_BYTES = 400
"""Bytes of memory that a record takes beside its value."""

_SIGN_IN_BYTES = 25 * 1024
"""Bytes of memory for each record of sign-ins, on average at most. One with the longest claims has some 180 KB."""

_FULL_SECONDS = 60
"""Seconds after which a client may try again if a store in memory is full."""


class Purpose(NamedTuple):
    """What a store is for. The names of existing stores must not change.

    Attributes:
        store: The name of the store in errors.
        table: The name of the table in a database.
        key: The part of a key in Redis that comes before the key of a value.
        container: The name of the container in Azure Storage, unless the author chooses another one.
    """

    store: str
    table: str
    key: str
    container: str


SIGN_INS = Purpose("store of sign-ins", "funcmcp_sign_ins_1", "sign-in", "funcmcp-sign-ins")
STATE = Purpose("store of state", "funcmcp_state_1", "state", "funcmcp-state")


@public("funcmcp.state")
@runtime_checkable
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


@public("funcmcp.state")
@runtime_checkable
class StateStore(SignInStore, Protocol):
    """Stores the state of callers, such as `Context.state`, each value until it expires.

    Keys are digests of 64 characters. Values are texts of ASCII characters, and no two calls write the same value. They
    are encrypted with the keys of the server, and may have several megabytes. Each method is atomic, and may raise
    StoreUnavailableError. `funcmcp.testing.state_store_tests` has the tests of a store.

    Attributes:
        shared: Whether other processes reach the same values.
    """


@public("funcmcp.state")
class StateFullError(ToolError):
    """The state of a caller, or the memory for the state of all callers, has no room for a value.

    Nothing has been stored. The text says what to do. A tool that does not catch it returns the text to the model.

    Args:
        message: What is full, and what to do.
        is_owner_limit: Whether the caller has reached its limit. Otherwise the store is full.
    """

    def __init__(self, message: str, *, is_owner_limit: bool = False) -> None:
        super().__init__(message)
        self.is_owner_limit = is_owner_limit


class _Record(NamedTuple):
    """A value, and when it expires."""

    value: str
    expires: float


class MemoryKeyValues:
    """Values in the memory of one process, for all its threads. They end with the process.

    Args:
        limit: Maximum number of records.
        limit_bytes: Maximum number of bytes of all records; None for no maximum.
        clock: A monotonic clock in seconds.

    Raises:
        ValueError: A limit is not positive.
    """

    shared: bool = False

    def __init__(self, *, limit: int, limit_bytes: int | None, clock: Callable[[], float]) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1; got {limit}.")
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._records: dict[str, _Record] = {}
        self._bytes = 0
        self._sweep_at = min(_FIRST_SWEEP, limit)
        self._log = LineLimit()
        self._lock = Lock()  # event loops of several threads may use one server

    def __len__(self) -> int:
        return len(self._records)

    async def get(self, key: str) -> str | None:
        """See `StateStore.get`."""
        with self._lock:
            return self._value(key)

    async def take(self, key: str, value: str, seconds: float) -> bool:
        """See `StateStore.take`."""
        with self._lock:
            current = self._value(key)
            if current is not None:
                return current == value
            if len(self._records) >= self._sweep_at:
                self._sweep()
                if len(self._records) >= self._limit:
                    raise self._full()
            self._put(key, value, seconds)
            return True

    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        """See `StateStore.replace`."""
        with self._lock:
            current = self._value(key)
            if current == old:
                self._put(key, new, seconds)
                return True
            return current == new

    async def remove(self, key: str) -> None:
        """See `StateStore.remove`."""
        with self._lock:
            self._drop(key)

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

    def _value(self, key: str) -> str | None:
        record = self._records.get(key)
        return None if record is None or self._clock() >= record.expires else record.value

    def _put(self, key: str, value: str, seconds: float) -> None:
        """Store a value; raise an error if there is no room for it."""
        if self._limit_bytes is not None and not self._has_room(key, value):
            self._sweep()
            if not self._has_room(key, value):
                raise self._full()
        self._drop(key)
        self._records[key] = _Record(value, self._clock() + seconds)
        self._bytes += _size(value)

    def _has_room(self, key: str, value: str) -> bool:
        record = self._records.get(key)
        freed = 0 if record is None else _size(record.value)
        return self._limit_bytes is None or self._bytes - freed + _size(value) <= self._limit_bytes

    def _drop(self, key: str) -> None:
        record = self._records.pop(key, None)
        if record is not None:
            self._bytes -= _size(record.value)

    def _sweep(self) -> None:
        """Remove the expired records."""
        now = self._clock()
        self._records = {key: record for key, record in self._records.items() if now < record.expires}
        self._bytes = sum(_size(record.value) for record in self._records.values())
        self._sweep_at = min(max(_FIRST_SWEEP, 2 * len(self._records)), self._limit)

    def _full(self) -> Exception:
        """Return the error for a value that has no room, and write it into the log."""
        self._log.write(
            "The memory of sign-ins is full (%d records, %d bytes). Sign-ins are answered with 503. Raise "
            "MemorySignIns(limit=), or use a store such as SQLiteSignIns.",
            len(self._records),
            self._bytes,
        )
        return StoreUnavailableError(_FULL_SECONDS, store=SIGN_INS.store, nothing_written=True)


@public("funcmcp.state")
class MemorySignIns(MemoryKeyValues):
    """Sign-ins in the memory of one process. They end with the process.

    Args:
        limit: Maximum number of records (about 2 to 6 KB each). A sign-in has two. Beyond it, sign-ins get 503. Records
            of users with long claims take more; all records have 25 KiB each on average at most.
        clock: A monotonic clock in seconds.

    Raises:
        ValueError: The limit is not positive.
    """

    def __init__(self, *, limit: int = 10_000, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(limit=limit, limit_bytes=limit * _SIGN_IN_BYTES, clock=clock)


@public("funcmcp.state")
class MemoryState(MemoryKeyValues):
    """The state of callers in the memory of one process. It ends with the process.

    Args:
        limit_bytes: Maximum number of bytes of all values, with 400 bytes for each. Beyond it, a call that stores a
            value gets StateFullError.
        clock: A monotonic clock in seconds.

    Raises:
        ValueError: The limit is not positive.
    """

    def __init__(self, *, limit_bytes: int = 128 * _MIB, clock: Callable[[], float] = monotonic) -> None:
        if limit_bytes < 1:
            raise ValueError(f"limit_bytes must be at least 1; got {limit_bytes}.")
        super().__init__(limit=max(1, limit_bytes // _RECORD_BYTES), limit_bytes=limit_bytes, clock=clock)

    def _full(self) -> Exception:
        return StateFullError(
            f"The memory for the state of all callers is full ({self._limit_bytes} bytes). Try again later. The "
            "operator can raise Limits(state_bytes=), or use a store such as SQLiteState."
        )


def _size(value: str) -> int:
    """Return the bytes of memory that a record takes. Its value is ASCII or Latin-1."""
    return _RECORD_BYTES + len(value)
