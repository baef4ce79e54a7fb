"""Rounds of questions in the per-request era (2026-07-28, "basic/patterns/mrtr").

How it works: a run that needs an answer which the request does not contain ends with `input_required`. The client sends
the same request again with the answers, and the feature runs again from its start. Answers of earlier rounds come back
in the sealed `requestState`, so no instance keeps anything between rounds. It is a record (`funcmcp._state.records`):
another version of the server opens it, and keeps the members that it does not know.
"""

from __future__ import annotations

import hashlib
import json
from time import time
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.answers import read_answer
from funcmcp._protocol.errors import InvalidParams, ToolError
from funcmcp._server.exception_groups import members_of
from funcmcp._state.records import VERSION, to_record, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.jsonrpc import Request
    from funcmcp._server.calls.channel import Channel
    from funcmcp._state.records import Extra
    from funcmcp._state.seal import KeyRing

LIFETIME = 3600
"""Seconds for which a `requestState` is valid: a person needs time to answer."""

MAX_INVALID_ANSWERS = 3
"""Invalid answers after which a question is not asked again."""

_PURPOSE = "request state"


class RunEnded(BaseException):
    """Ends a run of a feature that goes on later, from its start.

    It is not an Exception, so that an author's ``except Exception`` does not swallow it.
    """


class InputRequired(RunEnded):
    """Ends a run whose questions have no answers yet."""

    def __init__(self, questions: Mapping[str, Mapping[str, Any]], state: str) -> None:
        super().__init__("input required")
        self.questions = questions
        self.state = state

    def result(self) -> dict[str, Any]:
        """Return the InputRequiredResult."""
        return {"inputRequests": self.questions, "requestState": self.state}


class Rounds:
    """A channel that answers questions with the answers in the request, and ends the run if one is missing.

    Args:
        channel: Takes notifications.
        request: The request, with its `inputResponses` and `requestState`.
        keys: Seal and open the state.
        owner: The owner of the state; the state is invalid for every other caller.

    Raises:
        InvalidParams: `inputResponses` is not an object, or this server did not make the state for this request of this
            owner.
    """

    __slots__ = ("_answered", "_channel", "_digest", "_extra", "_invalid", "_keys", "_pending", "_responses")

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
        self._invalid: dict[str, int] = {}
        self._extra: Extra = {}
        if "requestState" in params:
            self._open(params["requestState"])

    @property
    def answered(self) -> dict[str, Any]:
        """Digest of the request and answer of each question that the run has asked, by key."""
        return self._answered

    @property
    def pushes(self) -> bool:
        """Whether notifications reach the client before the answer."""
        return self._channel.pushes

    def close_stream(self) -> None:
        """End the connection, if the client can resume the stream."""
        self._channel.close_stream()

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Pass a notification on."""
        await self._channel.notify(method, params)

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the answers if the request has all of them.

        Raises:
            InputRequired: An answer is missing or invalid.
            ToolError: The answer to one question was invalid for the third time.
        """
        answers: dict[str, dict[str, Any]] = {}
        missing: dict[str, str] = {}
        for key, question in questions.items():
            question_digest = digest(question)
            answer = self._find(key, question_digest, question)
            if answer is None:
                missing[key] = question_digest
                self._count_invalid(key, question_digest)
            else:
                answers[key] = answer
                self._answered[key] = [question_digest, answer]
        if missing:
            state = {"digest": self._digest, "expires": int(time()) + LIFETIME, "pending": missing}
            state.update(answered=self._answered, invalid=self._invalid)
            sealed = self._keys.seal(_PURPOSE, to_record(state, self._extra))
            raise InputRequired({key: questions[key] for key in missing}, sealed)
        return answers

    def _count_invalid(self, key: str, question_digest: str) -> None:
        """Count an invalid answer; raise ToolError if the question was asked too often."""
        if key not in self._responses or (self._pending is not None and self._pending.get(key) != question_digest):
            return  # the question is not answered yet, or the answer is to another question
        self._invalid[key] = self._invalid.get(key, 0) + 1
        if self._invalid[key] == MAX_INVALID_ANSWERS:
            raise ToolError(f"The client gave {MAX_INVALID_ANSWERS} invalid answers to the question {key!r}.")

    def _find(self, key: str, question_digest: str, question: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the answer to this very question; one to another question with the same key does not count."""
        earlier = self._answered.get(key)
        if earlier is not None and earlier[0] == question_digest:
            answer: dict[str, Any] = earlier[1]
            return answer
        if self._pending is not None and self._pending.get(key) != question_digest:
            return None
        return read_answer(question, self._responses.get(key))

    def _open(self, token: object) -> None:
        """Restore the state that the round before has sealed; raise InvalidParams if the token is not valid."""
        payload = self._keys.open(_PURPOSE, token) if isinstance(token, str) else None
        state = value_of(payload)
        if isinstance(state, dict):
            state.setdefault("v", VERSION)  # version 0.1 wrote none
        match state:
            case {
                "v": 1,
                "digest": self._digest,
                "expires": int(expires),
                "answered": dict(answered),
                "pending": dict(pending),
                "invalid": dict(invalid),
                **extra,
            } if expires > time() and _are_valid(answered, invalid):
                self._answered = answered
                self._pending = pending
                self._invalid = invalid
                self._extra = extra
            case _:
                raise InvalidParams("Invalid or expired requestState; send the request again without it.")


def _are_valid(answered: dict[str, Any], invalid: dict[str, Any]) -> bool:
    """Return whether answers have the digests of their questions, and the invalid ones are counted."""
    for value in answered.values():
        match value:
            case [str(), dict()]:
                pass
            case _:
                return False
    return all(isinstance(count, int) for count in invalid.values())


def digest(value: object) -> str:
    """Return a short fingerprint of a JSON value."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def run_end(error: BaseException) -> RunEnded | None:
    """Return the RunEnded that a run raised, alone or in the exception group of a task group; None if there is none."""
    return next((member for member in members_of(error) if isinstance(member, RunEnded)), None)
