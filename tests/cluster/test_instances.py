"""Instances of a server with a real Redis between them; each request goes to the one that the test picks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.instances import per_request, text_of
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from typing import Any

    from tests.instances import Caller, Events

pytestmark = pytest.mark.slow("Several processes fail and start again, behind a proxy or a store.")


async def test_a_session_goes_on_at_every_instance_and_ends_at_all_of_them_at_once(
    shops: list[str], caller: Caller
) -> None:
    await caller.begin(shops[0])
    assert len({await caller.call(url, "instance") for url in shops}) == 3
    for url in shops:
        assert await caller.call(url, "add", a=1, b=2) == "3"
    ended = await caller.http.delete(shops[1], headers=caller.session)
    assert ended.status_code == 204
    for url in shops:
        assert (await caller.post(url, caller.request("ping"))).status_code == 404


async def test_ending_a_session_ends_its_stream_at_another_instance(shops: list[str], caller: Caller) -> None:
    await caller.begin(shops[0])
    async with caller.stream(shops[1]) as events:
        assert events.response.status_code == 200
        await caller.http.delete(shops[2], headers=caller.session)
        assert await events.message() is None


@pytest.mark.parametrize("listens", [0, 1])
async def test_a_change_of_a_list_is_told_at_every_instance(shops: list[str], caller: Caller, listens: int) -> None:
    await caller.begin(shops[2])
    async with caller.stream(shops[listens]) as events:
        await caller.call(shops[0], "grow", name=f"more{listens}")
        message = await events.message()
    assert message == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}


async def test_a_subscription_holds_whichever_instance_gets_the_requests(shops: list[str], caller: Caller) -> None:
    await caller.begin(shops[0])
    for uri in ("menu://early", "menu://given-up"):
        assert "result" in await caller.ask(shops[0], "resources/subscribe", uri=uri)
    async with caller.stream(shops[1]) as events:
        assert "result" in await caller.ask(shops[2], "resources/subscribe", uri="menu://late")
        assert "result" in await caller.ask(shops[0], "resources/unsubscribe", uri="menu://given-up")
        for uri in ("menu://given-up", "menu://other", "menu://early", "menu://late"):
            await caller.call(shops[2], "touch", uri=uri)
        told = [await events.message() for _ in range(2)]
    assert [message["params"] for message in told if message] == [{"uri": "menu://early"}, {"uri": "menu://late"}]


async def test_a_listener_of_2026_hears_what_another_instance_tells(shops: list[str], caller: Caller) -> None:
    wish = {"toolsListChanged": True, "resourceSubscriptions": ["menu://today"]}
    message, headers = per_request("subscriptions/listen", notifications=wish)
    async with caller.stream(shops[0], message, **headers) as events:
        acknowledged = await events.message()
        assert acknowledged is not None
        assert acknowledged["params"]["notifications"] == wish
        for uri in ("menu://other", "menu://today"):
            call, more = per_request("tools/call", name="touch", arguments={"uri": uri})
            assert text_of((await caller.post(shops[1], call, **more)).json()) == uri
        told = await events.message()
        assert told is not None
        assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", "menu://today")
        call, more = per_request("tools/call", name="grow", arguments={"name": "more2026"})
        await caller.post(shops[2], call, **more)
        told = await events.message()
        assert told is not None
        assert told["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize("kind", ["shops", "signed_shops"])
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_an_answer_reaches_the_instance_that_asked(
    kind: str, action: str, caller: Caller, request: pytest.FixtureRequest
) -> None:
    urls: list[str] = request.getfixturevalue(kind)
    await caller.begin(urls[0])
    call = caller.request("tools/call", name="order", arguments={"what": "Tea"})
    async with caller.stream(urls[0], call) as events:
        question = await events.message()
        assert question is not None
        assert question["method"] == "elicitation/create"
        result = {"action": action, **({"content": {"size": 3}} if action == "accept" else {})}
        accepted = await caller.post(urls[1], {"id": question["id"], "result": result})
        assert accepted.status_code == 202
        answer = await events.message()
    assert answer is not None
    assert text_of(answer) == ("Tea in 3" if action == "accept" else action)


async def test_an_answer_of_another_session_does_not_count(shops: list[str], caller: Caller) -> None:
    await caller.begin(shops[0])
    mine = caller.session
    async with caller.stream(shops[0], caller.request("tools/call", name="order", arguments={"what": "Tea"})) as events:
        question = await events.message()
        assert question is not None
        await caller.begin(shops[1])
        forged = {"id": question["id"], "result": {"action": "accept", "content": {"size": 666}}}
        for url in shops:
            assert (await caller.post(url, forged)).status_code == 202
        caller.session = mine
        result = {"action": "accept", "content": {"size": 1}}
        await caller.post(shops[2], {"id": question["id"], "result": result})
        answer = await events.message()
    assert answer is not None
    assert text_of(answer) == "Tea in 1"


@pytest.mark.parametrize("kind", ["shops", "signed_shops"])
async def test_a_request_is_cancelled_from_another_instance(
    kind: str, caller: Caller, request: pytest.FixtureRequest
) -> None:
    urls: list[str] = request.getfixturevalue(kind)
    await caller.begin(urls[0])
    call = caller.request("tools/call", name="wait", arguments={})
    async with caller.stream(urls[0], call) as events:
        assert await events.message() is not None
        gone = await caller.post(urls[1], {"method": "notifications/cancelled", "params": {"requestId": call["id"]}})
        assert gone.status_code == 202
        assert await events.message() is None


async def test_a_log_level_holds_at_every_instance(shops: list[str], caller: Caller) -> None:
    await caller.begin(shops[0])
    for url in shops[:2]:  # these have met the session before it chooses
        assert len(await logged(caller, url)) == 2
    assert "result" in await caller.ask(shops[0], "logging/setLevel", level="error")
    for url in shops:
        async with asyncio.timeout(PATIENCE):
            while await logged(caller, url) != ["error"]:
                pass


async def logged(caller: Caller, url: str) -> list[str]:
    """Return the levels of the log messages that come with a call."""
    async with caller.stream(url, caller.request("tools/call", name="log", arguments={})) as events:
        levels = []
        while (message := await events.message()) is not None:
            if message.get("method") == "notifications/message":
                levels.append(message["params"]["level"])
    return levels


async def test_events_of_one_instance_are_never_taken_for_those_of_another(shops: list[str], caller: Caller) -> None:
    await caller.begin(shops[0])
    async with caller.stream(shops[0], caller.request("tools/call", name="log", arguments={})) as events:
        while await events.message() is not None:
            pass
    async with caller.stream(shops[1], caller.request("tools/call", name="log", arguments={})) as other:
        while await other.message() is not None:
            pass
    assert events.last_id.partition("-")[0] != other.last_id.partition("-")[0]


async def test_a_signed_session_that_was_ended_is_over_at_the_other_instance(
    signed_shops: list[str], caller: Caller
) -> None:
    await caller.begin(signed_shops[0])
    assert await caller.call(signed_shops[1], "add", a=1, b=2) == "3"
    assert (await caller.http.delete(signed_shops[0], headers=caller.session)).status_code == 204
    assert (await caller.post(signed_shops[1], caller.request("ping"))).status_code == 404


async def test_a_stream_that_broke_off_is_taken_up_again_at_another_instance(shops: list[str], caller: Caller) -> None:
    await caller.begin(shops[0])
    here = await caller.call(shops[0], "instance")
    async with caller.stream(shops[0], caller.request("tools/call", name="break_off", arguments={})) as events:
        said = await rest(events)
    async with caller.stream(shops[1], last_event_id=events.last_id) as further:
        others = await rest(further)
    said += others
    assert others
    assert [message["params"]["data"] for message in said[:-1]] == ["before", "after"]
    assert text_of(said[-1]) == here
    async with caller.stream(shops[0], last_event_id=events.last_id) as again:
        assert await rest(again) == others


async def rest(events: Events) -> list[dict[str, Any]]:
    """Read a stream to its end."""
    messages = []
    while (message := await events.message()) is not None:
        messages.append(message)
    return messages


async def test_the_stream_of_changes_is_taken_up_again_at_another_instance(shops: list[str], caller: Caller) -> None:
    await caller.begin(shops[0])
    for uri in ("menu://a", "menu://b", "menu://c"):
        await caller.ask(shops[0], "resources/subscribe", uri=uri)
    async with caller.stream(shops[0]) as events:
        await caller.call(shops[2], "touch", uri="menu://a")
        assert await events.message() is not None
    await caller.call(shops[2], "touch", uri="menu://b")  # while nobody reads
    async with caller.stream(shops[1], last_event_id=events.last_id) as further:
        missed = await further.message()
        await caller.call(shops[2], "touch", uri="menu://c")
        told = await further.message()
    assert [message["params"]["uri"] for message in (missed, told) if message] == ["menu://b", "menu://c"]


async def test_a_second_stream_of_changes_is_refused_at_every_instance(shops: list[str], caller: Caller) -> None:
    await caller.begin(shops[0])
    async with caller.stream(shops[0]) as first:
        assert first.response.status_code == 200
        for url in shops:
            async with caller.stream(url) as second:
                assert second.response.status_code == 409
        await caller.call(shops[1], "grow", name="more409")
        assert await first.message() is not None


async def test_a_stream_of_an_instance_that_is_not_there_is_none(shops: list[str], caller: Caller) -> None:
    await caller.begin(shops[0])
    async with caller.stream(shops[0], last_event_id="0123456789ab.1-2") as events:
        assert events.response.status_code == 200
        await caller.call(shops[1], "grow", name="more_gone")
        message = await events.message()
    assert message is not None
    assert message["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize("last", ["0123456789ab.1-2", "1-1", "x", "0-0"])
async def test_an_unknown_event_id_opens_the_general_stream(shops: list[str], caller: Caller, last: str) -> None:
    for url in shops:
        await caller.begin(shops[0])
        async with caller.stream(url, last_event_id=last) as events:
            assert events.response.status_code == 200


async def test_an_event_id_that_its_instance_does_not_have_opens_the_general_stream(
    shops: list[str], caller: Caller
) -> None:
    await caller.begin(shops[0])
    async with caller.stream(shops[0], caller.request("tools/call", name="break_off", arguments={})) as events:
        await rest(events)
    instance, _, _ = events.last_id.partition(".")
    session = caller.session
    await caller.begin(shops[0])
    async with caller.stream(shops[1], last_event_id=f"{instance}.999-1") as stream:
        assert stream.response.status_code == 200
    caller.session = session
    async with caller.stream(shops[1], last_event_id=events.last_id) as stream:
        assert (await rest(stream))[-2]["params"]["data"] == "after"
