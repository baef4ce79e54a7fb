"""Requests in flight: whose answer is whose, what cancels whom, and what time ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests import rules
from tests.wire.offering import offer
from tests.wire.peer import BATCHES, ERAS, HANDSHAKE, HANDSHAKES, PER_REQUEST, check, connect

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Exchange, Peer

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")


async def held(offering: Offering, peer: Peer, key: str, *, tool: str = "wait", id: object = 1) -> Exchange:
    """Begin a call and wait until the tool has it."""
    under_way = peer.start_call(tool, {"key": key}, id=id)
    await offering.gates.seen("arrived", key)
    return under_way


@rules.verifies(rules.THREAT_8, rules.J1)
@pytest.mark.parametrize("ids", [(1, 1), ("1", "1"), (1, "1"), ("1", 1), (0, "0"), ("", "")])
@pytest.mark.parametrize("tool", ["wait", "wait_quietly", "talk"])
@pytest.mark.parametrize("revision", ERAS)
async def test_two_requests_with_the_same_id_each_get_their_own_answer(
    offering: Offering, revision: str, tool: str, ids: tuple[object, object]
) -> None:
    """The requests finish in reverse order, as JSON and as a stream."""
    peer = await connect(offering.app, revision)
    first = await held(offering, peer, "first", tool=tool, id=ids[0])
    second = await held(offering, peer, "second", tool=tool, id=ids[1])
    for under_way, key, request_id in ((second, "second", ids[1]), (first, "first", ids[0])):
        offering.gates.open(key)
        answer = check(await under_way.answer(), revision, "tools/call")
        assert answer.text == ("talked" if tool == "talk" else key)
        assert (type(answer.message["id"]), answer.message["id"]) == (type(request_id), request_id)


@rules.verifies(rules.THREAT_8)
@pytest.mark.parametrize(
    "revisions", [(HANDSHAKE, HANDSHAKE), (PER_REQUEST, PER_REQUEST), (HANDSHAKE, PER_REQUEST), (BATCHES, HANDSHAKE)]
)
async def test_clients_with_the_same_id_never_see_each_others_answer(
    offering: Offering, revisions: tuple[str, str]
) -> None:
    """The clients have different sessions and eras."""
    peers = [await connect(offering.app, revision) for revision in revisions]
    under_way = [await held(offering, peer, f"key {number}") for number, peer in enumerate(peers)]
    for number in (1, 0):
        offering.gates.open(f"key {number}")
        answer = check(await under_way[number].answer(), revisions[number], "tools/call")
        assert answer.text == f"key {number}"


@rules.verifies(rules.THREAT_8)
@pytest.mark.parametrize("revision", ERAS)
async def test_many_in_flight_with_one_id_are_all_answered(offering: Offering, revision: str) -> None:
    peer = await connect(offering.app, revision)
    answers = await asyncio.gather(*(peer.call("add", {"a": number, "b": 0}, id="same") for number in range(50)))
    assert [answer.text for answer in answers] == [str(number) for number in range(50)]


@rules.verifies(rules.THREAT_40)
@pytest.mark.parametrize("tool", ["wait", "wait_quietly", "talk"])
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_client_cancels_its_own_request(offering: Offering, revision: str, tool: str) -> None:
    """The call stops, no result is sent, and the exchange ends."""
    peer = await connect(offering.app, revision)
    under_way = await held(offering, peer, "mine", tool=tool, id="to cancel")
    assert (await peer.notify("notifications/cancelled", {"requestId": "to cancel", "reason": "no more"})).status == 202
    await offering.gates.seen("cancelled", "mine")
    answer = check(await under_way.answer(), revision, "tools/call")
    assert all("result" not in message for message in answer.messages)
    await peer.works()


@rules.verifies(rules.THREAT_40, rules.THREAT_8)
@pytest.mark.parametrize("request_id", [2, "1", 1.0, True, None, [1], {"id": 1}, "mine", ""])
async def test_an_unknown_id_cancels_nothing(offering: Offering, request_id: object) -> None:
    """The id 1 differs from "1", 1.0 and true."""
    peer = await connect(offering.app, HANDSHAKE)
    under_way = await held(offering, peer, "mine", id=1)
    assert (await peer.notify("notifications/cancelled", {"requestId": request_id})).status == 202
    assert (await peer.notify("notifications/cancelled")).status == 202
    await peer.works()
    offering.gates.open("mine")
    assert (await under_way.answer()).text == "mine"
    assert not offering.gates.was("cancelled", "mine")


@rules.verifies(rules.THREAT_40, rules.THREAT_3)
@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
async def test_nobody_cancels_the_request_of_another(offering: Offering, revision: str) -> None:
    """The notification is from another session, without a session, or from the other era."""
    victim = await connect(offering.app, HANDSHAKE)
    under_way = await held(offering, victim, "mine", id=1)
    attacker = await connect(offering.app, revision)
    assert (await attacker.notify("notifications/cancelled", {"requestId": 1})).status == 202
    attacker.session_id = None
    await attacker.notify("notifications/cancelled", {"requestId": 1})
    attacker.session_id = "unheard-of"
    await attacker.notify("notifications/cancelled", {"requestId": 1})
    await victim.works()
    offering.gates.open("mine")
    assert (await under_way.answer()).text == "mine"


@rules.verifies(rules.THREAT_40, rules.X1)
async def test_a_cancel_notification_means_nothing_in_the_per_request_era(offering: Offering) -> None:
    """A client cancels by closing the stream there."""
    peer = await connect(offering.app, PER_REQUEST)
    under_way = await held(offering, peer, "mine", id=1)
    assert (await peer.notify("notifications/cancelled", {"requestId": 1})).status == 202
    await peer.works()
    offering.gates.open("mine")
    assert (await under_way.answer()).text == "mine"


@rules.verifies(rules.J3, rules.THREAT_40)
async def test_a_cancelled_request_of_a_batch_leaves_the_others_alone(offering: Offering) -> None:
    """The other requests are answered."""
    peer = await connect(offering.app, BATCHES)
    calls = [
        peer.message("tools/call", {"name": "wait", "arguments": {"key": "one"}}, id="one"),
        peer.message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}}, id="two"),
    ]
    under_way = peer.start(calls)
    await offering.gates.seen("arrived", "one")
    await peer.notify("notifications/cancelled", {"requestId": "one"})
    await offering.gates.seen("cancelled", "one")
    answers = check(await under_way.answer(), BATCHES).message
    assert [answer["id"] for answer in answers if "result" in answer] == ["two"]


@rules.verifies(rules.H18, rules.THREAT_40)
@pytest.mark.parametrize("tool", ["wait", "wait_quietly", "talk"])
async def test_leaving_cancels_in_the_per_request_era(offering: Offering, tool: str) -> None:
    """The tool is a plain function, has sent nothing yet, or has sent a part of its stream."""
    peer = await connect(offering.app, PER_REQUEST)
    under_way = await held(offering, peer, "mine", tool=tool)
    under_way.leave()
    await offering.gates.seen("cancelled", "mine")
    await under_way.ended()
    assert not [message for message in under_way.late if message.get("body")]
    await peer.works()


@rules.verifies(rules.H18, rules.THREAT_40)
@pytest.mark.parametrize("tool", ["wait", "wait_quietly", "talk"])
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_leaving_cancels_nothing_in_the_handshake_era(offering: Offering, revision: str, tool: str) -> None:
    """The tool runs to its end."""
    peer = await connect(offering.app, revision)
    under_way = await held(offering, peer, "mine", tool=tool)
    under_way.leave()
    await peer.works()
    offering.gates.open("mine")
    await offering.gates.seen("left", "mine")
    await under_way.ended()
    assert not offering.gates.was("cancelled", "mine")


@rules.verifies(rules.THREAT_26, rules.H18)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_client_that_leaves_before_its_body_is_whole_leaves_nothing(offering: Offering, revision: str) -> None:
    """There is no response and no error, and the next request is answered."""
    peer = await connect(offering.app, revision)
    under_way = peer.start(peer.message("tools/list"))
    under_way.parts[:] = [b'{"jsonrpc":', b""]
    under_way.leave()
    under_way.parts.append(b"")
    await under_way.ended()
    await peer.works()


@rules.verifies(rules.THREAT_39)
@pytest.mark.parametrize("tool", ["hang", "stuck"])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_tool_that_hangs_is_an_error_result_after_its_time(
    offering: Offering, revision: str, tool: str
) -> None:
    """The function is async or plain. The next call of this tool and of others succeeds."""
    peer = await connect(offering.app, revision)
    try:
        for _ in range(2):
            answer = await peer.call(tool)
            assert answer.result["isError"] is True
            assert "0.2 seconds" in answer.text
            await peer.works()
    finally:
        offering.gates.stuck.set()


@rules.verifies(rules.THREAT_39)
@pytest.mark.parametrize("revision", ERAS)
async def test_plain_tools_that_are_stuck_hold_up_nobody(revision: str) -> None:
    """Concurrent and later calls are answered."""
    offering = offer()
    peer = await connect(offering.app, revision)
    try:
        stuck = [peer.start_call("stuck") for _ in range(64)]
        await peer.works()
        for under_way in stuck:
            assert (await under_way.answer()).result["isError"] is True
        await peer.works()
    finally:
        offering.gates.stuck.set()
