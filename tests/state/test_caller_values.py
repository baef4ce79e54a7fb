"""Values of callers: whose they are, how many there are, and what happens when the store is away."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from funcmcp._protocol.codec import encode
from funcmcp._state import caller_values
from funcmcp._state.caller_values import CallerValues, ValueOwner
from funcmcp._state.records import value_of
from funcmcp.state import KeyRing, MemoryState, StateFullError, StoreUnavailableError
from tests.state.key_value_stores import ADA, BOB, KEYS, LARGE, check_state, values_in

if TYPE_CHECKING:
    from tests.clock import Clock


class SharedMemory(MemoryState):
    """A store whose content is seen, which two instances share, and which loses replies."""

    shared = True
    lost = 0
    between: list[object]

    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        replaced = await super().replace(key, old, new, seconds)
        if self.lost:
            self.lost -= 1
            while self.between:
                await self.between.pop()  # type: ignore[misc]
            raise StoreUnavailableError
        return replaced


@pytest.fixture
def store(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> SharedMemory:
    monkeypatch.setattr(caller_values, "_WRITE_PAUSES", (0.0, 0.0))
    store = SharedMemory(clock=clock)
    store.between = []
    return store


@pytest.fixture
def values(store: SharedMemory, clock: Clock) -> CallerValues:
    """Values that are encrypted, as in a store outside of the process."""
    values = CallerValues(store, KEYS, "Orders", owner_bytes=10_000, owner_values=5, clock=clock)
    values._cipher.is_plain = False
    return values


async def test_values_in_memory_are_as_in_every_store() -> None:
    store = MemoryState()
    await check_state(store, store)
    await values_in(store).aclose()


async def test_a_value_ends_after_its_time(values: CallerValues, clock: Clock) -> None:
    await values.put(ADA, "cart", b"1", 60)
    await values.put(ADA, "report", LARGE[:5000], 600)
    clock.now += 61
    assert await values.get(ADA, "cart") is None
    assert await values.names(ADA) == ["report"]
    clock.now += 600
    assert await values.names(ADA) == []


async def test_what_is_in_a_store_shows_neither_owners_nor_names_nor_values(
    values: CallerValues, store: SharedMemory
) -> None:
    ada = ValueOwner("ada.lovelace", "192.0.2.1")
    await values.put(ada, "diagnosis", b"influenza", 60)
    await values.put(ada, "letter", b"dear sir" * 500, 60)
    content = "".join(f"{key} {record.value}" for key, record in store._records.items())
    assert all(len(key) == 64 for key in store._records)
    assert not any(text in content for text in ("ada.lovelace", "192.0.2.1", "diagnosis", "influenza", "dear sir"))


async def test_a_value_is_bound_to_its_owner_and_its_server(values: CallerValues, store: SharedMemory) -> None:
    await values.put(ADA, "cart", b"1", 60)
    await values.put(BOB, "cart", b"2", 60)
    (ada, first), (bob, second) = store._records.items()
    store._records |= {ada: second, bob: first}
    assert [await values.get(owner, "cart") for owner in (ADA, BOB)] == [None, None]
    other = CallerValues(store, KEYS.of("Menu"), "Menu", owner_bytes=100, owner_values=5)
    assert await other.names(ADA) == []


async def test_a_caller_has_so_many_bytes_and_so_many_values(values: CallerValues) -> None:
    await values.put(ADA, "a", bytes(9000), 60)
    with pytest.raises(StateFullError, match=r"'b' can't be stored: the values of this caller would have 11,002 bytes"):
        await values.put(ADA, "b", bytes(2000), 60)
    await values.put(ADA, "a", bytes(100), 60)
    for name in "bcde":
        await values.put(ADA, name, b"1", 60)
    with pytest.raises(StateFullError, match=r"this caller has 5 values already\. Delete values") as caught:
        await values.put(ADA, "f", b"1", 60)
    assert caught.value.is_owner_limit
    await values.put(BOB, "f", b"1", 60)
    assert await values.names(ADA) == ["a", "b", "c", "d", "e"]


async def test_the_anonymous_callers_of_an_address_have_the_share_of_one_caller(
    values: CallerValues, clock: Clock
) -> None:
    sessions = [ValueOwner(f"session {number}", "address") for number in range(7)]
    for session in sessions[:5]:
        await values.put(session, "a", b"1", 60)
    with pytest.raises(StateFullError, match="anonymous callers from this address is full"):
        await values.put(sessions[5], "a", b"1", 60)
    assert await values.remove(sessions[0], "a")
    await values.put(sessions[5], "a", b"1", 60)
    with pytest.raises(StateFullError, match="anonymous callers from this address is full"):
        await values.put(sessions[6]._replace(address="address"), "a", bytes(9000), 60)
    await values.put(sessions[6]._replace(address="another"), "a", bytes(9000), 60)
    clock.now += 7200
    await values.put(sessions[0], "a", bytes(9000), 60)


async def test_a_session_counts_for_the_address_at_which_it_has_begun(values: CallerValues) -> None:
    await values.put(ValueOwner("session", "first"), "a", b"1", 60)
    for number in range(5):
        await values.put(ValueOwner(f"{number}", "second"), "a", b"1", 60)
    await values.put(ValueOwner("session", "second"), "b", b"1", 60)


async def test_a_memory_that_is_full_is_an_error_that_says_what_to_do(clock: Clock) -> None:
    store = MemoryState(limit_bytes=20_000, clock=clock)
    values = CallerValues(store, KEYS, "Orders", owner_bytes=100_000, owner_values=50, clock=clock)
    await values.put(ADA, "a", bytes(15_000), 60)
    with pytest.raises(StateFullError, match=r"is full \(20000 bytes\).*Limits\(state_bytes=\)") as caught:
        await values.put(BOB, "a", bytes(15_000), 60)
    assert not caught.value.is_owner_limit
    assert await values.get(ADA, "a") == bytes(15_000)
    clock.now += 200
    await values.put(BOB, "a", bytes(15_000), 60)
    assert store._bytes <= 20_000
    with pytest.raises(ValueError, match="limit_bytes must be at least 1"):
        MemoryState(limit_bytes=0)


async def test_a_change_whose_reply_is_lost_is_made_once(values: CallerValues, store: SharedMemory) -> None:
    def add(value: bytes | None) -> bytes:
        return (value or b"") + b"+"

    await values.put(ADA, "count", b"", 60)
    store.lost = 2
    assert await values.change(ADA, "count", add, 60) == b"+"
    store.lost, store.between = 1, [values.put(ADA, "other", b"1", 60)]
    assert await values.change(ADA, "count", add, 60) == b"++"
    assert await values.get(ADA, "count") == b"++"
    assert await values.get(ADA, "other") == b"1"


async def test_a_change_that_another_one_has_displaced_is_made_again(values: CallerValues, store: SharedMemory) -> None:
    class Refusing(SharedMemory):
        """A store that is away before a write, and in which another instance then writes."""

        async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
            if self.between:
                await self.between.pop()  # type: ignore[misc]
                raise StoreUnavailableError
            return await super().replace(key, old, new, seconds)

    store.__class__ = Refusing
    await values.put(ADA, "count", b"1", 60)
    store.between = [values.put(ADA, "count", b"5", 60)]
    assert await values.change(ADA, "count", lambda value: (value or b"") + b"0", 60) == b"50"


async def test_a_store_that_stays_away_is_an_error(values: CallerValues, store: SharedMemory) -> None:
    await values.put(ADA, "count", b"1", 60)
    store.lost = 10
    with pytest.raises(StoreUnavailableError):
        await values.put(ADA, "count", b"2", 60)


async def test_content_that_the_store_has_lost_is_no_value(values: CallerValues, store: SharedMemory) -> None:
    await values.put(ADA, "report", LARGE[:5000], 60)
    [content] = [key for key, record in store._records.items() if len(record.value) > 5000]
    await store.remove(content)
    assert await values.get(ADA, "report") is None
    await values.put(ADA, "report", LARGE[:5000], 60)
    assert await values.get(ADA, "report") == LARGE[:5000]


async def test_content_that_is_replaced_while_it_is_read_is_read_again(
    values: CallerValues, store: SharedMemory
) -> None:
    await values.put(ADA, "report", LARGE[:5000], 60)

    class Slow(SharedMemory):
        """A store in which another instance writes between two reads."""

        async def get(self, key: str) -> str | None:
            if self.between and len(self._value(key) or "") > 5000:
                work = self.between.pop()
                await work  # type: ignore[misc]
            return await super().get(key)

    store.__class__ = Slow
    store.between = [values.put(ADA, "report", LARGE[1:5001], 60)]
    assert await values.get(ADA, "report") == LARGE[1:5001]


async def test_content_that_is_replaced_does_not_stay(values: CallerValues, store: SharedMemory) -> None:
    for number in range(5):
        await values.put(ADA, "report", bytes(5000 + number), 60)
    assert len(store) == 2
    await values.remove(ADA, "report")
    assert len(store) == 1


async def test_what_this_version_can_not_read_is_no_value_and_one_line_in_the_log(
    values: CallerValues, store: SharedMemory, caplog: pytest.LogCaptureFixture
) -> None:
    key = values._key("owner", "ada")
    unreadable = [values._cipher.conceal(key, text) for text in (b'{"v": 2}', b"[]", b"{")]
    for text in ("c1.other", *unreadable):
        await store.remove(key)
        await store.take(key, text, 60)
        assert await values.names(ADA) == []
    damaged = b'{"v": 1, "writes": 1, "entries": {"a": 1, "b": {"bytes": 1, "expires": 9e9, "data": "="}}}'
    await store.remove(key)
    await store.take(key, values._cipher.conceal(key, damaged), 60)
    assert await values.get(ADA, "b") is None
    await values.put(ADA, "cart", b"1", 60)
    assert await values.get(ADA, "cart") == b"1"
    [line] = caplog.messages
    assert line.startswith("event=state_unreadable")
    assert logging.getLevelName(caplog.records[0].levelno) == "WARNING"


async def test_members_of_a_later_version_are_kept(values: CallerValues, store: SharedMemory) -> None:
    await values.put(ADA, "cart", b"1", 60)
    key = values._key("owner", "ada")
    current = await store.get(key) or ""
    record = value_of(values._cipher.reveal(key, current))
    assert isinstance(record, dict)
    record["added"], record["entries"]["cart"]["added"] = [1], 2
    await store.replace(key, current, values._cipher.conceal(key, encode(record)), 60)
    await values.put(ADA, "cart", b"2", 60)
    await values.put(ADA, "other", b"3", 60)
    record = value_of(values._cipher.reveal(key, await store.get(key) or ""))
    assert isinstance(record, dict)
    assert (record["added"], record["entries"]["cart"]["added"]) == ([1], 2)


async def test_a_key_that_is_replaced_opens_what_it_has_stored(store: SharedMemory, clock: Clock) -> None:
    limits = {"owner_bytes": 10_000, "owner_values": 5}
    before = CallerValues(store, KEYS, "Orders", clock=clock, **limits)
    after = CallerValues(store, KeyRing([b"n" * 32, b"k" * 32]), "Orders", clock=clock, **limits)
    before._cipher.is_plain = after._cipher.is_plain = False
    await before.put(ADA, "cart", b"1", 60)
    assert await after.get(ADA, "cart") == b"1"


@pytest.mark.parametrize(
    ("name", "seconds", "reason"),
    [
        ("", 60, "must have 1 to 256 bytes"),
        ("é" * 129, 60, "must have 1 to 256 bytes"),
        ("cart", 0, "above 0, and at most 7,776,000"),
        ("cart", float("nan"), "above 0, and at most 7,776,000"),
        ("cart", 91 * 86_400, "above 0, and at most 7,776,000"),
    ],
)
async def test_a_name_or_a_time_that_can_not_be_stored_is_refused(
    values: CallerValues, name: str, seconds: float, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        await values.put(ADA, name, b"1", seconds)


async def test_a_change_may_remove_a_value_or_leave_it(values: CallerValues, store: SharedMemory) -> None:
    await values.put(ADA, "cart", b"1", 60)
    assert await values.change(ADA, "cart", lambda _: None, 60) is None
    assert await values.names(ADA) == []
    assert await values.change(ADA, "cart", lambda _: None, 60) is None


async def test_several_event_loops_use_the_same_values() -> None:
    values = values_in(MemoryState())

    async def put(number: int) -> None:
        await values.put(ADA, f"n{number}", b"1", 60)

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, put(number)) for number in range(10)))
    assert len(await values.names(ADA)) == 10
