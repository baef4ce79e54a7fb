"""What holds for every store of state; the tests of each store call `check_state`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from funcmcp._state.caller_values import CallerValues, ValueOwner
from funcmcp.state import KeyRing

if TYPE_CHECKING:
    from funcmcp.state import StateStore

ADA, BOB = ValueOwner("ada"), ValueOwner("bob")
LARGE = bytes(range(256)) * 4096
KEYS = KeyRing([b"k" * 32])


def values_in(store: StateStore) -> CallerValues:
    """Return the values of callers in a store, with the limits of tests."""
    return CallerValues(store, KEYS, "Orders", owner_bytes=4 * 1024 * 1024, owner_values=50)


async def check_state(here: StateStore, there: StateStore) -> None:
    """Check that two instances have the same values of callers, small and large ones, and lose no change."""
    first, second = values_in(here), values_in(there)
    await first.put(ADA, "cart", b"1 pizza", 60)
    await first.put(ADA, "report", LARGE, 60)
    assert await second.get(ADA, "cart") == b"1 pizza"
    assert await second.get(ADA, "report") == LARGE
    assert await second.get(BOB, "cart") is None
    assert await second.names(ADA) == ["cart", "report"]

    def add(value: bytes | None) -> bytes:
        return str(int(value or b"0") + 1).encode()

    changes = [values.change(ADA, "count", add, 60) for values in (first, second) * 6]
    assert sorted(map(int, filter(None, await asyncio.gather(*changes)))) == list(range(1, 13))
    await second.put(ADA, "report", LARGE[1:], 60)
    assert await first.get(ADA, "report") == LARGE[1:]
    assert await second.remove(ADA, "report")
    assert not await first.remove(ADA, "report")
    assert await first.names(ADA) == ["cart", "count"]
