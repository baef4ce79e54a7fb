"""Budgets, what a process has under way, and bodies that come in parts."""

from __future__ import annotations

import contextlib
from functools import partial

import pytest

from funcmcp._server.limits import LimitReachedError, Limits
from funcmcp._server.load import RUN_BYTES, STREAM_BYTES, Body, Load

ALICE, BOB = "principal:alice", "principal:bob"
HERE, THERE = "address:192.0.2.1", "address:192.0.2.2"
OVERHEAD = 16 * 1024


def test_streams_are_counted_for_all_callers_and_for_each_principal() -> None:
    streams = Load(Limits(streams=3, streams_per_principal=2)).streams
    with streams.counting(ALICE), streams.counting(ALICE):
        with pytest.raises(LimitReachedError) as refused:
            streams.check(ALICE)
        assert (refused.value.is_caller_limit, refused.value.retry_after) == (True, 60)
        streams.check(BOB)
        streams.check(None)
        with streams.counting(None):
            for caller in (BOB, None):
                with pytest.raises(LimitReachedError) as full:
                    streams.check(caller)
                assert not full.value.is_caller_limit
        streams.check(BOB)
    streams.check(ALICE)
    assert streams.used == 0


def test_an_unknown_caller_has_no_share_of_its_own() -> None:
    streams = Load(Limits(streams=5, streams_per_principal=1)).streams
    with streams.counting(None), streams.counting(None):
        streams.check(None)


@pytest.mark.parametrize(("share", "share_limit"), [(1, 3), (5, 5)])
def test_an_address_has_half_of_all_or_the_share_of_a_principal(share: int, share_limit: int) -> None:
    requests = Load(Limits(requests=6, requests_per_principal=share)).requests
    for _ in range(share_limit):
        requests.take(HERE)
    with pytest.raises(LimitReachedError) as refused:
        requests.take(HERE)
    assert refused.value.is_caller_limit
    requests.take(THERE)


def test_all_that_takes_up_memory_counts_for_one_share_of_a_caller_which_an_address_has_as_well() -> None:
    for caller in (ALICE, HERE):
        load = Load(Limits(memory_bytes_per_principal=STREAM_BYTES + RUN_BYTES + OVERHEAD + 5500))
        load.streams.count(caller)
        load.runs.count(caller)
        load.subscriptions.count(caller, 4000)
        body = Body(load.bodies, caller)
        body.add(1000)
        assert load.memory.used == STREAM_BYTES + RUN_BYTES + 4000 + OVERHEAD + 1000
        for budget, amount in ((load.streams, 1), (load.runs, 1), (load.subscriptions, 1000), (load.memory, 1000)):
            assert not budget.has_room(caller, amount)
            with pytest.raises(LimitReachedError, match="holds too much for you") as refused:
                budget.check(caller, amount)
            assert refused.value.is_caller_limit
            assert budget.has_room(THERE, amount)
        body.close()
        load.runs.give_back(caller)
        load.streams.check(caller, 0)
        load.streams.give_back(caller)
        load.subscriptions.give_back(caller, 4000)
        assert load.memory.used == 0


def test_the_memory_of_all_callers_together_has_a_limit() -> None:
    load = Load(Limits(memory_bytes=30_000))
    load.memory.count(None, 20_000)
    with pytest.raises(LimitReachedError, match="holds too much for its clients") as refused:
        load.streams.check(ALICE)
    assert not refused.value.is_caller_limit


def test_a_run_that_only_waits_is_not_counted_while_it_waits() -> None:
    runs = Load(Limits(requests=1)).runs
    runs.take(ALICE)
    with runs.without(ALICE):
        runs.check(ALICE)
        assert runs.used == 0
    assert runs.used == 1


class TestBodies:
    """Bytes of bodies that come in parts."""

    def test_a_body_counts_from_its_first_part_until_it_is_closed(self) -> None:
        bodies = Load(Limits()).bodies
        body = Body(bodies, ALICE)
        assert bodies.budget.used == 0
        body.add(100)
        body.add(200)
        body.complete()
        assert bodies.budget.used == OVERHEAD + 300
        body.close()
        body.close()
        assert bodies.budget.used == 0

    def test_the_oldest_incomplete_body_gives_way_when_all_together_are_too_many_bytes(self) -> None:
        bodies = Load(Limits(body_bytes=3 * OVERHEAD)).bodies
        dropped: list[str] = []
        complete, oldest, next_one = (Body(bodies, caller) for caller in (None, ALICE, BOB))
        for body, name in ((complete, "complete"), (oldest, "oldest"), (next_one, "next")):
            body.on_drop = partial(dropped.append, name)
            body.add(0)
        complete.complete()
        newcomer = Body(bodies, THERE)
        newcomer.add(0)
        assert dropped == ["oldest"]
        with pytest.raises(LimitReachedError) as refused:
            oldest.add(1)
        assert not refused.value.is_caller_limit
        assert bodies.budget.used == 3 * OVERHEAD
        for body in (complete, oldest, next_one, newcomer):
            body.close()
        assert bodies.budget.used == 0

    def test_a_caller_that_uses_up_its_share_loses_its_own_oldest_body(self) -> None:
        bodies = Load(Limits(body_bytes_per_principal=2 * OVERHEAD)).bodies
        other, first, second, third = (Body(bodies, caller) for caller in (BOB, ALICE, ALICE, ALICE))
        for body in (other, first, second, third):
            body.add(0)
        assert other.error is None
        assert first.error is not None
        assert first.error.is_caller_limit
        assert second.error is None

    def test_the_oldest_body_is_refused_when_nothing_else_can_give_way(self) -> None:
        bodies = Load(Limits(body_bytes=2 * OVERHEAD, body_bytes_per_principal=2 * OVERHEAD)).bodies
        complete, oldest, younger = Body(bodies, ALICE), Body(bodies, ALICE), Body(bodies, ALICE)
        complete.add(0)
        complete.complete()
        oldest.add(0)
        with pytest.raises(LimitReachedError):
            oldest.add(1)
        oldest.close()
        younger.add(0)


def test_a_body_without_room_for_its_first_part_leaves_nothing_for_the_next_one_to_drop() -> None:
    load = Load(Limits(memory_bytes_per_principal=100_000))
    load.memory.count(HERE, 99_000)
    for _ in range(2):
        with contextlib.closing(Body(load.bodies, HERE)) as body, pytest.raises(LimitReachedError):
            body.add(1)
    load.memory.give_back(HERE, 99_000)
    with contextlib.closing(Body(load.bodies, HERE)) as body:
        body.add(1)
    assert (load.memory.used, load.bodies.budget.used) == (0, 0)


def test_what_is_too_large_by_itself_is_told_in_other_words() -> None:
    memory = Load(Limits(memory_bytes_per_principal=1000)).memory
    memory.count(ALICE, 600)
    with pytest.raises(LimitReachedError, match="holds too much for you"):
        memory.check(ALICE, 600)
    with pytest.raises(LimitReachedError, match="send less at once"):
        memory.check(ALICE, 1001)
