"""Sessions in memory, bounded in number and age."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._state.sessions.store import Handshake, SessionsFullError

if TYPE_CHECKING:
    from tests.clock import Clock

IDLE = 100.0
HANDSHAKE = Handshake("2025-11-25", {"roots": {}}, {"name": "client"})


@pytest.fixture
def sessions(clock: Clock) -> MemorySessions:
    return MemorySessions(limit=3, idle=IDLE, clock=clock)


async def test_a_session_remembers_its_handshake(sessions: MemorySessions) -> None:
    session_id = await sessions.create(HANDSHAKE)
    assert await sessions.get(session_id) == HANDSHAKE
    assert len(sessions) == 1


async def test_session_ids_are_visible_ascii_long_and_never_the_same() -> None:
    sessions = MemorySessions()
    ids = {await sessions.create(HANDSHAKE) for _ in range(200)}
    assert len(ids) == 200
    assert all(len(session_id) >= 32 and all("!" <= character <= "~" for character in session_id) for session_id in ids)


@pytest.mark.parametrize("session_id", ["", "unknown", "ünïcode"])
async def test_an_unknown_session_is_not_there(sessions: MemorySessions, session_id: str) -> None:
    await sessions.create(HANDSHAKE)
    assert await sessions.get(session_id) is None


async def test_an_ended_session_is_over_for_good(sessions: MemorySessions) -> None:
    session_id = await sessions.create(HANDSHAKE)
    assert await sessions.end(session_id) is True
    assert await sessions.end(session_id) is False
    assert await sessions.get(session_id) is None
    assert len(sessions) == 0


async def test_a_session_ends_when_it_was_not_used_for_too_long(sessions: MemorySessions, clock: Clock) -> None:
    session_id = await sessions.create(HANDSHAKE)
    clock.now += IDLE
    assert await sessions.get(session_id) is None
    assert len(sessions) == 0


async def test_the_duration_of_a_session_ends_with_it_or_with_its_last_request(
    sessions: MemorySessions, clock: Clock
) -> None:
    durations: list[tuple[float, str]] = []
    sessions.on_duration = lambda seconds, revision: durations.append((seconds, revision))
    ended, expired, unused = [await sessions.create(HANDSHAKE) for _ in range(3)]
    assert sessions.count == 3
    clock.now += 7
    assert await sessions.get(expired)
    clock.now += 2
    assert await sessions.end(ended)
    assert durations == [(9.0, HANDSHAKE.revision)]
    clock.now += 2 * IDLE
    assert await sessions.get(unused) is None
    assert len(sessions) == sessions.count == 0
    assert durations[1:] == [(0.0, HANDSHAKE.revision), (7.0, HANDSHAKE.revision)]


async def test_expired_sessions_do_not_count_before_they_are_dropped(sessions: MemorySessions, clock: Clock) -> None:
    await sessions.create(HANDSHAKE)
    clock.now += IDLE / 2
    used = await sessions.create(HANDSHAKE)
    assert await sessions.get(used)
    clock.now += IDLE / 2
    assert sessions.count == 1
    clock.now += IDLE / 2
    assert sessions.count == 0


async def test_use_keeps_a_session_alive(sessions: MemorySessions, clock: Clock) -> None:
    session_id = await sessions.create(HANDSHAKE)
    for _ in range(5):
        clock.now += IDLE - 1
        assert await sessions.get(session_id) == HANDSHAKE


async def test_a_new_session_ends_the_one_that_was_idle_longest(
    sessions: MemorySessions, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[str] = []
    sessions.endings.append(ended.append)
    ids = [await sessions.create(HANDSHAKE) for _ in range(3)]
    for session_id in (ids[1], ids[0], ids[2]):
        clock.now += 1
        await sessions.get(session_id)
    ids += [await sessions.create(HANDSHAKE) for _ in range(2)]
    assert ended == [ids[1], ids[0]]
    assert [await sessions.get(session_id) is not None for session_id in ids] == [False, False, True, True, True]
    assert len(sessions) == 3
    [line] = caplog.messages
    assert line.startswith("The limit of 3 sessions (MemorySessions(limit=)) is reached.")


async def test_the_caller_with_most_sessions_makes_room(clock: Clock) -> None:
    sessions = MemorySessions(limit=6, idle=IDLE, clock=clock)
    few, most, other, new = (Handshake("2025-11-25", address=name) for name in ("few", "most", "other", "new"))
    ids = [await sessions.create(caller) for caller in (few, most, most, most, other, other)]
    assert await sessions.create(new)
    assert [await sessions.get(session_id) is not None for session_id in ids] == [True, False, True, True, True, True]
    sessions.is_busy = lambda session_id: session_id in ids[2:4]
    assert await sessions.create(new)
    assert await sessions.get(ids[4]) is None


async def test_a_store_of_busy_sessions_refuses_others_for_some_seconds(sessions: MemorySessions, clock: Clock) -> None:
    ids = [await sessions.create(HANDSHAKE) for _ in range(3)]
    sessions.is_busy = lambda _: True
    for _ in range(2):
        with pytest.raises(SessionsFullError) as caught:
            await sessions.create(HANDSHAKE)
        assert (caught.value.retry_after, caught.value.is_owner_limit) == (5, False)
        sessions.is_busy = lambda session_id: session_id != ids[2]
    clock.now += caught.value.retry_after
    assert await sessions.create(HANDSHAKE)
    assert [await sessions.get(session_id) is not None for session_id in ids] == [True, True, False]


async def test_a_store_without_places_refuses_all() -> None:
    with pytest.raises(SessionsFullError):
        await MemorySessions(limit=0).create(HANDSHAKE)


async def test_the_least_recently_used_session_makes_room_first(sessions: MemorySessions, clock: Clock) -> None:
    ids = [await sessions.create(HANDSHAKE) for _ in range(3)]
    clock.now += IDLE - 1
    await sessions.get(ids[0])
    clock.now += 1
    assert len(sessions) == 1
    await sessions.create(HANDSHAKE)
    assert await sessions.get(ids[0]) == HANDSHAKE
    assert await sessions.get(ids[1]) is None


async def test_an_ended_session_makes_room(sessions: MemorySessions) -> None:
    ids = [await sessions.create(HANDSHAKE) for _ in range(3)]
    await sessions.end(ids[1])
    assert await sessions.create(HANDSHAKE)


async def test_the_clock_of_the_machine_is_the_default() -> None:
    sessions = MemorySessions()
    assert await sessions.get(await sessions.create(HANDSHAKE)) == HANDSHAKE


async def test_a_principal_has_so_many_sessions_and_no_more(clock: Clock) -> None:
    sessions = MemorySessions(per_principal=2, idle=IDLE, clock=clock)
    ours, theirs = (Handshake("2025-11-25", owner=owner) for owner in ("us", "them"))
    first, _ = await sessions.create(ours), await sessions.create(ours)
    with pytest.raises(SessionsFullError) as refused:
        await sessions.create(ours)
    assert (refused.value.is_owner_limit, refused.value.retry_after >= 1) == (True, True)
    await sessions.create(theirs)
    for _ in range(3):
        await sessions.create(HANDSHAKE)
    await sessions.end(first)
    await sessions.end(first)
    again = await sessions.create(ours)
    with pytest.raises(SessionsFullError):
        await sessions.create(ours)
    clock.now += IDLE
    assert await sessions.get(again) is None
    for _ in range(2):
        await sessions.create(ours)
    with pytest.raises(SessionsFullError):
        await sessions.create(ours)


async def test_an_address_has_half_of_all_sessions_or_as_many_as_a_principal(clock: Clock) -> None:
    for limit, share in ((8, 4), (4, 3)):
        sessions = MemorySessions(limit=limit, per_principal=3, idle=IDLE, clock=clock)
        here, elsewhere = (Handshake("2025-11-25", address=address) for address in ("here", "elsewhere"))
        ids = [await sessions.create(here) for _ in range(share)]
        with pytest.raises(SessionsFullError) as refused:
            await sessions.create(here)
        assert (refused.value.is_owner_limit, refused.value.retry_after >= 1) == (True, True)
        await sessions.create(elsewhere)
        await sessions.end(ids[0])
        await sessions.create(here)


async def test_the_address_of_a_principal_does_not_count(clock: Clock) -> None:
    sessions = MemorySessions(limit=4, per_principal=1, clock=clock)
    for number in range(4):
        await sessions.create(Handshake("2025-11-25", owner=str(number), address="here"))


async def test_a_session_that_is_never_used_ends_after_five_minutes(clock: Clock) -> None:
    sessions = MemorySessions(limit=2, idle=1800, clock=clock)
    used, unused = await sessions.create(HANDSHAKE), await sessions.create(HANDSHAKE)
    sessions.is_busy = lambda _: True
    clock.now += 299
    assert await sessions.get(used)
    with pytest.raises(SessionsFullError) as refused:
        await sessions.create(HANDSHAKE)
    assert refused.value.retry_after == 2
    clock.now += 2
    assert await sessions.create(HANDSHAKE)
    assert await sessions.get(unused) is None
    clock.now += 1700
    assert await sessions.get(used)


async def test_by_default_an_address_and_a_principal_have_half_of_few_sessions() -> None:
    for caller in (Handshake("2025-11-25", address="here"), Handshake("2025-11-25", owner="ann")):
        sessions = MemorySessions(limit=4)
        for _ in range(2):
            await sessions.create(caller)
        with pytest.raises(SessionsFullError) as refused:
            await sessions.create(caller)
        assert refused.value.is_owner_limit
        await sessions.create(HANDSHAKE)
