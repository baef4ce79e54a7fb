"""The moving parts of a session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from funcmcp._protocol.jsonrpc import Response
from funcmcp._server.connections.cancellation import cancel_requested
from funcmcp._server.connections.conversation import Conversation
from funcmcp._server.run import Run
from tests.patience import PATIENCE

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


def response(request_id: str | int | None) -> Response:
    return Response(request_id, {"action": "decline"}, None)


def test_a_new_conversation_has_nothing_to_remember() -> None:
    assert Conversation().idle


def test_a_run_keeps_a_conversation_busy_until_it_is_finished() -> None:
    conversation, first, second = Conversation(), Run(), Run()
    conversation.begin(1, first)
    conversation.begin(1, second)
    conversation.finish(1, first)
    assert not conversation.idle
    conversation.finish(1, second)
    assert conversation.idle


def test_a_chosen_level_is_worth_remembering() -> None:
    conversation = Conversation()
    conversation.log_level = "debug"
    assert not conversation.idle


def test_cancelling_an_id_cancels_every_run_of_exactly_this_id() -> None:
    conversation, runs = Conversation(), [Run(), Run(), Run()]
    conversation.begin(1, runs[0])
    conversation.begin(1, runs[1])
    conversation.begin("1", runs[2])
    conversation.cancel(1)
    assert [run.cancelled for run in runs] == [True, True, False]


def test_cancelling_an_unknown_id_does_nothing() -> None:
    conversation, run = Conversation(), Run()
    conversation.begin("a", run)
    conversation.cancel("b")
    assert not run.cancelled


@pytest.mark.parametrize("request_id", [7, "7"])
def test_a_cancelled_notification_cancels_the_run_that_it_names(request_id: str | int) -> None:
    conversation, run = Conversation(), Run()
    conversation.begin(request_id, run)
    cancel_requested(conversation, {"requestId": request_id, "reason": "enough"})
    assert run.cancelled


@pytest.mark.parametrize(
    "params", [{}, {"requestId": None}, {"requestId": True}, {"requestId": [1]}, {"requestId": 1.0}]
)
def test_a_cancelled_notification_without_a_usable_id_is_ignored(params: dict[str, Any]) -> None:
    conversation, run = Conversation(), Run()
    conversation.begin(1, run)
    cancel_requested(conversation, params)
    assert not run.cancelled


async def test_an_answer_finds_the_question_of_its_id_and_no_other() -> None:
    conversation = Conversation()
    first_id, first = conversation.question()
    second_id, second = conversation.question()
    assert first_id != second_id
    given = response(second_id)
    conversation.answer(given)
    assert await asyncio.wait_for(second, PATIENCE) is given
    assert not first.done()


async def test_an_answer_that_nothing_waits_for_is_dropped() -> None:
    conversation = Conversation()
    question_id, future = conversation.question()
    for stray in (response(None), response(1), response("ask-unknown")):
        conversation.answer(stray)
    assert not future.done()
    given = response(question_id)
    conversation.answer(given)
    conversation.answer(response(question_id))
    assert await asyncio.wait_for(future, PATIENCE) is given


async def test_a_question_is_forgotten_once_it_is_answered_or_given_up() -> None:
    conversation = Conversation()
    question_id, answered = conversation.question()
    _, given_up = conversation.question()
    seen = [conversation.idle]
    conversation.answer(response(question_id))
    given_up.cancel()
    await asyncio.sleep(0)
    seen.append(conversation.idle)
    assert seen == [False, True]
    assert answered.done()
