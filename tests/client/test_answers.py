"""Answers of the client to questions of the server, and the capabilities that it declares for them."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError
from funcmcp._client.answers import Answers, UndeclaredQuestionError

ELICIT = {"method": "elicitation/create", "params": {"message": "Who?"}}
SAMPLE = {"method": "sampling/createMessage", "params": {"maxTokens": 10}}
ROOTS = {"method": "roots/list"}


async def echo(params: dict[str, Any]) -> dict[str, Any]:
    return {"asked": params}


async def test_a_client_that_can_answer_everything_declares_and_answers_everything() -> None:
    answers = Answers(echo, echo, [{"uri": "file:///home"}])
    assert answers.capabilities == {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
    assert await answers.to(ELICIT) == {"asked": {"message": "Who?"}}
    assert await answers.to(SAMPLE) == {"asked": {"maxTokens": 10}}
    assert await answers.to(ROOTS) == {"roots": [{"uri": "file:///home"}]}


async def test_a_callback_may_be_a_plain_function() -> None:
    callback: Any = lambda params: {"asked": params}  # noqa: E731 - as users write it
    assert await Answers(callback, None, None).to(ELICIT) == {"asked": {"message": "Who?"}}


@pytest.mark.parametrize("answer", [None, "Ada", ["Ada"]])
async def test_a_callback_that_returns_something_else_is_an_error_that_says_what_to_return(answer: Any) -> None:
    async def callback(params: dict[str, Any]) -> Any:
        return answer

    answers = Answers(callback, callback, None)
    with pytest.raises(TypeError, match=f"elicit must return an ElicitResult, .*; got {type(answer).__name__}"):
        await answers.to(ELICIT)
    with pytest.raises(TypeError, match=f"sample must return a CreateMessageResult, .*; got {type(answer).__name__}"):
        await answers.to(SAMPLE)


@pytest.mark.parametrize("roots", [["file:///home"], "file:///home", [{"name": "home"}], list])
def test_roots_of_another_form_are_an_error_at_once(roots: Any) -> None:
    with pytest.raises(TypeError, match="roots must be a list of Root objects, such as"):
        Answers(None, None, roots)


async def test_a_client_without_any_roots_declares_them_all_the_same() -> None:
    answers = Answers(None, None, [])
    assert answers.capabilities == {"roots": {}}
    assert await answers.to(ROOTS) == {"roots": []}


@pytest.mark.parametrize("question", [ELICIT, SAMPLE, ROOTS, {"method": "tasks/get"}])
async def test_a_question_that_was_not_declared_is_a_fault_of_the_server(question: dict[str, Any]) -> None:
    answers = Answers(None, None, None)
    assert answers.capabilities == {}
    with pytest.raises(UndeclaredQuestionError, match=question["method"]):
        await answers.to(question)


@pytest.mark.parametrize("params", [None, [], "x", 5])
async def test_params_of_another_type_are_taken_as_empty(params: object) -> None:
    answers = Answers(echo, None, None)
    assert await answers.to({"method": "elicitation/create", "params": params}) == {"asked": {}}


async def test_a_ping_is_answered_without_any_callback() -> None:
    assert await Answers(None, None, None).to({"method": "ping"}) == {}


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "verified": {"type": "boolean", "default": False},
        "colours": {"type": "array", "default": ["red"]},
        "note": {"type": "string"},
        "nothing": {"type": "string", "default": None},
    },
}
DEFAULTS = {"name": "John Doe", "age": 30, "score": 95.5, "verified": False, "colours": ["red"]}


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ({"action": "accept"}, DEFAULTS),
        ({"action": "accept", "content": None}, DEFAULTS),
        ({"action": "accept", "content": {"age": 7, "note": "x"}}, {**DEFAULTS, "age": 7, "note": "x"}),
        ({"action": "accept", "content": {"name": ""}}, {**DEFAULTS, "name": ""}),
        ({"action": "accept", "content": "text"}, "text"),
    ],
)
async def test_fields_that_an_accepted_form_does_not_have_get_their_defaults(answer: Any, content: Any) -> None:
    async def elicit(_params: dict[str, Any]) -> dict[str, Any]:
        return dict(answer)

    question = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": FORM}}
    assert (await Answers(elicit, None, None).to(question))["content"] == content


@pytest.mark.parametrize(
    ("action", "schema"),
    [
        ("decline", FORM),
        ("cancel", FORM),
        ("accept", None),
        ("accept", {"properties": {"name": {"type": "string"}, "odd": True}}),
        ("accept", {"properties": []}),
    ],
)
async def test_other_answers_stay_as_they_are(action: str, schema: Any) -> None:
    async def elicit(_params: dict[str, Any]) -> dict[str, Any]:
        return {"action": action}

    question = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}}
    assert await Answers(elicit, None, None).to(question) == {"action": action}


def use(use_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": use_id, "name": "add", "input": {}}


def result(use_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseId": use_id, "content": []}


TEXT = {"type": "text", "text": "5"}


@pytest.mark.parametrize(
    "messages",
    [
        [("user", TEXT)],
        [("user", TEXT), ("assistant", use("1")), ("user", result("1")), ("assistant", TEXT)],
        [("assistant", [TEXT, use("1"), use("2")]), ("user", [result("2"), result("1")]), ("user", TEXT)],
    ],
)
async def test_uses_of_tools_with_their_results_are_sampled(messages: list[Any]) -> None:
    params = {"messages": [{"role": role, "content": content} for role, content in messages], "tools": []}
    assert await Answers(None, echo, None).to({**SAMPLE, "params": params}) == {"asked": params}


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([("assistant", use("1"))], "are missing"),
        ([("assistant", use("1")), ("user", TEXT)], "not those of the uses"),
        ([("assistant", [use("1"), use("2")]), ("user", result("1"))], "not those of the uses"),
        ([("user", result("1"))], "not those of the uses"),
        ([("assistant", use("1")), ("user", [result("1"), TEXT])], "other content"),
    ],
)
async def test_uses_of_tools_without_their_results_are_refused(messages: list[Any], problem: str) -> None:
    params = {"messages": [{"role": role, "content": content} for role, content in messages]}
    with pytest.raises(MCPError, match=problem) as raised:
        await Answers(None, echo, None).to({**SAMPLE, "params": params})
    assert raised.value.code == -32602


@pytest.mark.parametrize("messages", [None, {}, [None, {"role": "user"}, {"role": "user", "content": [None, 5]}]])
async def test_messages_of_another_form_are_left_to_the_callback(messages: Any) -> None:
    params = {"messages": messages}
    assert await Answers(None, echo, None).to({**SAMPLE, "params": params}) == {"asked": params}
