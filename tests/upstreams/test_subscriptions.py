"""Changes of an upstream, in the four pairs of eras: they also come while no request runs."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._client.notifications import Change
from funcmcp._upstreams import subscriptions
from funcmcp._upstreams.definitions import ListWork
from funcmcp._upstreams.subscriptions import MAX_READS, UpstreamChanges

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.upstreams.conftest import Pair


async def test_changed_list_is_reported_once_after_it_can_be_read(shared_pair: Pair) -> None:
    changes: asyncio.Queue[None] = asyncio.Queue()
    async with (
        shared_pair.connect(on_tool_list_changed=lambda: changes.put_nowait(None)) as client,
        shared_pair.connect() as other,
    ):
        assert "up_late" not in {tool.name for tool in await client.list_tools()}
        await other.call_tool("up_change", {"name": "late"})
        await changes.get()
        assert "up_late" in {tool.name for tool in await client.list_tools()}
        assert (await client.call_tool("up_late")).text == "late"
        await client.call_tool("up_echo", {"text": "later"})
        assert changes.empty()


async def test_updates_of_a_resource_reach_the_clients_that_are_subscribed(shared_pair: Pair) -> None:
    first: asyncio.Queue[str] = asyncio.Queue()
    second: asyncio.Queue[str] = asyncio.Queue()
    unwanted: list[str] = []
    async with (
        shared_pair.connect(on_resource_updated=first.put_nowait) as client,
        shared_pair.connect(on_resource_updated=second.put_nowait) as other_client,
        shared_pair.connect(on_resource_updated=unwanted.append) as other,
    ):
        await client.list_resources()
        await client.subscribe("memo://up/note")
        await other_client.subscribe("memo://up/note")
        await other.call_tool("up_change", {"name": "first"})
        assert await first.get() == await second.get() == "memo://up/note"
        await other_client.unsubscribe("memo://up/note")
        await other.call_tool("up_change", {"name": "second"})
        assert await first.get() == "memo://up/note"
        await client.unsubscribe("memo://up/note")
        await other.call_tool("up_change", {"name": "third"})
        assert not unwanted


async def test_a_resource_is_watched_in_the_session_of_the_client(pair: Pair) -> None:
    updates: asyncio.Queue[str] = asyncio.Queue()
    async with pair.connect(on_resource_updated=updates.put_nowait) as client:
        await client.list_resources()
        await client.subscribe("memo://up/note")
        await client.call_tool("up_change", {"name": "first"})
        assert await updates.get() == "memo://up/note"


async def test_client_that_leaves_while_its_subscription_begins_leaves_no_exception(pair: Pair) -> None:
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unhandled.append(context))
    async with pair.connect(on_resource_updated=lambda _uri: None) as client:
        await client.subscribe("memo://up/note")
    gc.collect()  # a task that is deleted reports its exception
    assert not unhandled


def ignore(*_args: object) -> None:
    """Handle nothing."""


class Loop:
    """An event loop whose time a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waiting: list[tuple[float, Callable[..., object]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, function: Callable[..., object], *args: Any) -> None:
        self.waiting.append((self.now + seconds, partial(function, *args)))

    def move(self, seconds: float) -> None:
        self.now += seconds
        due = [item for item in self.waiting if item[0] <= self.now]
        self.waiting = [item for item in self.waiting if item not in due]
        for _, function in due:
            function()


def test_lists_that_are_much_work_are_read_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, work, reads = Loop(), ListWork(), []
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    changes = UpstreamChanges(lambda: reads.append(loop.now), ignore, ignore, ignore, work)
    changes.report(Change("tools"))
    work.seconds += 1  # while a part of the list has been read
    for _ in range(100):
        changes.report(Change("tools"))
    work.seconds += 1
    loop.move(20)
    assert reads == [1000]
    loop.move(20)
    assert reads == [1000, 1040]
    loop.move(100)
    assert len(reads) == 2
    for _ in range(100):
        changes.report(Change("tools"))
        loop.move(0.1)
    assert len(reads) == 2 + subscriptions.MAX_READS  # those were no work


class Reads:
    """Counts the reads that `UpstreamChanges` causes."""

    def __init__(self) -> None:
        self.announced = 0
        self.losses: list[tuple[str | None, float]] = []
        self.is_silent = False
        self.changed = asyncio.Event()
        self.changes = UpstreamChanges(self._announced, lambda _uri: None, self._lost, self._silent, ListWork())

    def _announced(self) -> None:
        self.announced += 1
        self.changed.set()

    def _lost(self, owner: str | None, seconds: float) -> None:
        self.losses.append((owner, seconds))

    def _silent(self) -> None:
        self.is_silent = True


async def test_connections_that_are_lost_all_the_time_cause_few_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "READS_SECONDS", 3600.0)
    monkeypatch.setattr(subscriptions, "delay_seconds", lambda _retry, failures, _ends: failures)
    reads = Reads()
    for _ in range(5 * MAX_READS):
        reads.changes.lost(None)
    assert reads.losses == [(None, number) for number in range(MAX_READS)]
    reads.changes.report(Change("tools"))
    assert reads.announced == 0


async def test_a_loss_after_a_minute_counts_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "LOSSES_SECONDS", -1.0)
    monkeypatch.setattr(subscriptions, "delay_seconds", lambda _retry, failures, _ends: failures)
    reads = Reads()
    for _ in range(3):
        reads.changes.lost(None)
    assert reads.losses == [(None, 0)] * 3


async def test_a_change_that_comes_while_a_loss_waits_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads()
    for _ in range(MAX_READS):
        reads.changes.lost(None)
    monkeypatch.setattr(subscriptions, "READS_SECONDS", 0.01)
    reads.changes.lost(None)
    reads.changes.report(Change("tools"))
    reads.changes.lost(None)
    await reads.changed.wait()
    assert (reads.announced, len(reads.losses)) == (1, MAX_READS)


async def test_the_loss_of_the_connection_of_a_caller_is_reported_for_this_caller() -> None:
    reads = Reads()
    for _ in range(2 * MAX_READS):
        reads.changes.lost("ada")
    assert reads.losses == [("ada", 0.0)] * 2 * MAX_READS


def test_an_upstream_is_silent_until_its_next_session() -> None:
    reads = Reads()
    for is_silent in (False, True):
        reads.changes.set_silent(is_silent=is_silent)
        assert (reads.is_silent, reads.changes.is_silent) == (is_silent, is_silent)
