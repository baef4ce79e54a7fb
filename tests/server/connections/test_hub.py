"""Changes, and those who hear of them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

import pytest

from funcmcp._server.connections.hub import PROMPTS, RESOURCES, TOOLS, Change, Hub, Listener, updated
from funcmcp._state.bus import RESUMED, LocalBus
from tests import schemas
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


def everything(_change: Change) -> bool:
    return True


async def heard(listener: Listener) -> list[Change]:
    """Return all that a listener hears until nothing more comes."""
    async with asyncio.timeout(PATIENCE):
        return [change async for change in listener]


async def test_all_who_listen_hear_a_change_in_the_order_of_the_changes() -> None:
    hub = Hub()
    with hub.listening(everything) as one, hub.listening(everything) as other:
        hub.publish(TOOLS)
        hub.publish(updated("menu://today"))
        hub.close()
        assert await heard(one) == await heard(other) == [TOOLS, updated("menu://today")]


async def test_a_listener_hears_only_what_it_wants() -> None:
    hub = Hub()
    with hub.listening({PROMPTS, updated("menu://a")}.__contains__) as listener:
        for change in (TOOLS, updated("menu://b"), updated("menu://a"), RESOURCES, PROMPTS):
            hub.publish(change)
        hub.close()
        assert await heard(listener) == [updated("menu://a"), PROMPTS]


async def test_a_change_that_comes_again_before_it_was_told_is_told_once() -> None:
    hub = Hub()
    with hub.listening(everything) as listener:
        for _ in range(1000):
            hub.publish(TOOLS)
        hub.close()
        assert await heard(listener) == [TOOLS]


async def test_a_change_that_comes_again_after_it_was_told_is_told_again() -> None:
    hub = Hub()
    async with asyncio.timeout(PATIENCE):
        with hub.listening(everything) as listener:
            for _ in range(2):
                hub.publish(TOOLS)
                assert await anext(listener) == TOOLS


async def test_what_waits_can_be_taken_at_once_without_what_is_not_wanted_any_more() -> None:
    hub, wanted = Hub(), {TOOLS, PROMPTS, RESOURCES}
    with hub.listening(wanted.__contains__) as listener:
        for change in (TOOLS, PROMPTS, TOOLS, RESOURCES):
            hub.publish(change)
        wanted.remove(PROMPTS)
        assert listener.take() == [TOOLS, RESOURCES]
        assert listener.take() == []
        hub.publish(TOOLS)
        assert listener.take() == [TOOLS]


async def test_a_change_that_was_told_elsewhere_is_told_no_more() -> None:
    hub = Hub()
    with hub.listening(everything) as listener:
        hub.publish(TOOLS)
        hub.publish(PROMPTS)
        for change in (TOOLS, RESOURCES):
            listener.forget(change)
        assert listener.take() == [PROMPTS]


async def test_a_listener_waits_until_there_is_something() -> None:
    hub = Hub()
    with hub.listening(everything) as listener:
        waiting = asyncio.ensure_future(anext(listener))
        await asyncio.sleep(0)
        assert not waiting.done()
        hub.publish(TOOLS)
        assert await asyncio.wait_for(waiting, PATIENCE) == TOOLS


@pytest.mark.parametrize("tell", [lambda hub: hub.publish(TOOLS), lambda hub: hub.close()])
async def test_a_listener_is_woken_from_another_thread(tell: Callable[[Hub], None]) -> None:
    hub = Hub()
    with hub.listening(everything) as listener:
        waiting = asyncio.ensure_future(anext(listener, None))
        await asyncio.sleep(0)
        thread = threading.Thread(target=tell, args=[hub])
        thread.start()
        assert await asyncio.wait_for(waiting, PATIENCE) in {TOOLS, None}
        thread.join(PATIENCE)


async def test_who_stops_listening_is_forgotten_even_after_a_failure() -> None:
    hub = Hub()
    with contextlib.suppress(RuntimeError), hub.listening(everything):
        assert len(hub) == 1
        raise RuntimeError
    assert len(hub) == 0
    hub.publish(TOOLS)


async def test_listeners_listen_again_when_the_server_starts_again() -> None:
    hub = Hub()
    hub.close()
    hub.open()
    with hub.listening(everything) as listener:
        hub.publish(TOOLS)
        assert await anext(listener) == TOOLS


async def test_who_comes_when_the_server_stops_hears_at_once_that_it_is_over() -> None:
    hub = Hub()
    hub.close()
    with hub.listening(everything) as listener:
        assert await heard(listener) == []


def test_a_listener_whose_loop_is_closed_does_no_harm() -> None:
    hub = Hub()

    async def listen() -> Listener:
        with hub.listening(everything) as listener:
            return listener

    listener = asyncio.run(listen())
    listener.receive(TOOLS)
    listener.close()


@pytest.mark.parametrize("revision", schemas.REVISIONS)
@pytest.mark.parametrize("change", [TOOLS, PROMPTS, RESOURCES, updated("menu://today")])
def test_a_change_is_told_by_a_notification_of_the_specification(revision: str, change: Change) -> None:
    schemas.validate({"jsonrpc": "2.0", "method": change.method, "params": change.params}, revision)
    assert change.params == ({} if change.uri is None else {"uri": change.uri})


async def test_a_change_is_heard_at_every_instance() -> None:
    bus = LocalBus()
    here, there = Hub(bus), Hub(bus.beside())
    with here.listening(everything) as one, there.listening(everything) as other:
        here.publish(updated("menu://a"))
        there.publish(TOOLS)
        for hub in (here, there):
            hub.close()
        assert await heard(one) == await heard(other) == [updated("menu://a"), TOOLS]


async def test_after_a_gap_every_change_that_may_have_been_missed_is_told() -> None:
    bus = LocalBus()
    hub = Hub(bus)
    with (
        hub.listening(everything, lambda: [TOOLS, updated("menu://a")]) as listener,
        hub.listening(everything) as other,
    ):
        bus.deliver(RESUMED, {})
        hub.close()
        assert await heard(listener) == [TOOLS, updated("menu://a")]
        assert await heard(other) == []
