"""What goes on around reading a resource and getting a prompt: progress, log messages, cancellation, questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import rules
from tests.wire.peer import ALL, ERAS, HANDSHAKES, META, PER_REQUEST, check, connect

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Answer, Peer

READ, GET = "resources/read", "prompts/get"
BOTH = pytest.mark.parametrize("method", [READ, GET])
ADA = {"action": "accept", "content": {"name": "Ada"}}
RED = {"action": "accept", "content": {"name": "red"}}
REFUSED = (400, -32602)
ABLE: dict[str, Any] = {"elicitation": {}}


def params(method: str, name: str, meta: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """Return what names a resource or a prompt of the same name."""
    named: dict[str, Any] = {"uri": f"menu://{name}"} if method == READ else {"name": name}
    if name.startswith("held/") and method == GET:
        named = {"name": "held", "arguments": {"key": name.removeprefix("held/")}}
    return {**named, **members, **({} if meta is None else {"_meta": meta})}


def text_of(answer: Answer) -> str:
    result = answer.result
    text: str = (result["contents"][0] if "contents" in result else result["messages"][0]["content"])["text"]
    return text


def notified(answer: Answer, method: str) -> list[dict[str, Any]]:
    return [message["params"] for message in answer.messages[:-1] if message["method"] == f"notifications/{method}"]


@rules.verifies(rules.PR1)
@BOTH
@pytest.mark.parametrize("token", ["t", "", 0, 7, 2**40])
@pytest.mark.parametrize("revision", ALL)
async def test_progress_is_told_under_its_token_and_only_goes_up(
    stocked: Offering, revision: str, method: str, token: object
) -> None:
    """The token keeps its type, the values increase, and the response is last."""
    peer = await connect(stocked.app, revision)
    answer = await peer.request(method, params(method, "talk", {"progressToken": token}))
    notifications = notified(answer, "progress")
    assert [notification["progress"] for notification in notifications] == [1, 2, 3]
    assert {notification["total"] for notification in notifications} == {3}
    assert all(
        notification["progressToken"] == token and type(notification["progressToken"]) is type(token)
        for notification in notifications
    )
    assert text_of(answer) == "talked"


@rules.verifies(rules.PR1)
@BOTH
@pytest.mark.parametrize("token", [None, True, 1.5, [], {}])
@pytest.mark.parametrize("revision", ERAS)
async def test_without_a_token_no_progress_is_told(
    stocked: Offering, revision: str, method: str, token: object
) -> None:
    """A number with a fraction is ignored. What is not a number either is ignored in sessions, and refused without."""
    meta = {META + "logLevel": "error"} | ({} if token is None else {"progressToken": token})
    answer = await (await connect(stocked.app, revision)).request(method, params(method, "talk", meta))
    assert notified(answer, "progress") == []
    if revision == "2026-07-28" and token is not None and token != 1.5:
        assert (answer.status, answer.message["error"]["code"]) == REFUSED
    else:
        assert text_of(answer) == "talked"


@rules.verifies(rules.D1, rules.PR1)
@BOTH
@pytest.mark.parametrize("revision", ALL)
async def test_a_client_that_takes_no_stream_gets_the_answer_alone(
    stocked: Offering, revision: str, method: str
) -> None:
    peer = await connect(stocked.app, revision)
    message_params = params(method, "talk", {"progressToken": 1})
    answer = await peer.request(method, message_params, headers={"accept": "application/json"})
    assert (answer.media_type, len(answer.messages), text_of(answer)) == ("application/json", 1, "talked")


BIG = {"level": "error", "data": {"what": "big"}, "logger": "kitchen"}
SMALL = {"level": "debug", "data": "small"}


@rules.verifies(rules.LG1)
@BOTH
@pytest.mark.parametrize(
    ("level", "expected"), [(None, []), ("debug", [SMALL, BIG]), ("info", [BIG]), ("error", [BIG]), ("critical", [])]
)
async def test_log_messages_come_only_as_the_request_wants_them(
    stocked: Offering, method: str, level: str | None, expected: list[dict[str, Any]]
) -> None:
    """Without a level in the request there are no log messages."""
    meta = {"progressToken": 1} | ({} if level is None else {META + "logLevel": level})
    answer = await (await connect(stocked.app, PER_REQUEST)).request(method, params(method, "talk", meta))
    assert notified(answer, "message") == expected


@rules.verifies(rules.LG1)
@BOTH
@pytest.mark.parametrize("level", ["loud", "", "ERROR", 5, [], {}])
async def test_a_bad_level_in_the_request_is_refused(stocked: Offering, method: str, level: object) -> None:
    peer = await connect(stocked.app, PER_REQUEST)
    answer = await peer.request(method, params(method, "talk", {META + "logLevel": level}))
    assert answer.outcome == REFUSED


@rules.verifies(rules.LG1)
@BOTH
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_log_messages_come_as_the_session_wants_them(stocked: Offering, revision: str, method: str) -> None:
    """The default level is info. An invalid level in `logging/setLevel` is -32602 and changes nothing."""
    peer = await connect(stocked.app, revision)
    assert notified(await peer.request(method, params(method, "talk")), "message") == [BIG]
    assert (await peer.request("logging/setLevel", {"level": "debug"})).result == {}
    assert (await peer.request("logging/setLevel", {"level": "loud"})).outcome == (200, -32602)
    assert notified(await peer.request(method, params(method, "talk")), "message") == [SMALL, BIG]
    assert (await peer.request("logging/setLevel", {"level": "emergency"})).result == {}
    answer = await peer.request(method, params(method, "talk"))
    assert (answer.media_type, notified(answer, "message")) == ("application/json", [])


TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "vendor=1",
    "baggage": "user=ada",
}


@rules.verifies(rules.TR1)
@BOTH
@pytest.mark.parametrize(
    "trace", [TRACE, {"traceparent": 5}, {"traceparent": "no"}, {"tracestate": []}, {"baggage": {"a": "\x00"}}]
)
@pytest.mark.parametrize("revision", ALL)
async def test_trace_context_never_disturbs_a_request(
    stocked: Offering, revision: str, method: str, trace: dict[str, Any]
) -> None:
    """Valid trace context is used, and invalid one is ignored."""
    peer = await connect(stocked.app, revision)
    message_params = {"uri": "menu://today"} if method == READ else {"name": "greet", "arguments": {"who": "Ada"}}
    answer = await peer.request(method, {**message_params, "_meta": trace})
    assert text_of(answer) in {"Fish", "Greet Ada 1 times in red"}


@rules.verifies(rules.X1)
@BOTH
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_cancelled_request_stops_and_is_not_answered(stocked: Offering, revision: str, method: str) -> None:
    peer = await connect(stocked.app, revision)
    under_way = peer.start(peer.message(method, params(method, "held/mine"), "to cancel"))
    await stocked.gates.seen("arrived", "mine")
    unknown_ids: list[Any] = ["another", None, [], {}, 5]
    for other in unknown_ids:
        assert (await peer.notify("notifications/cancelled", {"requestId": other})).status == 202
    assert not stocked.gates.was("cancelled", "mine")
    assert (await peer.notify("notifications/cancelled", {"requestId": "to cancel"})).status == 202
    await stocked.gates.seen("cancelled", "mine")
    assert (await under_way.answer()).messages == []
    await peer.works()


@rules.verifies(rules.X1, rules.H18)
@BOTH
async def test_a_client_that_leaves_has_cancelled(stocked: Offering, method: str) -> None:
    """`notifications/cancelled` has no effect in 2026-07-28."""
    peer = await connect(stocked.app, PER_REQUEST)
    under_way = peer.start(peer.message(method, params(method, "held/mine"), 1))
    await stocked.gates.seen("arrived", "mine")
    assert (await peer.notify("notifications/cancelled", {"requestId": 1})).status == 202
    assert not stocked.gates.was("cancelled", "mine")
    under_way.leave()
    await stocked.gates.seen("cancelled", "mine")
    await under_way.ended()
    assert b"".join(part.get("body", b"") for part in under_way.late) == b""


@rules.verifies(rules.M1)
@BOTH
async def test_questions_take_rounds_until_all_are_answered(stocked: Offering, method: str) -> None:
    """The first result is `input_required` with requests and a state, and the second one is complete."""
    peer = await connect(stocked.app, PER_REQUEST, ABLE)
    first = (await peer.request(method, params(method, "ask"))).result
    assert (first["resultType"], list(first["inputRequests"])) == ("input_required", ["name"])
    assert first["inputRequests"]["name"]["method"] == "elicitation/create"
    assert not {"contents", "messages", "ttlMs", "cacheScope"} & first.keys()
    answered = params(method, "ask", requestState=first["requestState"], inputResponses={"name": ADA})
    second = (await peer.request(method, answered)).result
    assert list(second["inputRequests"]) == ["colour"]
    assert second["requestState"] != first["requestState"]
    answered = params(method, "ask", requestState=second["requestState"], inputResponses={"colour": RED})
    done = await peer.request(method, answered)
    assert (done.result["resultType"], text_of(done)) == ("complete", "Ada likes red")


@rules.verifies(rules.M2, rules.H15)
@BOTH
@pytest.mark.parametrize("capabilities", [{}, {"sampling": {}}, {"elicitation": {"url": {}}}, {"elicitation": None}])
async def test_a_client_is_not_asked_what_it_did_not_declare(
    stocked: Offering, method: str, capabilities: dict[str, Any]
) -> None:
    peer = await connect(stocked.app, PER_REQUEST, capabilities)
    answer = await peer.request(method, params(method, "ask"))
    assert answer.outcome == (400, -32021)
    assert "elicitation" in answer.error["data"]["requiredCapabilities"]


@rules.verifies(rules.M3)
@BOTH
@pytest.mark.parametrize(
    "forge",
    [
        lambda state: state + "-TAMPERED",
        lambda state: state[:-1],
        lambda state: "",
        lambda state: "1.e30.e30",
        lambda state: 5,
        lambda state: [state],
        lambda state: {"state": state},
    ],
)
async def test_a_state_that_is_not_ours_is_refused(stocked: Offering, method: str, forge: Any) -> None:
    """The state is rejected even with a valid answer."""
    peer = await connect(stocked.app, PER_REQUEST, ABLE)
    state = (await peer.request(method, params(method, "ask"))).result["requestState"]
    answered = params(method, "ask", requestState=forge(state), inputResponses={"name": ADA})
    assert (await peer.request(method, answered)).outcome == REFUSED


@rules.verifies(rules.M3)
@BOTH
async def test_a_state_is_good_for_its_own_request_only(stocked: Offering, method: str) -> None:
    """The state is bound to the method, the name and the arguments."""
    peer = await connect(stocked.app, PER_REQUEST, ABLE)
    state = (await peer.request(method, params(method, "ask"))).result["requestState"]
    other = GET if method == READ else READ
    assert (await peer.request(other, params(other, "ask", requestState=state))).outcome == REFUSED
    if method == GET:
        assert (
            await peer.request(GET, params(GET, "ask", requestState=state, arguments={"a": "b"}))
        ).outcome == REFUSED


@rules.verifies(rules.M4)
@BOTH
@pytest.mark.parametrize(
    "responses",
    [{}, {"colour": RED}, {"wrong": ADA}, {"name": None}, {"name": 5}, {"name": {"action": "accept"}}, {"name": []}],
)
async def test_a_missing_or_wrong_answer_is_asked_for_again(
    stocked: Offering, method: str, responses: dict[str, Any]
) -> None:
    peer = await connect(stocked.app, PER_REQUEST, ABLE)
    state = (await peer.request(method, params(method, "ask"))).result["requestState"]
    again = (await peer.request(method, params(method, "ask", requestState=state, inputResponses=responses))).result
    assert list(again["inputRequests"]) == ["name"]


@rules.verifies(rules.M4)
@BOTH
@pytest.mark.parametrize("responses", [[], "Ada", 5, True])
async def test_answers_that_are_no_object_are_refused(stocked: Offering, method: str, responses: object) -> None:
    peer = await connect(stocked.app, PER_REQUEST, ABLE)
    answer = await peer.request(method, params(method, "ask", inputResponses=responses))
    assert answer.outcome == REFUSED


@rules.verifies(rules.M4)
@BOTH
async def test_members_of_a_round_that_are_null_count_as_absent(stocked: Offering, method: str) -> None:
    peer = await connect(stocked.app, PER_REQUEST, ABLE)
    asked = params(method, "ask", {META + "logLevel": None}, requestState=None, inputResponses=None)
    result = (await peer.request(method, asked)).result
    assert list(result["inputRequests"]) == ["name"]


async def answer_question(peer: Peer, question: dict[str, Any], response: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "id": question["id"], "result": response}
    assert (await peer.post(message)).status == 202


@rules.verifies(rules.M1, rules.V4)
@BOTH
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_questions_come_on_the_stream_in_the_handshake_era(stocked: Offering, revision: str, method: str) -> None:
    """The questions are requests of the server, and the response is the last message."""
    peer = await connect(stocked.app, revision, ABLE)
    under_way = peer.start(peer.message(method, params(method, "ask")))
    for response in (ADA, RED):
        question = await under_way.event()
        assert question["method"] == "elicitation/create"
        await answer_question(peer, question, response)
    answer = check(await under_way.answer(), revision, method)
    assert text_of(answer) == "Ada likes red"


@rules.verifies(rules.M2, rules.V4)
@BOTH
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_client_of_the_handshake_era_that_cannot_be_asked_gets_an_error(
    stocked: Offering, revision: str, method: str
) -> None:
    """The client did not declare the capability, or its revision does not have the method."""
    able = ABLE if revision < "2025-06-18" else {}
    answer = await (await connect(stocked.app, revision, able)).request(method, params(method, "ask"))
    assert answer.outcome == (200, -32603)
    assert "elicitation" in answer.error["message"]
