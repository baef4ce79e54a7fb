"""Questions to a client of the handshake era: requests out, responses in."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from funcmcp._protocol.errors import ToolError
from funcmcp._protocol.jsonrpc import Response
from funcmcp._server.connections.conversation import Conversation
from tests.patience import PATIENCE
from tests.server.parts import ASK_CAPITAL, ASK_NAME

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

QUESTIONS = {"name": ASK_NAME, "capital": ASK_CAPITAL}
NAME = {"action": "accept", "content": {"name": "Ada"}}
CAPITAL = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}


class Asking:
    """A conversation in which questions have been asked.

    Attributes:
        sent: what went out, by method.
    """

    def __init__(self) -> None:
        self.conversation = Conversation()
        self.sent: dict[str, dict[str, Any]] = {}
        self.task = asyncio.ensure_future(self.conversation.ask(QUESTIONS, self._send))

    async def _send(self, data: bytes) -> None:
        message = json.loads(data)
        self.sent[message["method"]] = message

    def respond(self, method: str, result: dict[str, Any] | None, error: dict[str, Any] | None = None) -> None:
        """Answer a question."""
        self.conversation.answer(Response(self.sent[method]["id"], result, error))

    async def outcome(self) -> dict[str, dict[str, Any]]:
        """Return the answers."""
        return await asyncio.wait_for(self.task, PATIENCE)


async def asked() -> Asking:
    asking = Asking()
    await asyncio.sleep(0)
    assert set(asking.sent) == {"elicitation/create", "sampling/createMessage"}
    return asking


async def test_questions_go_out_together_and_their_answers_come_back_by_key() -> None:
    asking = await asked()
    assert asking.sent["elicitation/create"]["params"] == ASK_NAME["params"]
    asking.respond("sampling/createMessage", CAPITAL)
    asking.respond("elicitation/create", NAME)
    assert await asking.outcome() == {"name": NAME, "capital": CAPITAL}


async def test_an_error_is_no_answer() -> None:
    asking = await asked()
    asking.respond("elicitation/create", None, {"code": -1, "message": "no"})
    with pytest.raises(ToolError, match="answered elicitation/create with an error"):
        await asking.outcome()


async def test_a_result_that_does_not_fit_is_no_answer() -> None:
    asking = await asked()
    asking.respond("elicitation/create", {"action": "perhaps"})
    with pytest.raises(ToolError, match="answer to elicitation/create is not valid"):
        await asking.outcome()


async def test_nothing_waits_any_more_once_asking_is_over_however_it_ended() -> None:
    asking = await asked()
    asking.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking.outcome()
    await asyncio.sleep(0)
    assert asking.conversation.idle


async def test_abandoned_questions_have_no_answer_but_given_answers_count() -> None:
    conversation = Conversation()
    answered_id, answered = conversation.question()
    _, open_one = conversation.question()
    conversation.answer(Response(answered_id, NAME, None))
    conversation.abandon()
    assert (await asyncio.wait_for(answered, PATIENCE)).result == NAME
    assert (await asyncio.wait_for(open_one, PATIENCE)).error is not None
