"""Sign-ins and state in the memory of one process."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from funcmcp.state import MemorySignIns, MemoryState, StoreUnavailableError
from funcmcp.testing import state_store_tests
from tests.clock import Clock
from tests.state import sign_in_stores as stores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from funcmcp.state import StateStore

TIME = Clock()


@asynccontextmanager
async def state_stores() -> AsyncIterator[Callable[[], StateStore]]:
    store = MemoryState(clock=TIME)
    yield lambda: store


async def wait(seconds: float) -> None:
    TIME.now += seconds


TestMemoryState = state_store_tests(state_stores, wait=wait)


async def test_a_store_behaves_as_every_store_does(clock: Clock) -> None:
    store = MemorySignIns(clock=clock)

    async def wait(seconds: float) -> None:
        clock.now += seconds

    await stores.check_values(store, store)
    await stores.check_repeated_writes(store)
    await stores.check_races(store, store)
    await stores.check_records_of_version_0_1(store)
    await stores.check_records_of_a_later_version(store)
    await stores.check_expiry(store, wait)
    await store.aclose()
    assert not store.shared


async def test_a_full_store_is_in_the_log_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    store = MemorySignIns(limit=1)
    await store.take("a", "x", 60)
    for _ in range(3):
        with pytest.raises(StoreUnavailableError):
            await store.take("b", "x", 60)
    [line] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert line.startswith("The memory of sign-ins is full (1 records, 401 bytes).")


async def test_a_full_store_takes_nothing_more_until_something_expires(clock: Clock) -> None:
    store = MemorySignIns(limit=3, clock=clock)
    for number in range(3):
        assert await store.take(stores.KEYS[number], "c1.first", 60 + number)
    with pytest.raises(StoreUnavailableError) as caught:
        await store.take(stores.KEYS[3], "c1.first", 60)
    assert caught.value.retry_after == 60
    assert await store.replace(stores.KEYS[0], "c1.first", "c1.second", 60)
    clock.now += 61
    assert await store.take(stores.KEYS[3], "c1.first", 60)
    assert len(store) == 2


async def test_expired_records_do_not_stay_in_memory(clock: Clock) -> None:
    store = MemorySignIns(clock=clock)
    for number in range(9000):
        clock.now += 1
        assert await store.take(f"{number:064}", "c1.first", 60)
    assert len(store) < 1100


def test_a_store_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="limit must be at least 1"):
        MemorySignIns(limit=0)


async def test_long_records_of_sign_ins_fill_the_store_before_it_has_many() -> None:
    store = MemorySignIns(limit=10)
    long = "x" * stores.LONGEST
    assert await store.take(stores.KEYS[0], long, 60)
    with pytest.raises(StoreUnavailableError) as full:
        await store.take(stores.KEYS[1], long, 60)
    assert full.value.nothing_written
    assert await store.take(stores.KEYS[1], "c1.short", 60)
