"""The tests of a store of state find the mistakes that a store can have."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest

from funcmcp.state import MemoryState
from funcmcp.testing import state_store_tests
from tests.clock import Clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from funcmcp.state import StateStore

TIME = Clock()


async def wait(seconds: float) -> None:
    TIME.now += seconds


class TakesAgain(MemoryState):
    async def take(self, key: str, value: str, seconds: float) -> bool:
        await self.remove(key)
        return await super().take(key, value, seconds)


class ForgetsItsOwnWrites(MemoryState):
    async def take(self, key: str, value: str, seconds: float) -> bool:
        return await self.get(key) is None and await super().take(key, value, seconds)


class ReplacesAnything(MemoryState):
    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        current = await self.get(key)
        return current is not None and await super().replace(key, current, new, seconds)


class IsSlow(MemoryState):
    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        current = await self.get(key)
        await asyncio.sleep(0)
        return current in {old, new} and await super().replace(key, await self.get(key) or "", new, seconds)


class KeepsEverything(MemoryState):
    async def take(self, key: str, value: str, seconds: float) -> bool:
        return await super().take(key, value, 1e9)


class RemovesNothing(MemoryState):
    async def remove(self, key: str) -> None:
        pass


class CutsValues(MemoryState):
    async def take(self, key: str, value: str, seconds: float) -> bool:
        return await super().take(key, value[:65_536], seconds)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (TakesAgain, "a_key_is_taken_once"),
        (ForgetsItsOwnWrites, "a_write_that_is_sent_again_has_succeeded"),
        (ReplacesAnything, "a_value_is_replaced_only_if_it_is_still_the_one_that_was_read"),
        (IsSlow, "of_writers_at_the_same_time_one_succeeds"),
        (KeepsEverything, "a_value_ends_after_its_time_which_each_write_sets"),
        (RemovesNothing, "a_value_that_is_removed_is_gone_for_all"),
        (CutsValues, "a_large_value_is_returned_as_it_was_written"),
    ],
)
def test_a_mistake_fails_a_test(kind: type[MemoryState], rule: str) -> None:
    store = kind(clock=TIME)

    @asynccontextmanager
    async def stores() -> AsyncIterator[Callable[[], StateStore]]:
        yield lambda: store

    with pytest.raises(AssertionError):
        getattr(state_store_tests(stores, wait=wait)(), f"test_{rule}")()


def test_two_stores_that_share_nothing_fail() -> None:
    @asynccontextmanager
    async def stores() -> AsyncIterator[Callable[[], StateStore]]:
        yield partial(MemoryState, clock=TIME)

    tests = state_store_tests(stores, wait=wait, name="TestMine")
    assert tests.__name__ == "TestMine"
    with pytest.raises(AssertionError):
        tests().test_a_key_is_taken_once()
