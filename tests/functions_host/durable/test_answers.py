"""Answers of orchestrator functions."""

from __future__ import annotations

import json

import pytest

from funcmcp_host.durable.answers import AnswerError, answer_of_failure, decoded, read_answer
from funcmcp_host.workers.worker import NULL, Value

ACTIONS = [
    [{"actionType": 0, "functionName": "a"}],
    [
        {"actionType": 12, "compoundActions": [{"actionType": 5}, {"actionType": 11, "compoundActions": []}]},
        {"actionType": 6},
    ],
]


def test_actions_in_groups_are_read_in_their_order() -> None:
    answer = read_answer(Value("json", json.dumps({"isDone": True, "actions": ACTIONS, "output": [1]})))
    assert [action["actionType"] for action in answer.actions] == [0, 5, 6]
    assert (answer.is_done, answer.output, answer.error, answer.custom_status) == (True, [1], None, None)


@pytest.mark.parametrize("text", ["null", "[]", '"text"', "{}", '{"actions": 1}'])
def test_other_values_are_not_answers(text: str) -> None:
    with pytest.raises(AnswerError, match="did not return the state of an orchestration"):
        read_answer(Value("json", text))
    with pytest.raises(AnswerError, match="did not return the state of an orchestration"):
        read_answer(NULL)


@pytest.mark.parametrize("actions", [[1], [[{}]], [{"actionType": "0"}]])
def test_an_action_has_a_type(actions: object) -> None:
    with pytest.raises(AnswerError, match="an action without a type"):
        read_answer(Value("json", json.dumps({"actions": actions})))


def test_a_failure_ends_with_the_state() -> None:
    state = {"actions": ACTIONS, "error": "it's broken", "customStatus": 3}
    text = f"it's broken\n\n$OutOfProcData$:{json.dumps(state)}"
    for message in (f"Exception: {text}", f"Exception({text!r})", f"{text} and more"):
        answer = answer_of_failure(message)
        assert (answer.error, answer.custom_status, len(answer.actions)) == ("it's broken", 3, 3)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("ValueError: no", "ValueError: no"),
        ("Exception: no\n\n$OutOfProcData$:{short", "Exception: no"),
        ("KeyError('a' + 'b')", "KeyError('a' + 'b')"),
        ("ValueError('no')", "no"),
    ],
)
def test_other_failures_are_texts(text: str, error: str) -> None:
    answer = answer_of_failure(text)
    assert (answer.error, answer.actions, answer.is_done) == (error, [], False)


def test_values_of_workers_are_decoded() -> None:
    assert decoded(Value("json", '"1"')) == "1"
    assert decoded(Value("string", "1")) == "1"
    assert decoded(Value("bytes", b"\xff1")) == "\ufffd1"
    assert decoded(Value("int", 1)) == 1
    assert decoded(NULL) is None
