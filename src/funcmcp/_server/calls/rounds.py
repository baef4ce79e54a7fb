"""Rounds of questions in the per-request era (2026-07-28, "basic/patterns/mrtr").

How it works: a run that needs an answer which the request does not contain ends with `input_required`. The client sends
the same request again with the answers, and the feature runs again from its start. Answers of earlier rounds come back
in the sealed `requestState`, so no instance keeps anything between rounds. It is a record (`funcmcp._state.records`):
another version of the server opens it, and keeps the members that it does not know.

The question whose key is `CONFIRMATION` asks for a person's confirmation of one call. Its answer counts only together
with the state in which this server has asked it, and a state with an answer to it serves one call: `UsedStates`
remembers it.

A feature can keep values of its own in the state (`carry`), such as what another server needs in the next round. They
are bound to the request, the owner and the expiry as the answers are.
"""

from __future__ import annotations

import hashlib
import json
import os
from time import time
from typing import TYPE_CHECKING, Any, NoReturn

from funcmcp._protocol.answers import read_answer
from funcmcp._protocol.errors import INVALID_PARAMS, InvalidParams, MCPError, ToolError
from funcmcp._server.exception_groups import members_of
from funcmcp._state.records import VERSION, to_record, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.jsonrpc import Request
    from funcmcp._server.calls.channel import Channel
    from funcmcp._state.bus import Bus, Message
    from funcmcp._state.records import Extra
    from funcmcp._state.seal import KeyRing

LIFETIME = 3600
"""Seconds for which a `requestState` is valid: a person needs time to answer."""

MAX_INVALID_ANSWERS = 3
"""Invalid answers after which a question is not asked again."""

CONFIRMATION = "funcmcp/confirmation"
"""The key of the question whether a call may run."""

_PURPOSE = "request state"
_TOPIC = "used states"
_MAX_USED_STATES = 50_000


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


class NoRoundsError(MCPError):
    """A feature ends its run with questions of its own, which no client of the handshake era takes.

    Args:
        message: The text.
    """

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_PARAMS, message)


