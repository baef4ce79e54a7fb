"""Rounds of questions in the per-request era."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from funcmcp._protocol.errors import INVALID_PARAMS, InvalidParams, ToolError
from funcmcp._protocol.jsonrpc import Request
from funcmcp._server.calls import rounds
from funcmcp._server.calls.rounds import (
    CONFIRMATION,
    LIFETIME,
    MAX_INVALID_ANSWERS,
    InputRequired,
    Rounds,
    UsedStates,
    digest,
    run_end,
)
from funcmcp._state.bus import LocalBus
from funcmcp._state.seal import KeyRing
from tests import schemas
from tests.server.parts import ASK_CAPITAL, ASK_NAME, KEYS, Recorder, no_used_states

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

ADA = {"action": "accept", "content": {"name": "Ada"}}
PARIS = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
CALL: dict[str, Any] = {"name": "greet", "arguments": {"loud": True, "times": 2}}


def open_rounds(params: dict[str, Any], keys: KeyRing = KEYS, used: UsedStates | None = None) -> Rounds:
    return Rounds(Recorder(), Request(1, "tools/call", params), keys, used or no_used_states())


async def refused(params: dict[str, Any], **questions: Any) -> dict[str, Any]:
    """Ask, and return the InputRequiredResult that ends the round."""
    with pytest.raises(InputRequired) as caught:
        await open_rounds(params).ask(questions)
    result = {"resultType": "input_required", **caught.value.result()}
    schemas.validate({"jsonrpc": "2.0", "id": 1, "result": result}, "2026-07-28", "tools/call")
    return result


async def state_of(params: dict[str, Any], **questions: Any) -> str:
    state = (await refused(params, **questions))["requestState"]
    assert isinstance(state, str)
    return state


async def test_a_question_without_an_answer_ends_the_round() -> None:
    result = await refused(CALL, name=ASK_NAME)
    assert result["inputRequests"] == {"name": ASK_NAME}


async def test_the_retry_with_the_answer_goes_on() -> None:
    state = await state_of(CALL, name=ASK_NAME)
    again = open_rounds({**CALL, "inputResponses": {"name": ADA}, "requestState": state})
    assert await again.ask({"name": ASK_NAME}) == {"name": ADA}


async def test_an_answer_counts_even_without_a_state() -> None:
    assert await open_rounds({**CALL, "inputResponses": {"name": ADA}}).ask({"name": ASK_NAME}) == {"name": ADA}


async def test_answers_of_earlier_rounds_come_back_in_the_state() -> None:
    first = await state_of(CALL, name=ASK_NAME)
    params = {**CALL, "inputResponses": {"name": ADA}, "requestState": first}
    run = open_rounds(params)
    await run.ask({"name": ASK_NAME})
    with pytest.raises(InputRequired) as caught:
        await run.ask({"capital": ASK_CAPITAL})
    assert caught.value.state != first
    last = open_rounds({**CALL, "inputResponses": {"capital": PARIS}, "requestState": caught.value.state})
    assert await last.ask({"name": ASK_NAME}) == {"name": ADA}
    assert await last.ask({"capital": ASK_CAPITAL}) == {"capital": PARIS}


async def test_only_what_is_still_missing_is_asked_again() -> None:
    state = await state_of(CALL, name=ASK_NAME, capital=ASK_CAPITAL)
    params = {**CALL, "inputResponses": {"name": ADA}, "requestState": state}
    result = await refused(params, name=ASK_NAME, capital=ASK_CAPITAL)
    assert set(result["inputRequests"]) == {"capital"}
    last = {**CALL, "inputResponses": {"capital": PARIS}, "requestState": result["requestState"]}
    answers = await open_rounds(last).ask({"name": ASK_NAME, "capital": ASK_CAPITAL})
    assert answers == {"name": ADA, "capital": PARIS}


@pytest.mark.parametrize(
    "responses",
    [
        {},
        {"other": ADA},
        {"name": None},
        {"name": "Ada"},
        {"name": {"action": "accept", "content": {"name": 12345}}},
        {"name": {"action": ["accept"]}},
        {"name": PARIS},
    ],
)
async def test_a_wrong_answer_is_asked_again(responses: dict[str, Any]) -> None:
    state = await state_of(CALL, name=ASK_NAME)
    result = await refused({**CALL, "inputResponses": responses, "requestState": state}, name=ASK_NAME)
    assert set(result["inputRequests"]) == {"name"}


async def test_the_third_answer_that_does_not_fit_is_an_error_of_the_tool() -> None:
    wrong = {"name": {"action": "accept", "content": {"name": 5}}}
    params = {**CALL, "requestState": await state_of(CALL, name=ASK_NAME)}
    for _ in range(MAX_INVALID_ANSWERS - 1):
        params["requestState"] = await state_of({**params, "inputResponses": wrong}, name=ASK_NAME)
    params["requestState"] = await state_of(params, name=ASK_NAME)  # a retry without an answer is no wrong answer
    with pytest.raises(ToolError, match="3 invalid answers to the question 'name'"):
        await open_rounds({**params, "inputResponses": wrong}).ask({"name": ASK_NAME})
    again = open_rounds({**params, "inputResponses": {"name": ADA}})
    assert await again.ask({"name": ASK_NAME}) == {"name": ADA}


async def test_answers_that_nobody_asked_for_are_ignored() -> None:
    run = open_rounds({**CALL, "inputResponses": {"name": ADA, "extra": {"a": 1}}})
    assert await run.ask({"name": ASK_NAME}) == {"name": ADA}


@pytest.mark.parametrize("responses", [None, [], "name", 5, True])
def test_responses_that_are_no_object_are_invalid_params(responses: object) -> None:
    with pytest.raises(InvalidParams, match="inputResponses"):
        open_rounds({**CALL, "inputResponses": responses})


async def test_an_answer_to_another_question_under_the_same_key_does_not_count() -> None:
    other = {**ASK_NAME, "params": {**ASK_NAME["params"], "message": "Whose name?"}}  # type: ignore[dict-item]
    state = await state_of(CALL, name=ASK_NAME)
    params = {**CALL, "inputResponses": {"name": ADA}, "requestState": state}
    await refused(params, name=other)
    answered = open_rounds(params)
    await answered.ask({"name": ASK_NAME})
    with pytest.raises(InputRequired):
        await answered.ask({"name": other})


@pytest.mark.parametrize("state", [None, 5, "", "1.e30.AAAA", "state-ok"])
def test_a_state_that_the_server_did_not_make_is_invalid_params(state: object) -> None:
    with pytest.raises(InvalidParams, match="requestState") as caught:
        open_rounds({**CALL, "requestState": state})
    assert caught.value.code == INVALID_PARAMS


def sealed(value: object) -> str:
    return KEYS.seal("request state", value if isinstance(value, bytes) else json.dumps(value).encode())


async def test_a_state_of_another_version_is_read_and_its_members_are_kept() -> None:
    state = json.loads(KEYS.open("request state", await state_of(CALL, name=ASK_NAME)) or b"")
    for other in ({**state, "added": [1]}, {name: value for name, value in state.items() if name != "v"}):
        params = {**CALL, "inputResponses": {"name": ADA}, "requestState": sealed(other)}
        with pytest.raises(InputRequired) as caught:
            await open_rounds(params).ask({"name": ASK_NAME, "capital": ASK_CAPITAL})
        kept = json.loads(KEYS.open("request state", caught.value.state) or b"")
        assert (kept["v"], kept.get("added"), list(kept["answered"])) == (1, other.get("added"), ["name"])


async def test_a_state_that_this_version_can_not_read_is_invalid_params() -> None:
    first = {**CALL, "inputResponses": {"name": ADA}, "requestState": await state_of(CALL, name=ASK_NAME)}
    with pytest.raises(InputRequired) as caught:
        await open_rounds(first).ask({"name": ASK_NAME, "capital": ASK_CAPITAL})
    state = json.loads(KEYS.open("request state", caught.value.state) or b"")
    bad_states: list[object] = [b"", b"\xff", [], [1], {}, 1, {**state, "v": 2}, {**state, "v": None}]
    bad_states += [{**state, "nonce": bad} for bad in (None, 1, [None])]
    for name in state.keys() - {"v", "nonce"}:
        bad_states += [{other: value for other, value in state.items() if other != name}]
        bad_states += [{**state, name: [None]}, {**state, name: None}, {**state, name: "text"}]
    bad_states += [{**state, "answered": {"name": bad}} for bad in (None, [], ["a"], ["a", "b"], [1, {}], ["a", {}, 1])]
    bad_states += [{**state, "invalid": {"name": "1"}}]
    for bad in bad_states:
        with pytest.raises(InvalidParams, match="Invalid or expired requestState"):
            open_rounds({**CALL, "requestState": sealed(bad)})


async def test_a_state_that_was_tampered_with_is_invalid_params() -> None:
    state = await state_of(CALL, name=ASK_NAME)
    with pytest.raises(InvalidParams, match="requestState"):
        open_rounds({**CALL, "requestState": state + "-TAMPERED"})


async def test_a_state_of_another_servers_keys_is_invalid_params() -> None:
    state = await state_of(CALL, name=ASK_NAME)
    with pytest.raises(InvalidParams, match="requestState"):
        open_rounds({**CALL, "requestState": state}, KeyRing([b"o" * 32]))


@pytest.mark.parametrize("change", [{"name": "delete"}, {"arguments": {"loud": False, "times": 2}}, {"arguments": {}}])
async def test_a_state_is_only_good_for_the_request_that_it_was_made_for(change: dict[str, Any]) -> None:
    state = await state_of(CALL, name=ASK_NAME)
    with pytest.raises(InvalidParams, match="requestState"):
        open_rounds({**CALL, **change, "requestState": state})


async def test_a_state_is_only_good_for_its_method() -> None:
    state = await state_of(CALL, name=ASK_NAME)
    with pytest.raises(InvalidParams, match="requestState"):
        Rounds(Recorder(), Request(1, "prompts/get", {**CALL, "requestState": state}), KEYS, no_used_states())


async def test_a_retry_may_write_its_arguments_in_another_order() -> None:
    state = await state_of(CALL, name=ASK_NAME)
    swapped = {"arguments": {"times": 2, "loud": True}, "name": "greet"}
    run = open_rounds({**swapped, "inputResponses": {"name": ADA}, "requestState": state})
    assert await run.ask({"name": ASK_NAME}) == {"name": ADA}


async def test_a_state_is_good_until_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1_000_000.0]
    monkeypatch.setattr(rounds, "time", lambda: clock[0])
    state = await state_of(CALL, name=ASK_NAME)
    clock[0] += LIFETIME - 1
    open_rounds({**CALL, "requestState": state})
    clock[0] += 1
    with pytest.raises(InvalidParams, match="expired"):
        open_rounds({**CALL, "requestState": state})


async def test_notifications_are_passed_on() -> None:
    channel = Recorder()
    opened = Rounds(channel, Request(1, "tools/call", CALL), KEYS, no_used_states())
    await opened.notify("notifications/progress", {"progress": 1})
    assert channel.sent == [("notifications/progress", {"progress": 1})]


def test_a_digest_does_not_depend_on_the_order_of_members() -> None:
    assert digest({"a": 1, "b": [{"c": 1, "d": 2}]}) == digest({"b": [{"d": 2, "c": 1}], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    assert digest(["a", "b"]) != digest(["b", "a"])


def test_the_end_of_a_round_is_not_swallowed_by_an_authors_except() -> None:
    assert not issubclass(InputRequired, Exception)


async def test_the_end_of_a_round_is_found_in_the_group_of_a_task_group() -> None:
    ended = InputRequired({"name": ASK_NAME}, "state")

    async def ask() -> None:
        raise ended

    with pytest.raises(BaseExceptionGroup) as caught:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask())
    assert run_end(caught.value) is ended
    assert run_end(BaseExceptionGroup("outer", [ValueError("no"), caught.value])) is ended


@pytest.mark.parametrize(
    "error", [ValueError("no"), KeyboardInterrupt(), ExceptionGroup("outer", [ValueError("no"), KeyError("no")])]
)
def test_other_failures_end_no_round(error: BaseException) -> None:
    assert run_end(error) is None


async def test_a_state_holds_nothing_that_the_client_does_not_know() -> None:
    state = await state_of(CALL, name=ASK_NAME)
    payload = KEYS.open("request state", state)
    assert payload is not None
    assert set(json.loads(payload)) == {"v", "digest", "expires", "answered", "pending", "invalid", "nonce"}


async def test_rounds_pass_on_what_is_no_question() -> None:
    channel = Recorder()
    opened = Rounds(channel, Request(1, "tools/call", CALL), KEYS, no_used_states())
    await opened.notify("notifications/progress", {"progress": 1})
    opened.close_stream()
    assert opened.pushes
    assert channel.sent == [("notifications/progress", {"progress": 1})]
    assert channel.closed == 1


async def test_the_answer_to_a_confirmation_counts_only_if_it_was_asked_for() -> None:
    with pytest.raises(InputRequired):
        await open_rounds({**CALL, "inputResponses": {CONFIRMATION: ADA}}).ask({CONFIRMATION: ASK_NAME})


async def test_a_confirmation_serves_one_call() -> None:
    used = no_used_states()
    state = await state_of(CALL, **{CONFIRMATION: ASK_NAME})
    params = {**CALL, "inputResponses": {CONFIRMATION: ADA}, "requestState": state}
    assert await open_rounds(params, used=used).ask({CONFIRMATION: ASK_NAME}) == {CONFIRMATION: ADA}
    with pytest.raises(ToolError, match="has been used"):
        await open_rounds(params, used=used).ask({CONFIRMATION: ASK_NAME})


async def test_a_later_round_of_a_confirmed_call_serves_one_call_too() -> None:
    used = no_used_states()
    state = await state_of(CALL, **{CONFIRMATION: ASK_NAME})
    run = open_rounds({**CALL, "inputResponses": {CONFIRMATION: ADA}, "requestState": state}, used=used)
    await run.ask({CONFIRMATION: ASK_NAME})
    with pytest.raises(InputRequired) as caught:
        await run.ask({"capital": ASK_CAPITAL})
    params = {**CALL, "inputResponses": {"capital": PARIS}, "requestState": caught.value.state}
    last = open_rounds(params, used=used)
    assert await last.ask({CONFIRMATION: ASK_NAME}) == {CONFIRMATION: ADA}
    assert await last.ask({"capital": ASK_CAPITAL}) == {"capital": PARIS}
    with pytest.raises(ToolError, match="has been used"):
        await open_rounds(params, used=used).ask({CONFIRMATION: ASK_NAME})


def test_a_state_that_was_used_at_another_instance_is_used() -> None:
    bus = LocalBus()
    here, there = UsedStates(bus), UsedStates(bus.beside())
    assert here.use("a", 2_000_000_000)
    assert not there.use("a", 2_000_000_000)


def test_used_states_are_bounded_and_none_of_them_serves_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "time", lambda: 1_000.0)
    monkeypatch.setattr(rounds, "_MAX_USED_STATES", 2)
    used = no_used_states()
    assert [used.use(name, expires) for name, expires in (("a", 2_000), ("b", 2_001), ("c", 2_002))] == [True] * 3
    assert not used.use("a", 2_000)
    assert not used.use("another", 2_000)
    assert used.use("later", 2_003)


def test_a_used_state_is_forgotten_when_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(rounds, "time", lambda: clock[0])
    used = no_used_states()
    used.use("a", 2_000)
    clock[0] = 2_000.0
    used.use("b", 3_000)
    assert set(used._expiries) == {"b"}


def test_a_used_state_of_another_instance_that_has_expired_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "time", lambda: 3_000.0)
    bus = LocalBus()
    here, there = UsedStates(bus), UsedStates(bus.beside())
    there.use("a", 2_000)
    assert not here._expiries


async def test_a_feature_keeps_values_until_the_next_round() -> None:
    first = open_rounds(CALL)
    assert first.carried == {}
    first.carried["upstream"] = {"requestState": "opaque", "keys": ["a"]}
    with pytest.raises(InputRequired) as caught:
        await first.ask({"name": ASK_NAME})
    second = open_rounds({**CALL, "inputResponses": {"name": ADA}, "requestState": caught.value.state})
    assert second.carried == {"upstream": {"requestState": "opaque", "keys": ["a"]}}
    assert second.responses == {"name": ADA}
    with pytest.raises(InvalidParams):
        open_rounds({**CALL, "name": "other", "requestState": caught.value.state})
