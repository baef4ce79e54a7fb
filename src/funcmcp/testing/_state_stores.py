"""The rules that every store of state keeps, as tests: `funcmcp.testing.state_store_tests`.

How it works: as in `_task_stores`. Each test uses keys of its own, so the place of the values need not be empty.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from funcmcp._state.key_values import StateStore
from funcmcp.testing._rules import class_of_rules

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from typing import TypeAlias

    Stores: TypeAlias = Callable[[], AbstractAsyncContextManager[Callable[[], StateStore]]]
    Wait: TypeAlias = Callable[[float], Awaitable[None]]

LARGE_BYTES = 2 * 1024 * 1024
WRITERS = 20


def new_value() -> str:
    """Return a value as a server writes it: ASCII, and different each time."""
    return f"c1.{secrets.token_urlsafe(24)}"


class Rules:
    """The rules, for two stores of one place, as two processes have them.

    Args:
        here: A store.
        there: Another store with the same values.
        wait: Lets time pass for the stores.
    """

    def __init__(self, here: StateStore, there: StateStore, wait: Wait) -> None:
        self.here = here
        self.there = there
        self.wait = wait
        self.key = secrets.token_hex(32)
        self.first, self.second, self.third = (new_value() for _ in range(3))

    async def test_a_store_says_whether_other_processes_reach_its_values(self) -> None:
        assert isinstance(self.here, StateStore), "a method of StateStore is missing"
        assert self.here.shared in {True, False}

    async def test_a_key_without_a_value_has_none(self) -> None:
        assert await self.here.get(self.key) is None
        assert not await self.here.replace(self.key, self.first, self.second, 60)
        await self.here.remove(self.key)
        assert await self.here.get(self.key) is None

    async def test_a_key_is_taken_once(self) -> None:
        assert await self.here.take(self.key, self.first, 60)
        assert not await self.there.take(self.key, self.second, 60)
        assert [await store.get(self.key) for store in (self.here, self.there)] == [self.first] * 2

    async def test_a_value_is_replaced_only_if_it_is_still_the_one_that_was_read(self) -> None:
        await self.here.take(self.key, self.first, 60)
        assert await self.there.replace(self.key, self.first, self.second, 60)
        assert not await self.here.replace(self.key, self.first, self.third, 60)
        assert await self.here.get(self.key) == self.second

    async def test_a_write_that_is_sent_again_has_succeeded(self) -> None:
        assert [await self.here.take(self.key, self.first, 60) for _ in range(2)] == [True, True]
        assert [await self.here.replace(self.key, self.first, self.second, 60) for _ in range(2)] == [True, True]
        assert await self.here.get(self.key) == self.second

    async def test_of_writers_at_the_same_time_one_succeeds(self) -> None:
        stores = [(self.here, self.there)[number % 2] for number in range(WRITERS)]
        values = [new_value() for _ in stores]
        taken = await asyncio.gather(
            *(store.take(self.key, value, 60) for store, value in zip(stores, values, strict=True))
        )
        assert taken.count(True) == 1
        winner = values[taken.index(True)]
        assert await self.there.get(self.key) == winner
        values = [new_value() for _ in stores]
        replaced = await asyncio.gather(
            *(store.replace(self.key, winner, value, 60) for store, value in zip(stores, values, strict=True))
        )
        assert replaced.count(True) == 1
        assert await self.here.get(self.key) == values[replaced.index(True)]

    async def test_a_value_that_is_removed_is_gone_for_all(self) -> None:
        await self.here.take(self.key, self.first, 60)
        await self.there.remove(self.key)
        assert await self.here.get(self.key) is None
        assert not await self.here.replace(self.key, self.first, self.second, 60)
        assert await self.here.take(self.key, self.third, 60)

    async def test_a_value_ends_after_its_time_which_each_write_sets(self) -> None:
        shortened, extended = secrets.token_hex(32), secrets.token_hex(32)
        await self.here.take(self.key, self.first, 0.4)
        await self.here.take(shortened, self.first, 60)
        await self.here.replace(shortened, self.first, self.second, 0.4)
        await self.here.take(extended, self.first, 0.4)
        assert await self.here.replace(extended, self.first, self.second, 60)
        await self.wait(0.6)
        assert [await self.there.get(key) for key in (self.key, shortened, extended)] == [None, None, self.second]
        assert not await self.here.replace(self.key, self.first, self.second, 60)
        assert await self.here.take(self.key, self.third, 60)

    async def test_a_large_value_is_returned_as_it_was_written(self) -> None:
        values = [new_value() + "x" * LARGE_BYTES for _ in range(2)]
        assert await self.here.take(self.key, values[0], 60)
        assert await self.there.get(self.key) == values[0]
        assert await self.there.replace(self.key, values[0], values[1], 60)
        assert await self.here.get(self.key) == values[1]

    async def test_event_loops_of_several_threads_use_a_store(self) -> None:
        keys = [secrets.token_hex(32) for _ in range(3)]

        async def write(key: str) -> None:
            await self.here.take(key, self.first, 60)
            await self.here.aclose()  # what belongs to this event loop

        await asyncio.gather(*(asyncio.to_thread(asyncio.run, write(key)) for key in keys))
        assert [await self.here.get(key) for key in keys] == [self.first] * 3


def test_class(stores: Stores, wait: Wait, name: str) -> type:
    """Return a class with a test for each rule; see `funcmcp.testing.state_store_tests`."""
    return class_of_rules(Rules, lambda rule: asyncio.run(_run(rule, stores, wait)), name)


async def _run(rule: str, stores: Stores, wait: Wait) -> None:
    async with stores() as make:
        here, there = make(), make()
        try:
            await getattr(Rules(here, there, wait), rule)()
        finally:
            await here.aclose()
            await there.aclose()
