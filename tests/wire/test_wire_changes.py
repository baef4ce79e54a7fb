"""Changes told to those who asked: `subscriptions/listen` at 2026-07-28, and the session's own stream before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._serving.composition import runtime_of
from tests import rules
from tests.schemas import validate
from tests.wire.peer import HANDSHAKES, META, PER_REQUEST, check, connect, exchange

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Exchange, Peer

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

ID = META + "subscriptionId"
LISTS = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
ALL = dict.fromkeys(LISTS, True)
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def listen(peer: Peer, wish: object, id: object = "listen-1", **headers: str | None) -> Exchange:
    """Begin to listen."""
    return peer.start(peer.message("subscriptions/listen", {"notifications": wish}, id), headers or None)


async def event(stream: Exchange, revision: str = PER_REQUEST) -> tuple[str, dict[str, Any]]:
    """Wait for the next notification."""
    message = await stream.event()
    validate(message, revision)
    assert "id" not in message
    return message["method"], message.get("params", {})


async def listening(peer: Peer, wish: object, id: object = "listen-1") -> Exchange:
    """Listen, and wait until it is acknowledged."""
    stream = listen(peer, wish, id)
    method, params = await event(stream)
    assert (method, params["_meta"]) == (ACKNOWLEDGED, {ID: id})
    return stream


def change_everything(offering: Offering) -> None:
    offering.app.tool("late")(lambda: "")
    offering.app.prompt("late")(lambda: "")
    offering.app.resource("menu://late", name="late")(lambda: "")


@rules.verifies(rules.S1)
@pytest.mark.parametrize("id", [7, 0, "seven", ""])
async def test_listening_begins_with_what_is_honoured(stocked: Offering, id: object) -> None:
    """The acknowledgement is first, each message has the id of the request, and proxies do not buffer the stream."""
    peer = await connect(stocked.app, PER_REQUEST)
    wish = {**ALL, "resourceSubscriptions": ["menu://today", "menu://unheard_of"], "unheardOf": True}
    stream = listen(peer, wish, id)
    method, params = await event(stream)
    assert (method, params["_meta"]) == (ACKNOWLEDGED, {ID: id})
    assert params["notifications"] == {**ALL, "resourceSubscriptions": ["menu://today", "menu://unheard_of"]}
    change_everything(stocked)
    assert [await event(stream) for _ in LISTS] == [
        ("notifications/tools/list_changed", {"_meta": {ID: id}}),
        ("notifications/prompts/list_changed", {"_meta": {ID: id}}),
        ("notifications/resources/list_changed", {"_meta": {ID: id}}),
    ]
    stocked.app.notify_resource_updated("menu://today")
    assert await event(stream) == (UPDATED, {"_meta": {ID: id}, "uri": "menu://today"})
    stream.leave()
    await stream.ended()


@rules.verifies(rules.S1, rules.A1)
@pytest.mark.parametrize("subscription", LISTS)
async def test_nothing_is_sent_that_was_not_asked_for(stocked: Offering, subscription: str) -> None:
    """Changes of other lists and resources are not sent. A repeated change is sent again."""
    peer = await connect(stocked.app, PER_REQUEST)
    stream = await listening(peer, {subscription: True, "resourceSubscriptions": ["menu://today"]})
    change_everything(stocked)
    stocked.app.notify_resource_updated("menu://list")
    assert (await event(stream))[0] == LISTS[subscription]
    stocked.app.remove_tool("late")
    stocked.app.remove_prompt("late")
    stocked.app.remove_resource("menu://late")
    assert (await event(stream))[0] == LISTS[subscription]
    stocked.app.notify_resource_updated("menu://today")
    assert (await event(stream))[0] == UPDATED
    stream.leave()
    await stream.ended()


@rules.verifies(rules.S1, rules.A1)
async def test_what_is_not_offered_is_not_honoured(offering: Offering) -> None:
    """A server without prompts and resources honours the other subscriptions."""
    peer = await connect(offering.app, PER_REQUEST)
    stream = listen(peer, {**ALL, "resourceSubscriptions": ["menu://today"]})
    assert (await event(stream))[1]["notifications"] == {"toolsListChanged": True}
    stream.leave()
    await stream.ended()


@rules.verifies(rules.X1, rules.S1)
async def test_a_client_that_leaves_is_forgotten(stocked: Offering) -> None:
    """The client ends the subscription by closing the stream. Nothing is sent afterwards."""
    peer = await connect(stocked.app, PER_REQUEST)
    streams = [await listening(peer, ALL, number) for number in range(3)]
    assert len(runtime_of(stocked.app).server.hub) == 3
    for stream in streams:
        stream.leave()
        await stream.ended()
    assert len(runtime_of(stocked.app).server.hub) == 0
    change_everything(stocked)
    assert [stream.late for stream in streams] == [[], [], []]


@rules.verifies(rules.S1)
async def test_the_stream_ends_with_a_result_when_the_server_is_about_to_stop(stocked: Offering) -> None:
    """The result is the last event, has the type `complete` and the id of the subscription, and ends the body."""
    peer = await connect(stocked.app, PER_REQUEST)
    stream = await listening(peer, ALL, "mine")
    runtime_of(stocked.app).drain()
    answer = check(await stream.answer(), PER_REQUEST, "subscriptions/listen")
    assert (answer.status, answer.media_type) == (200, "text/event-stream")
    assert answer.header("x-accel-buffering") == "no"
    assert answer.message["id"] == "mine"
    assert (answer.result["resultType"], answer.result["_meta"][ID]) == ("complete", "mine")
    late = check(await listen(peer, ALL).answer(), PER_REQUEST, "subscriptions/listen")
    assert late.result["resultType"] == "complete"


@rules.verifies(rules.S2)
async def test_progress_and_log_messages_stay_on_their_own_stream(stocked: Offering) -> None:
    peer = await connect(stocked.app, PER_REQUEST)
    stream = await listening(peer, ALL)
    meta = {"progressToken": "t", META + "logLevel": "debug"}
    answer = await peer.request("resources/read", {"uri": "menu://talk", "_meta": meta})
    assert len(answer.messages) > 1
    stocked.app.tool("late")(lambda: "")
    assert (await event(stream))[0] == "notifications/tools/list_changed"
    stream.leave()
    await stream.ended()


@rules.verifies(rules.S1, rules.H16)
@pytest.mark.parametrize(
    "wish",
    [
        None,
        5,
        "toolsListChanged",
        True,
        [],
        ["toolsListChanged"],
        {"toolsListChanged": "true"},
        {"toolsListChanged": 1},
        {"resourcesListChanged": []},
        {"resourceSubscriptions": True},
        {"resourceSubscriptions": "menu://today"},
        {"resourceSubscriptions": {"uri": "menu://today"}},
        {"resourceSubscriptions": [5]},
        {"resourceSubscriptions": [["menu://today"]]},
        {"resourceSubscriptions": ["menu://today", None]},
        {"resourceSubscriptions": [f"menu://{number}" for number in range(1001)]},
    ],
)
async def test_a_wish_of_the_wrong_shape_is_refused(stocked: Offering, wish: object) -> None:
    """The error is JSON, and no subscription exists."""
    peer = await connect(stocked.app, PER_REQUEST)
    answer = check(await listen(peer, wish).answer(), PER_REQUEST, "subscriptions/listen")
    assert (answer.outcome, answer.media_type) == ((400, -32602), "application/json")
    assert len(runtime_of(stocked.app).server.hub) == 0
    await peer.works()


@rules.verifies(rules.S1)
async def test_listening_to_nothing_said_is_refused(stocked: Offering) -> None:
    """The params have no `notifications`."""
    peer = await connect(stocked.app, PER_REQUEST)
    assert (await peer.request("subscriptions/listen")).outcome == (400, -32602)


@rules.verifies(rules.S1, rules.D1)
@pytest.mark.parametrize("accept", ["application/json", "*/*", None])
async def test_a_client_that_takes_no_stream_cannot_listen(stocked: Offering, accept: str | None) -> None:
    peer = await connect(stocked.app, PER_REQUEST)
    answer = check(await listen(peer, ALL, accept=accept).answer(), PER_REQUEST, "subscriptions/listen")
    assert (answer.outcome, answer.media_type) == ((400, -32600), "application/json")
    await peer.works()


@rules.verifies(rules.S1, rules.V8)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_listening_is_no_method_of_the_handshake_era(stocked: Offering, revision: str) -> None:
    peer = await connect(stocked.app, revision)
    assert (await peer.request("subscriptions/listen", {"notifications": ALL})).outcome == (200, -32601)


@rules.verifies(rules.R4, rules.V8)
@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
async def test_subscribing_is_no_method_of_the_per_request_era(stocked: Offering, method: str) -> None:
    peer = await connect(stocked.app, PER_REQUEST)
    assert (await peer.request(method, {"uri": "menu://today"})).outcome == (404, -32601)


def own_stream(peer: Peer) -> Exchange:
    """Open the stream of what belongs to no request."""
    headers = {**peer.headers(None), "accept": "text/event-stream"}
    return exchange(peer.app, "GET", headers.items())


@rules.verifies(rules.R4)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_subscriber_hears_of_the_resource_until_it_unsubscribes(stocked: Offering, revision: str) -> None:
    """Other resources are not notified."""
    peer = await connect(stocked.app, revision)
    stream = own_stream(peer)
    await stream.begun()
    for uri in ("menu://today", "menu://today", "menu://list", "file://docs/a"):
        assert (await peer.request("resources/subscribe", {"uri": uri})).result == {}
    assert (await peer.request("resources/unsubscribe", {"uri": "menu://list"})).result == {}
    assert (await peer.request("resources/unsubscribe", {"uri": "menu://never"})).result == {}
    for uri in ("menu://list", "menu://week", "file://docs/a"):
        stocked.app.notify_resource_updated(uri)
    assert await event(stream, revision) == (UPDATED, {"uri": "file://docs/a"})
    stocked.app.notify_resource_updated("menu://today")
    assert await event(stream, revision) == (UPDATED, {"uri": "menu://today"})
    stream.leave()
    await stream.ended()


@rules.verifies(rules.A1)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_session_hears_when_a_list_changes(stocked: Offering, revision: str) -> None:
    """Each list has one notification, without duplicates."""
    peer = await connect(stocked.app, revision)
    stream = own_stream(peer)
    await stream.begun()
    change_everything(stocked)
    assert [(await event(stream, revision))[0] for _ in LISTS] == list(LISTS.values())
    stream.leave()
    await stream.ended()


@rules.verifies(rules.R4, rules.THREAT_8)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_session_never_hears_what_another_subscribed_to(stocked: Offering, revision: str) -> None:
    first, second = await connect(stocked.app, revision), await connect(stocked.app, revision)
    streams = [own_stream(peer) for peer in (first, second)]
    for stream in streams:
        await stream.begun()
    await first.request("resources/subscribe", {"uri": "menu://today"})
    await second.request("resources/subscribe", {"uri": "menu://list"})
    stocked.app.notify_resource_updated("menu://today")
    stocked.app.notify_resource_updated("menu://list")
    assert (await event(streams[0], revision))[1] == {"uri": "menu://today"}
    assert (await event(streams[1], revision))[1] == {"uri": "menu://list"}
    for stream in streams:
        stream.leave()
        await stream.ended()


@rules.verifies(rules.R4, rules.R2, rules.R3)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_what_cannot_be_read_cannot_be_subscribed_to(stocked: Offering, revision: str) -> None:
    peer = await connect(stocked.app, revision)
    for uri, code in (("menu://unheard_of", -32002), ("", -32002), ("file://docs/..", -32602)):
        assert (await peer.request("resources/subscribe", {"uri": uri})).outcome == (200, code)
    await peer.works()


@rules.verifies(rules.R4)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_session_subscribes_to_so_many_resources_and_no_more(stocked: Offering, revision: str) -> None:
    """The 1,001st subscription is -32602, and the others continue."""
    peer = await connect(stocked.app, revision)
    for number in range(1000):
        assert (await peer.request("resources/subscribe", {"uri": f"file://docs/{number}"})).result == {}
    assert (await peer.request("resources/subscribe", {"uri": "menu://today"})).outcome == (200, -32602)
    assert (await peer.request("resources/unsubscribe", {"uri": "file://docs/0"})).result == {}
    assert (await peer.request("resources/subscribe", {"uri": "menu://today"})).result == {}
    await peer.works()
