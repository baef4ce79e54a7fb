"""Changes of an upstream, in the four pairs of eras: they also come while no request runs."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._client.notifications import Change
from funcmcp._upstreams import subscriptions
from funcmcp._upstreams.definitions import ListWork
from funcmcp._upstreams.subscriptions import UpstreamChanges

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
    changes = UpstreamChanges(lambda: reads.append(loop.now), lambda _uri: None, work)
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
