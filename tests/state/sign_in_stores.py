"""What holds for every store of sign-ins; the tests of each store call these functions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp.state import SignInStore

KEYS = [digit * 64 for digit in "0123456789abcdef"]


async def check_values(here: SignInStore, there: SignInStore) -> None:
    """Check that two instances read, take, replace and remove the same values."""
    key, other = KEYS[:2]
    assert await here.get(key) is None
    assert await here.take(key, "c1.first", 60)
    assert [await store.get(key) for store in (here, there)] == ["c1.first"] * 2
    assert not await there.take(key, "c1.second", 60)
    assert not await there.replace(key, "c1.second", "c1.third", 60)
    assert await there.replace(key, "c1.first", "c1.second", 60)
    assert not await here.replace(key, "c1.first", "c1.third", 60)
    assert await here.get(key) == "c1.second"
    assert not await here.replace(other, "c1.first", "c1.second", 60)
    assert await here.get(other) is None
    await here.remove(key)
    await here.remove(key)
    assert not await there.replace(key, "c1.second", "c1.third", 60)
    assert await there.take(key, "c1.fourth", 60)


async def check_repeated_writes(store: SignInStore) -> None:
    """Check that a write whose reply was lost is successful when it is sent again."""
    key = KEYS[2]
    assert [await store.take(key, "c1.first", 60) for _ in range(2)] == [True, True]
    assert [await store.replace(key, "c1.first", "c1.second", 60) for _ in range(2)] == [True, True]
    assert await store.get(key) == "c1.second"


async def check_races(here: SignInStore, there: SignInStore) -> None:
    """Check that of many callers at two instances, one takes a key, and one replaces its value."""
    key, stores = KEYS[3], [here, there]
    takes = [stores[number % 2].take(key, f"c1.{number}", 60) for number in range(50)]
    taken = await asyncio.gather(*takes)
    assert taken.count(True) == 1
    value = f"c1.{taken.index(True)}"
    assert await there.get(key) == value
    replacements = [stores[number % 2].replace(key, value, f"c2.{number}", 60) for number in range(50)]
    replaced = await asyncio.gather(*replacements)
    assert replaced.count(True) == 1
    assert await here.get(key) == f"c2.{replaced.index(True)}"


async def check_expiry(store: SignInStore, wait: Callable[[float], Awaitable[None]]) -> None:
    """Check that values expire, and that an expired value is none."""
    taken, replaced, lasting = KEYS[4:7]
    await store.take(taken, "c1.first", 0.2)
    await store.take(replaced, "c1.first", 60)
    await store.replace(replaced, "c1.first", "c1.second", 0.2)
    await store.take(lasting, "c1.first", 0.2)
    await store.replace(lasting, "c1.first", "c1.second", 60)
    await wait(0.3)
    assert await store.get(taken) is None
    assert not await store.replace(taken, "c1.first", "c1.second", 60)
    assert await store.get(replaced) is None
    assert await store.take(replaced, "c1.third", 60)
    assert await store.get(lasting) == "c1.second"
