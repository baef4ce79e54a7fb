"""Answers of the client to questions of the server, and the capabilities that it declares for them."""

from __future__ import annotations

from typing import Any

import pytest

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
