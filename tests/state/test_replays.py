"""Used proofs are remembered until they are not valid any more, in so much memory and no more."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from funcmcp._server.limits import LimitReachedError, Limits
from funcmcp._server.load import Load
from funcmcp._state.key_values import MemorySignIns
from funcmcp._state.replays import ENTRY_BYTES, FixedAccount, Replays
from funcmcp._state.sessions.store import StoreUnavailableError
from tests.clock import Clock


def replays(clock: Clock, *, limit: int = 1000, share: int = 1000) -> Replays:
    return Replays(FixedAccount(limit * ENTRY_BYTES, share * ENTRY_BYTES), clock)


async def test_a_proof_is_new_once_as_long_as_it_is_valid() -> None:
    clock = Clock()
    used = replays(clock)
    assert await used.use_once("a", "ada", clock.now + 300)
    for seconds in (0, 5, 9.99, 290, 299.99):
        clock.now = 1000 + seconds
        assert not await used.use_once("a", "ada", 1300)
    assert not await used.use_once("a", "bob", 1300)  # the caller whose share it uses plays no part
    assert await used.use_once("\ud800", "ada", 1300)
    clock.now = 1302
    assert [await used.use_once("late", "ada", 1305) for _ in range(2)] == [True, False]
    clock.now = 1310
    assert len(used) == 3
    assert await used.use_once("b", "ada", 1600)
    assert len(used) == 1


async def test_a_clock_that_is_set_back_makes_no_proof_new() -> None:
    clock = Clock()
    used = replays(clock)
    assert await used.use_once("a", "ada", 1300)
    clock.now = 1400
    assert await used.use_once("b", "ada", 1700)
    clock.now = 1000
    assert not await used.use_once("a", "ada", 1300)
    assert not await used.use_once("b", "ada", 1700)
    assert await used.use_once("c", "ada", 1700)


async def test_a_clock_that_was_a_day_ahead_refuses_no_new_proofs_afterwards() -> None:
    clock = Clock()
    used = replays(clock)
    assert await used.use_once("a", "ada", 1300)
    clock.now = 90_000
    assert await used.use_once("b", "eve", 90_300)  # of a client whose clock is ahead as well
    clock.now = 1000
    assert not await used.use_once("a", "ada", 1300)
    assert await used.use_once("c", "ada", 1400)
    assert not await used.use_once("c", "ada", 1400)
    clock.now = 1410
    assert len(used) == 2
    assert await used.use_once("d", "ada", 1700)
    assert len(used) == 2  # those of "b" and "d"
    assert not await used.use_once("c", "ada", 1400)


async def test_without_room_new_proofs_are_refused_and_none_is_forgotten() -> None:
    clock = Clock()
    used = replays(clock, limit=5, share=3)
    for name in "abc":
        assert await used.use_once(name, "ada", 1300)
    with pytest.raises(StoreUnavailableError, match="Too many proofs"):
        await used.use_once("d", "ada", 1300)
    assert [await used.use_once(name, "bob", 1300) for name in "de"] == [True, True]
    with pytest.raises(StoreUnavailableError):
        await used.use_once("f", "eve", 1300)
    assert [await used.use_once(name, "ada", 1300) for name in "abcde"] == [False] * 5
    clock.now = 1310
    assert [await used.use_once(name, "ada", 1600) for name in "xyz"] == [True] * 3


async def test_the_memory_counts_in_the_account_of_the_process() -> None:
    clock = Clock()
    load = Load(Limits(memory_bytes=400 * ENTRY_BYTES, memory_bytes_per_principal=100 * ENTRY_BYTES))
    used = Replays(load.proofs, clock)
    for number in range(50):
        assert await used.use_once(str(number), "principal:a", 1300)
    with pytest.raises(LimitReachedError) as refused:
        await used.use_once("x", "principal:a", 1300)
    assert refused.value.is_caller_limit
    assert load.memory.used == load.proofs.used == 50 * ENTRY_BYTES
    for number in range(50):
        assert await used.use_once(f"b{number}", "principal:b", 1300)
    with pytest.raises(LimitReachedError) as refused:
        await used.use_once("x", "principal:c", 1300)
    assert not refused.value.is_caller_limit
    clock.now = 1310
    assert await used.use_once("x", "principal:a", 1600)
    assert load.memory.used == load.proofs.used == ENTRY_BYTES


async def test_a_proof_takes_up_as_much_memory_as_is_counted_for_it() -> None:
    clock = Clock()
    used = replays(clock, limit=100_000, share=100_000)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(20_000):
            await used.use_once(str(number), "ada", 1300 + number % 300)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert ENTRY_BYTES // 3 < grown / 20_000 <= ENTRY_BYTES


async def test_with_a_store_one_instance_of_several_takes_a_proof() -> None:
    clock, store = Clock(), MemorySignIns()
    instances = [Replays(FixedAccount(10_000, 10_000), clock, store) for _ in range(4)]
    answers = await asyncio.gather(*(instance.use_once("a", "ada", 1300) for instance in instances))
    assert sorted(answers) == [False, False, False, True]
    key = next(iter(store._records))
    assert len(key) == 64
    assert await instances[0].use_once("b", "ada", 1300)
    assert not await instances[1].use_once("b", "ada", 1300)
