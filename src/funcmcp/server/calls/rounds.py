"""Rounds of questions in the per-request era (2026-07-28, "basic/patterns/mrtr").

A run that needs an answer which the request does not bring ends with `input_required`. The client sends the same
request again with the answers, and the feature is run again from its start; answers of earlier rounds come back in
the sealed `requestState`, so no instance has to remember anything.
"""

from __future__ import annotations

import hashlib
import json
from time import time
from typing import TYPE_CHECKING, Any

from funcmcp.protocol.answers import read_answer
from funcmcp.protocol.codec import decode, encode
from funcmcp.protocol.errors import InvalidParams, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp.protocol.jsonrpc import Request
    from funcmcp.server.calls.channel import Channel
    from funcmcp.state.seal import KeyRing

LIFETIME = 3600
"""Seconds for which a `requestState` is good: a person needs time to answer."""

MOST_WRONG = 3
"""Answers that do not fit, after which a question is not asked again."""

_PURPOSE = "request state"


class InputRequired(BaseException):
    """Ends a run whose questions have no answers yet.

    It is not an Exception, so that an author's ``except Exception`` does not swallow it.
    """

    def __init__(self, questions: Mapping[str, Mapping[str, Any]], state: str) -> None:
        super().__init__("input required")
        self.questions = questions
        self.state = state

    def result(self) -> dict[str, Any]:
        """Return the InputRequiredResult."""
        return {"inputRequests": self.questions, "requestState": self.state}


class Rounds:
    """A channel that answers questions from what the request brought, and ends the run where it can't.

    Args:
        channel: where notifications go.
        request: the request; its `inputResponses` and `requestState` are read.
        keys: seal and open the state.
        owner: whose state it is; nobody else can go on with it.

    Raises:
        InvalidParams: `inputResponses` is not an object, or the state was not made by this server for this request
            of this owner.
    """

    __slots__ = ("_answered", "_channel", "_digest", "_keys", "_pending", "_responses", "_wrong")

    def __init__(self, channel: Channel, request: Request, keys: KeyRing, owner: str | None = None) -> None:
        self._channel = channel
        self._keys = keys
        params = request.params
        self._digest = digest([owner, request.method, params.get("name"), params.get("uri"), params.get("arguments")])
        responses = params.get("inputResponses", {})
        if type(responses) is not dict:
            raise InvalidParams('"inputResponses" must be an object.')
        self._responses: dict[str, Any] = responses
        self._answered: dict[str, Any] = {}
        self._pending: dict[str, str] | None = None
        self._wrong: dict[str, int] = {}
        if "requestState" in params:
            state = self._open(params["requestState"])
            self._answered, self._pending, self._wrong = state["answered"], state["pending"], state["wrong"]

    @property
    def pushes(self) -> bool:
        """Whether notifications arrive before the answer."""
        return self._channel.pushes

    def close_stream(self) -> None:
        """End the connection, if the client can take the stream up again."""
        self._channel.close_stream()

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Pass a notification on."""
        await self._channel.notify(method, params)

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the answers if all of them are there.

        Raises:
            InputRequired: one is missing or does not fit.
            ToolError: one did not fit for the third time.
        """
        answers: dict[str, dict[str, Any]] = {}
        missing: dict[str, str] = {}
        for key, question in questions.items():
            asked = digest(question)
            answer = self._find(key, asked, question)
            if answer is None:
                missing[key] = asked
                self._count_wrong(key, asked)
            else:
                answers[key] = answer
                self._answered[key] = [asked, answer]
        if missing:
            state = {"digest": self._digest, "expires": int(time()) + LIFETIME, "pending": missing}
            state.update(answered=self._answered, wrong=self._wrong)
            sealed = self._keys.seal(_PURPOSE, encode(state))
            raise InputRequired({key: questions[key] for key in missing}, sealed)
        return answers

    def _count_wrong(self, key: str, asked: str) -> None:
        """Count an answer that does not fit its question; raise ToolError where asking again has not helped."""
        if key not in self._responses or (self._pending is not None and self._pending.get(key) != asked):
            return  # it is not answered yet, or the answer is to another question
        self._wrong[key] = self._wrong.get(key, 0) + 1
        if self._wrong[key] == MOST_WRONG:
            raise ToolError(f"The client answered the question {key!r} {MOST_WRONG} times with what does not fit it.")

    def _find(self, key: str, asked: str, question: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the answer to exactly this question: an answer to another one under the same key does not count."""
        earlier = self._answered.get(key)
        if earlier is not None and earlier[0] == asked:
            answer: dict[str, Any] = earlier[1]
            return answer
        if self._pending is not None and self._pending.get(key) != asked:
            return None
        return read_answer(question, self._responses.get(key))

    def _open(self, token: object) -> dict[str, Any]:
        payload = self._keys.open(_PURPOSE, token) if isinstance(token, str) else None
        if payload is not None:
            state: dict[str, Any] = decode(payload)
            if state["digest"] == self._digest and state["expires"] > time():
                return state
        raise InvalidParams("Invalid or expired requestState; send the request again without it.")


def digest(value: object) -> str:
    """Return a short fingerprint of a JSON value."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def input_required(error: BaseException) -> InputRequired | None:
    """Find the InputRequired in what a run raised: by itself, or in the group that a task group makes of it."""
    if isinstance(error, InputRequired):
        return error
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            found = input_required(member)
            if found is not None:
                return found
    return None
