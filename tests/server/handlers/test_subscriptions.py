"""`subscriptions/listen`."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.errors import MCPError
from funcmcp._protocol.uri_template import MAX_URI
from funcmcp._server.connections.hub import updated
from funcmcp._server.connections.subscribed_uris import MAX_URIS
from funcmcp._server.limits import LimitReachedError, Limits
from funcmcp._state.bus import RESUMED
from tests import rules, schemas
from tests.patience import PATIENCE
from tests.server.parts import PER_REQUEST, Recorder, answer, context, prompt, reply_to, resource, server, tool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.dispatch import Server

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

LISTEN = "subscriptions/listen"
ID = "io.modelcontextprotocol/subscriptionId"
ALL = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


class Stream(Recorder):
    """A recorder whose messages can be waited for, and are checked."""

    def __init__(self) -> None:
        super().__init__()
        self._news: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        schemas.validate({"jsonrpc": "2.0", "method": method, "params": params}, PER_REQUEST)
        self._news.put_nowait((method, params))

    async def next(self) -> tuple[str, dict[str, Any]]:
        return await asyncio.wait_for(self._news.get(), PATIENCE)

    @property
    def silent(self) -> bool:
        return self._news.empty()


@asynccontextmanager
async def listening(served: Server, wish: Any, request_id: str | int = "listen-1") -> AsyncIterator[Stream]:
    """Listen until the block ends; the first message is left in the stream."""
    stream = Stream()
    asked = context(LISTEN, {"notifications": wish}, revision=PER_REQUEST, channel=stream, request_id=request_id)
    task = asyncio.ensure_future(reply_to(served, asked))
    try:
        yield stream
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)


async def refused(wish: Any, served: Server | None = None) -> dict[str, Any]:
    """Return the error of a wish that is refused."""
    asked = context(LISTEN, {"notifications": wish}, revision=PER_REQUEST, channel=Stream())
    error: dict[str, Any] = (await answer(served or server(), asked))["error"]
    return error


@pytest.mark.parametrize("request_id", [7, "seven", ""])
async def test_the_first_message_says_what_is_honoured_and_every_message_whose_it_is(request_id: str | int) -> None:
    served = server(tool("t"), resource("menu://today"))
    wish = {"toolsListChanged": True, "resourceSubscriptions": ["menu://today"], "unheardOf": 5}
    async with listening(served, wish, request_id) as stream:
        honoured = {"toolsListChanged": True, "resourceSubscriptions": ["menu://today"]}
        acknowledged = (
            "notifications/subscriptions/acknowledged",
            {"_meta": {ID: request_id}, "notifications": honoured},
        )
        assert await stream.next() == acknowledged
        served.catalog.add(tool("another"))
        assert await stream.next() == ("notifications/tools/list_changed", {"_meta": {ID: request_id}})
        served.hub.publish(updated("menu://today"))
        expected = ("notifications/resources/updated", {"_meta": {ID: request_id}, "uri": "menu://today"})
        assert await stream.next() == expected


async def test_after_a_gap_a_listener_gets_every_change_that_it_may_have_missed() -> None:
    """An instance that was cut off from the others does not know what has changed meanwhile."""
    served = server(tool("t"), resource("menu://today"))
    async with listening(served, {"toolsListChanged": True, "resourceSubscriptions": ["menu://today"]}) as stream:
        await stream.next()
        served.bus.deliver(RESUMED, {})  # type: ignore[attr-defined]  # a LocalBus
        methods = {(await stream.next())[0], (await stream.next())[0]}
    assert methods == {"notifications/tools/list_changed", "notifications/resources/updated"}
    assert stream.silent


@pytest.mark.parametrize(
    ("served", "wish", "honoured"),
    [
        (server(), {}, {}),
        (server(), ALL, {"toolsListChanged": True}),
        (server(prompt("p")), ALL, {"toolsListChanged": True, "promptsListChanged": True}),
        (server(resource("menu://a")), ALL, {"toolsListChanged": True, "resourcesListChanged": True}),
        (server(offer_tools=False), ALL, {}),
        (server(), dict.fromkeys(ALL, False), {}),
        (server(), {"resourceSubscriptions": ["menu://a"]}, {}),
        (server(resource("menu://a")), {"resourceSubscriptions": []}, {}),
    ],
)
async def test_only_what_the_server_offers_is_honoured(
    served: Server, wish: dict[str, Any], honoured: dict[str, Any]
) -> None:
    async with listening(served, wish) as stream:
        assert (await stream.next())[1]["notifications"] == honoured


async def test_nothing_is_told_that_was_not_asked_for() -> None:
    served = server(prompt("p"), resource("menu://a"))
    async with listening(served, {"promptsListChanged": True, "resourceSubscriptions": ["menu://a"]}) as stream:
        await stream.next()
        served.catalog.add(tool("t"))
        served.catalog.add(resource("menu://b"))
        served.hub.publish(updated("menu://b"))
        served.catalog.prompts.remove("p")
        assert (await stream.next())[0] == "notifications/prompts/list_changed"
        assert stream.silent


async def test_several_listen_at_once_each_under_its_own_id() -> None:
    served = server(tool("t"))
    wish = {"toolsListChanged": True}
    async with listening(served, wish, 1) as one, listening(served, wish, 2) as other:
        await one.next()
        await other.next()
        served.catalog.tools.remove("t")
        assert (await one.next())[1] == {"_meta": {ID: 1}}
        assert (await other.next())[1] == {"_meta": {ID: 2}}
    assert len(served.hub) == 0


async def test_the_stream_ends_with_a_result_when_the_server_stops() -> None:
    served, stream = server(tool("t")), Stream()
    asked = context(LISTEN, {"notifications": ALL}, revision=PER_REQUEST, channel=stream, request_id="l")
    ended = asyncio.ensure_future(answer(served, asked))
    await stream.next()
    served.hub.close()
    result = (await asyncio.wait_for(ended, PATIENCE))["result"]
    assert (result["resultType"], result["_meta"][ID]) == ("complete", "l")
    assert len(served.hub) == 0


@pytest.mark.parametrize(
    "wish",
    [
        None,
        5,
        "toolsListChanged",
        [],
        ["toolsListChanged"],
        {"toolsListChanged": "true"},
        {"toolsListChanged": 1},
        {"resourcesListChanged": {}},
        {"resourceSubscriptions": "menu://a"},
        {"resourceSubscriptions": {"menu://a": True}},
        {"resourceSubscriptions": ["menu://a", 5]},
        {"resourceSubscriptions": [None]},
        {"resourceSubscriptions": [f"menu://{number}" for number in range(MAX_URIS + 1)]},
    ],
)
async def test_a_wish_of_the_wrong_shape_is_invalid(wish: object) -> None:
    served = server(resource("menu://a"))
    assert (await refused(wish, served))["code"] == -32602
    assert len(served.hub) == 0


async def test_who_takes_no_stream_cannot_listen() -> None:
    asked = context(LISTEN, {"notifications": {}}, revision=PER_REQUEST)
    error = (await answer(server(), asked))["error"]
    assert (error["code"], "text/event-stream" in error["message"]) == (-32600, True)


async def test_so_many_listen_and_no_more() -> None:
    served = server(limits=Limits(streams=1))
    async with listening(served, {}) as stream:
        await stream.next()
        with pytest.raises(LimitReachedError):
            await refused({}, served)
    async with listening(served, {}) as stream:
        await stream.next()


@rules.verifies(rules.THREAT_48)
async def test_a_uri_is_as_long_as_one_that_can_be_read_and_all_together_are_bounded() -> None:
    """A stream stores its URIs while it is open."""
    served = server(resource("menu://today"))
    long = "menu://" + "x" * (MAX_URI - 7)
    for uris, reason in (([long + "x"], "8192 characters"), ([f"{number}{long[3:]}" for number in range(99)], "bytes")):
        error = await refused({"resourceSubscriptions": uris}, served)
        assert (error["code"], reason in error["message"]) == (-32602, True)
    assert served.load.subscriptions.used == 0
    async with listening(served, {"resourceSubscriptions": [long]}) as stream:
        await stream.next()
        assert served.load.subscriptions.used > MAX_URI
    assert served.load.subscriptions.used == 0


@rules.verifies(rules.THREAT_48)
async def test_a_stream_keeps_its_uris_once() -> None:
    """Neither the request nor the acknowledgement with the URIs stays in memory."""
    served = server(resource("menu://today"), limits=Limits(message_bytes=10_000_000))
    uris = [f"menu://{number:06}{'x' * 4000}" for number in range(100)]
    text = json.dumps(uris)
    del uris
    tracemalloc.start()
    try:
        async with listening(served, {"resourceSubscriptions": json.loads(text)}) as stream:
            method, _ = await stream.next()
            del _
            await asyncio.sleep(0)
            gc.collect()
            held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert method == "notifications/subscriptions/acknowledged"
    assert 400_000 < held < 600_000


async def test_all_subscriptions_of_a_process_are_bounded_together() -> None:
    served = server(resource("menu://today"), limits=Limits(subscription_bytes=2000))
    wish = {"resourceSubscriptions": ["menu://" + "x" * 1000]}
    async with listening(served, wish) as stream:
        await stream.next()
        with pytest.raises(LimitReachedError):
            await refused(wish, served)
        async with listening(served, {"toolsListChanged": True}) as other:
            await other.next()
    async with listening(served, wish) as stream:
        await stream.next()


@pytest.mark.parametrize("revision", schemas.HANDSHAKE_REVISIONS)
async def test_listening_is_no_method_of_the_handshake_era(revision: str) -> None:
    reply = await reply_to(server(), context(LISTEN, {"notifications": {}}, revision=revision, channel=Stream()))
    assert json.loads(reply.body)["error"]["code"] == -32601


async def test_resources_of_other_servers_are_watched_until_the_stream_ends() -> None:
    events: list[str] = []

    async def watch(uri: str, context: RequestContext) -> Callable[[], None]:
        events.append(f"begin {uri} {context.request.method}")
        return lambda: events.append(f"end {uri}")

    async def refuse(uri: str, context: RequestContext) -> Callable[[], None]:
        raise MCPError(-31000, f"No updates of {uri} for {context.request.method}")

    served = server(
        replace(resource("a:watched"), watch=watch), replace(resource("a:refused"), watch=refuse), resource("a:own")
    )
    uris = ["a:watched", "a:refused", "a:own", "a:unknown"]
    async with listening(served, {"resourceSubscriptions": uris}) as stream:
        _, params = await stream.next()
        assert params["notifications"]["resourceSubscriptions"] == ["a:watched", "a:own", "a:unknown"]
        assert events == ["begin a:watched subscriptions/listen"]
    assert events == ["begin a:watched subscriptions/listen", "end a:watched"]


async def test_nobody_hears_of_a_resource_that_its_caller_does_not_have() -> None:
    async def never(_feature: Any, _request: Any) -> bool:
        return False

    served = server(resource("menu://today"), resource("menu://secret", shown_if=never))
    async with listening(served, {"resourceSubscriptions": ["menu://secret", "menu://today"]}) as stream:
        method, params = await stream.next()
        assert method == "notifications/subscriptions/acknowledged"
        assert params["notifications"]["resourceSubscriptions"] == ["menu://today"]
