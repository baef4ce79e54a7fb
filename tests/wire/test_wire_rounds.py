"""Rounds of questions at 2026-07-28: `input_required`, sealed state, and answers that nobody may bend."""

from __future__ import annotations

import base64
from time import time
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._server.calls import rounds
from tests import rules
from tests.wire.offering import offer
from tests.wire.peer import PER_REQUEST, connect

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Answer, Peer

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

BOB = {"action": "accept", "content": {"name": "Bob"}}
RED = {"action": "accept", "content": {"name": "red"}}
REFUSED = (400, -32602)


async def ready(offering: Offering) -> Peer:
    """Return a peer that can be asked."""
    return await connect(offering.app, PER_REQUEST, {"elicitation": {}, "sampling": {}})


async def retry(
    peer: Peer, tool: str, responses: object = None, state: object = None, arguments: dict[str, Any] | None = None
) -> Answer:
    """Call a tool again with answers and the state that came with the questions."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments or {}}
    if responses is not None:
        params["inputResponses"] = responses
    if state is not None:
        params["requestState"] = state
    return await peer.request("tools/call", params)


async def asked(peer: Peer, tool: str, arguments: dict[str, Any] | None = None) -> str:
    """Call a tool for the first time; return the state that comes with its question."""
    result = (await retry(peer, tool, arguments=arguments)).result
    assert result["resultType"] == "input_required"
    state: str = result["requestState"]
    assert state
    return state


def is_asking(answer: Answer, *keys: str) -> bool:
    """Tell whether an answer asks for exactly these."""
    return answer.status == 200 and set(answer.result.get("inputRequests", {})) == set(keys)


@rules.verifies(rules.J6, rules.THREAT_7)
async def test_a_question_and_its_answer_take_one_round(offering: Offering) -> None:
    """The tool runs again with the answer."""
    peer = await ready(offering)
    first = await retry(peer, "ask")
    assert first.media_type == "application/json"
    assert first.result["inputRequests"]["name"]["method"] == "elicitation/create"
    assert "content" not in first.result
    done = await retry(peer, "ask", {"name": BOB}, first.result["requestState"])
    assert (done.result["resultType"], done.text) == ("complete", "Hello Bob")


@rules.verifies(rules.THREAT_7)
async def test_earlier_answers_come_back_in_the_state(offering: Offering) -> None:
    """The client sends only the second answer in the second round, and the state differs."""
    peer = await ready(offering)
    first = await asked(peer, "ask_twice")
    second = await retry(peer, "ask_twice", {"name": BOB}, first)
    assert is_asking(second, "colour")
    assert second.result["requestState"] != first
    done = await retry(peer, "ask_twice", {"colour": RED}, second.result["requestState"])
    assert done.text == "Bob then red"


@rules.verifies(rules.TRAP_19, rules.THREAT_7)
async def test_only_what_is_missing_is_asked_again(offering: Offering) -> None:
    """The state contains the answer that is present."""
    peer = await ready(offering)
    state = await asked(peer, "ask_both")
    half = await retry(peer, "ask_both", {"colour": RED}, state)
    assert is_asking(half, "name")
    assert (await retry(peer, "ask_both", {"name": BOB}, half.result["requestState"])).text == "Bob likes red"


def tampered(state: str) -> dict[str, object]:
    """Return forgeries of a state."""
    version, payload, code = state.split(".")
    decoded = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    forged = base64.urlsafe_b64encode(decoded.replace(b"answered", b"answerEd")).decode().rstrip("=")
    return {
        "longer": state + "-TAMPERED",
        "shorter": state[:-1],
        "another payload": f"{version}.{forged}.{code}",
        "another version": f"2.{payload}.{code}",
        "another code": f"{version}.{payload}.{code[::-1]}",
        "no code": f"{version}.{payload}.",
        "only dots": "..",
        "empty": "",
        "padded": f"{version}.{payload}.{code}=",
        "a blank": f" {state}",
        "a newline": f"{state}\n",
        "upper case": state.upper(),
        "not ASCII": state + "é",
        "a NUL": state + "\x00",
        "very long": "A" * 100_000,
        "a number": 1,
        "a list": [state],
        "an object": {"state": state},
        "true": True,
        "text": "unheard of",
    }


@rules.verifies(rules.THREAT_7, rules.THREAT_17)
@pytest.mark.parametrize("how", tampered("1.e30.e30"))
async def test_a_state_that_is_not_ours_is_refused(offering: Offering, how: str) -> None:
    """The tool does not run, even with a valid answer."""
    peer = await ready(offering)
    state = tampered(await asked(peer, "ask"))[how]
    assert (await retry(peer, "ask", {"name": BOB}, state)).outcome == REFUSED
    assert (await retry(peer, "ask", None, state)).outcome == REFUSED
    await peer.works()


@rules.verifies(rules.THREAT_7)
async def test_a_null_state_is_refused_or_none(offering: Offering) -> None:
    peer = await ready(offering)
    message = peer.message("tools/call", {"name": "ask", "arguments": {}, "requestState": None})
    answer = await peer.post(message)
    assert answer.outcome == REFUSED or is_asking(answer, "name")


@rules.verifies(rules.THREAT_7)
async def test_a_state_is_good_for_its_own_request_only(offering: Offering) -> None:
    """The state is bound to the tool and its arguments."""
    peer = await ready(offering)
    state = await asked(peer, "ask", {"greeting": "Hi"})
    assert (await retry(peer, "ask", {"name": BOB}, state, {"greeting": "Bye"})).outcome == REFUSED
    assert (await retry(peer, "ask", {"name": BOB}, state, {})).outcome == REFUSED
    assert (await retry(peer, "ask_both", {"name": BOB}, state, {"greeting": "Hi"})).outcome == REFUSED
    assert (await retry(peer, "ask", {"name": BOB}, state, {"greeting": "Hi"})).text == "Hi Bob"


@rules.verifies(rules.THREAT_7)
async def test_the_state_of_another_server_is_refused(offering: Offering) -> None:
    """Each server has its own keys."""
    state = await asked(await ready(offer()), "ask")
    assert (await retry(await ready(offering), "ask", {"name": BOB}, state)).outcome == REFUSED


@rules.verifies(rules.THREAT_7)
async def test_a_state_expires(offering: Offering, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = await ready(offering)
    state = await asked(peer, "ask")
    now = time()
    monkeypatch.setattr(rounds, "time", lambda: now + rounds.LIFETIME - 5)
    assert (await retry(peer, "ask", {"name": BOB}, state)).text == "Hello Bob"
    monkeypatch.setattr(rounds, "time", lambda: now + rounds.LIFETIME + 5)
    assert (await retry(peer, "ask", {"name": BOB}, state)).outcome == REFUSED


@rules.verifies(rules.THREAT_7)
@pytest.mark.parametrize("with_state", [True, False])
async def test_answers_to_nothing_are_ignored(offering: Offering, with_state: bool) -> None:
    """Unknown keys are in addition to the right key, or in its place."""
    peer = await ready(offering)
    state = await asked(peer, "ask") if with_state else None
    done = await retry(peer, "ask", {"name": BOB, "unheard_of": 7, "": None, "inputRequests": {}}, state)
    assert done.text == "Hello Bob"
    assert is_asking(await retry(peer, "ask", {"wrong_key": BOB}, state), "name")


@rules.verifies(rules.THREAT_7)
@pytest.mark.parametrize(
    "response",
    [
        None,
        12345,
        "Bob",
        True,
        [],
        [BOB],
        {},
        {"action": None},
        {"action": "Accept", "content": {"name": "Bob"}},
        {"action": "accept"},
        {"action": "accept", "content": None},
        {"action": "accept", "content": []},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"name": 7}},
        {"action": "accept", "content": {"name": None}},
        {"action": "accept", "content": {"Name": "Bob"}},
        {"content": {"name": "Bob"}},
    ],
)
@pytest.mark.parametrize("with_state", [True, False])
async def test_an_answer_of_the_wrong_shape_is_asked_for_again(
    offering: Offering, response: object, with_state: bool
) -> None:
    """The result is never complete, and there is no internal error."""
    peer = await ready(offering)
    state = await asked(peer, "ask") if with_state else None
    again = await retry(peer, "ask", {"name": response}, state)
    assert is_asking(again, "name")
    assert (await retry(peer, "ask", {"name": BOB}, again.result["requestState"])).text == "Hello Bob"


@rules.verifies(rules.THREAT_7, rules.H16)
@pytest.mark.parametrize("responses", [[], "Bob", 1, True, [BOB]])
async def test_answers_that_are_no_object_are_refused(offering: Offering, responses: object) -> None:
    peer = await ready(offering)
    assert (await retry(peer, "ask", responses, await asked(peer, "ask"))).outcome == REFUSED


@rules.verifies(rules.THREAT_7)
async def test_null_instead_of_answers_never_completes(offering: Offering) -> None:
    """The request is rejected, or the question is asked again."""
    peer = await ready(offering)
    for state in ({}, {"requestState": await asked(peer, "ask")}):
        answer = await peer.request("tools/call", {"name": "ask", "arguments": {}, "inputResponses": None, **state})
        assert answer.outcome == REFUSED or is_asking(answer, "name")


@rules.verifies(rules.THREAT_7)
async def test_an_answer_is_never_used_for_another_question(offering: Offering) -> None:
    """Two different questions with the same key need two answers."""
    peer = await ready(offering)
    state = await asked(peer, "ask_same_key")
    second = await retry(peer, "ask_same_key", {"it": BOB}, state)
    assert is_asking(second, "it")
    assert second.result["inputRequests"]["it"]["params"]["message"] == "Your colour?"
    done = await retry(peer, "ask_same_key", {"it": RED}, second.result["requestState"])
    assert done.text == "Bob is not red"


@rules.verifies(rules.THREAT_7)
async def test_an_answer_that_was_not_asked_for_yet_is_not_taken_with_a_state(offering: Offering) -> None:
    """An answer in the first round does not count for the question of the second one."""
    peer = await ready(offering)
    state = await asked(peer, "ask_twice")
    second = await retry(peer, "ask_twice", {"name": BOB, "colour": RED}, state)
    assert is_asking(second, "colour")


@rules.verifies(rules.THREAT_7)
async def test_an_accepted_answer_cannot_be_changed_later(offering: Offering) -> None:
    """The answer in the state counts."""
    peer = await ready(offering)
    second = await retry(peer, "ask_twice", {"name": BOB}, await asked(peer, "ask_twice"))
    other = {"action": "accept", "content": {"name": "Eve"}}
    done = await retry(peer, "ask_twice", {"name": other, "colour": RED}, second.result["requestState"])
    assert done.text == "Bob then red"


@rules.verifies(rules.THREAT_7)
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_refusal_is_an_answer_too(offering: Offering, action: str) -> None:
    """The tool receives the refusal."""
    peer = await ready(offering)
    state = await asked(peer, "ask")
    assert (await retry(peer, "ask", {"name": {"action": action}}, state)).text == f"Hello {action}"


@rules.verifies(rules.H15, rules.V6)
async def test_capabilities_count_on_every_round(offering: Offering) -> None:
    """A retry with fewer capabilities is rejected."""
    peer = await ready(offering)
    state = await asked(peer, "ask")
    peer.capabilities = {"sampling": {}}
    assert (await retry(peer, "ask", {"name": {"action": "nonsense"}}, state)).outcome == (400, -32021)


@rules.verifies(rules.THREAT_7)
@pytest.mark.parametrize(
    "members", [{"role": "assistant", "model": "m", "content": "words"}, {"role": "assistant"}, {"text": "x"}]
)
async def test_a_sampling_answer_of_the_wrong_shape_is_asked_for_again(
    offering: Offering, members: dict[str, Any]
) -> None:
    peer = await ready(offering)
    state = await asked(peer, "sample")
    assert is_asking(await retry(peer, "sample", {"said": members}, state), "said")
    good = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "words"}}
    assert (await retry(peer, "sample", {"said": good}, state)).text == "words"


@rules.verifies(rules.THREAT_8)
async def test_two_clients_with_the_same_call_have_their_own_rounds(offering: Offering) -> None:
    """The server stores nothing between requests."""
    one, other = await ready(offering), await ready(offering)
    first, second = await asked(one, "ask"), await asked(other, "ask")
    eve = {"action": "accept", "content": {"name": "Eve"}}
    assert (await retry(other, "ask", {"name": eve}, second)).text == "Hello Eve"
    assert (await retry(one, "ask", {"name": BOB}, first)).text == "Hello Bob"