class UsedStates:
    """The states whose confirmation has served a call.

    How it works: a state is remembered until it expires, here and, over the bus, at the other instances that are
    connected. If there are too many, the oldest is forgotten, and with it all states that expire before it count as
    used: their questions are asked again. So the memory is bounded, and no confirmation serves two calls.

    Args:
        bus: Connects the instances of the server.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._expiries: dict[str, int] = {}
        self._earliest = 0
        bus.subscribe(_TOPIC, self._hear)

    def use(self, nonce: str, expires: int) -> bool:
        """Remember a state as used; return False if it was used before."""
        if nonce in self._expiries or expires <= self._earliest:
            return False
        self._add(nonce, expires)
        self._bus.publish(_TOPIC, {"nonce": nonce, "expires": expires})
        return True

    def _hear(self, message: Message) -> None:
        self._add(message["nonce"], message["expires"])

    def _add(self, nonce: str, expires: int) -> None:
        self._expiries[nonce] = expires
        now = time()
        while self._expiries:
            oldest = next(iter(self._expiries))
            if len(self._expiries) > _MAX_USED_STATES:
                self._earliest = max(self._earliest, self._expiries[oldest])
            elif self._expiries[oldest] > now:
                break
            del self._expiries[oldest]


class Rounds:
    """A channel that answers questions with the answers in the request, and ends the run if one is missing.

    Args:
        channel: Takes notifications.
        request: The request, with its `inputResponses` and `requestState`.
        keys: Seal and open the state.
        used: The states whose confirmation has served a call.
        owner: The owner of the state; the state is invalid for every other caller.

    Attributes:
        request: The request.
        carried: Values of the feature by a key of its own: those of the round before, then those for the next round.

    Raises:
        InvalidParams: `inputResponses` is not an object, or this server did not make the state for this request of this
            owner.
    """

    __slots__ = (
        "_answered",
        "_channel",
        "_digest",
        "_expires",
        "_extra",
        "_invalid",
        "_is_used",
        "_keys",
        "_nonce",
        "_pending",
        "_responses",
        "_used",
        "carried",
        "request",
    )

    def __init__(
        self, channel: Channel, request: Request, keys: KeyRing, used: UsedStates, owner: str | None = None
    ) -> None:
        self.request: Request = request
        self._channel = channel
        self._keys = keys
        self._used = used
        self._is_used = False
        self._nonce = ""
        self._expires = 0
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
        self.carried: dict[str, Any] = {}
        if "requestState" in params:
            self._open(params["requestState"])

    @property
    def answered(self) -> dict[str, Any]:
        """Digest of the request and answer of each question that the run has asked, by key."""
        return self._answered

    @property
    def responses(self) -> dict[str, Any]:
        """The answers in the request, by key, which are not checked yet."""
        return self._responses

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
            ToolError: The answer to one question was invalid for the third time, or a confirmation was used before.
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
            raise InputRequired({key: questions[key] for key in missing}, self._sealed_state(missing))
        if CONFIRMATION in questions:
            self._use_state()
        return answers

    def end(self, questions: Mapping[str, Mapping[str, Any]]) -> NoReturn:
        """End the run with questions whose answers the feature itself reads from `responses`.

        Raises:
            InputRequired: Always.
        """
        pending = {key: digest(question) for key, question in questions.items()}
        raise InputRequired(questions, self._sealed_state(pending))

    def _sealed_state(self, pending: Mapping[str, str]) -> str:
        """Return the state for the next round, in which questions with these digests are open."""
        state = {"digest": self._digest, "expires": int(time()) + LIFETIME, "pending": pending}
        state.update(answered=self._answered, invalid=self._invalid, nonce=os.urandom(12).hex())
        if self.carried:
            state["carried"] = self.carried
        return self._keys.seal(_PURPOSE, to_record(state, self._extra))

    def _use_state(self) -> None:
        """Raise ToolError if the confirmation has served another call. A middleware may run this one again."""
        if not self._is_used and not self._used.use(self._nonce, self._expires):
            raise ToolError("This confirmation has been used. Call the tool again without requestState.")
        self._is_used = True

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
        if self._pending is None and key == CONFIRMATION:
            return None
        if self._pending is not None and self._pending.get(key) != question_digest:
            return None
        return read_answer(question, self._responses.get(key))

    def _open(self, token: object) -> None:
        """Restore the state that the round before has sealed; raise InvalidParams if the token is not valid."""
        payload = self._keys.open(_PURPOSE, token) if isinstance(token, str) else None
        state = value_of(payload)
        if isinstance(state, dict):
            state.setdefault("v", VERSION)  # version 0.1 wrote none
            state.setdefault("nonce", "")  # as above
            state.setdefault("carried", {})
        match state:
            case {
                "v": 1,
                "digest": self._digest,
                "expires": int(expires),
                "answered": dict(answered),
                "pending": dict(pending),
                "invalid": dict(invalid),
                "nonce": str(nonce),
                "carried": dict(carried),
                **extra,
            } if expires > time() and _are_valid(answered, invalid):
                self._answered = answered
                self._pending = pending
                self._invalid = invalid
                self._nonce, self._expires = nonce, expires
                self._extra = extra
                self.carried = carried
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


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
"""Made once: ``json.dumps`` with options makes an encoder for each call."""


def digest(value: object) -> str:
    """Return a short fingerprint of a JSON value."""
    return hashlib.sha256(_CANONICAL.encode(value).encode()).hexdigest()[:32]


def run_end(error: BaseException) -> RunEnded | None:
    """Return the RunEnded that a run raised, alone or in the exception group of a task group; None if there is none."""
    return next((member for member in members_of(error) if isinstance(member, RunEnded)), None)
