"""Rounds of questions under any sequence of answers: right, wrong, missing, tampered with, replayed, by whomever.

The machine keeps every state that it was given, with what was answered up to it. A state goes on from exactly there,
as often as it comes, for its own principal and its own request alone; nothing else does, and no answer changes a later
one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from funcmcp import Context, MCPServer
from funcmcp._server.calls import rounds
from funcmcp._state.seal import KeyRing
from funcmcp._state.sessions.signed import SignedSessions
from tests.patience import PATIENCE
from tests.wire.callers import ALICE, BOB, BOBS_NEXT, KEYS, Caller
from tests.wire.peer import PER_REQUEST

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from hypothesis.stateful import MultipleResults

    from tests.wire.peer import Answer

pytestmark = [
    pytest.mark.timeout(600),  # a failure takes its time to be told in few steps
    pytest.mark.slow("Random sequences of requests go on for long."),
]

CREDENTIALS = st.sampled_from([ALICE, BOB, BOBS_NEXT])
OWNERS = {ALICE: "alice", BOB: "bob", BOBS_NEXT: "bob"}
GREETINGS = st.sampled_from(["Hello", "Hi"])
NAMES = st.text(max_size=5)
INSTANCES = st.integers(0, 2)
WRONG = st.sampled_from(
    [None, 7, {}, {"action": "accept"}, {"action": "accept", "content": {"name": 1}}, {"action": "no"}]
)
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTIONS = ("first", "second", "third")


@dataclass(frozen=True)
class State:
    """What the machine knows of a state that came with a question.

    Attributes:
        text: the state itself.
        answers: what was answered up to it, in the order of the questions.
        wrong: how often the question that is open now has been answered wrongly.
    """

    text: str
    owner: str
    greeting: str
    answers: tuple[str, ...]
    wrong: int
    key: bytes
    end: int


@dataclass
class Instance:
    """A server and the keys that it has."""

    keys: list[bytes]
    app: MCPServer = field(init=False)

    def __post_init__(self) -> None:
        self.app = MCPServer("Rounds", auth=KEYS, sessions=SignedSessions(KeyRing(self.keys)))
        self.app.tool(introduce)


async def introduce(greeting: str, context: Context) -> str:
    """Ask three questions, one after the other."""
    answers = [await context.elicit(f"The {key} name?", FORM, key=key) for key in QUESTIONS]
    names = [answer.content["name"] if answer.action == "accept" else answer.action for answer in answers]
    assert context.principal is not None
    return "|".join([context.principal.subject, greeting, *names])


class Rounds(RuleBasedStateMachine):
    """Three instances that share their keys."""

    states = Bundle("states")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = 5000
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(rounds, "time", lambda: float(self.now))
        self.keys = [b"0" * 32]
        self.instances: list[Instance] = []

    @initialize()
    def start(self) -> None:
        self.instances = [Instance(list(self.keys)) for _ in range(3)]

    def call(self, instance: int, key: str, greeting: str, **members: object) -> Answer:
        caller = Caller(self.instances[instance].app, PER_REQUEST, {"elicitation": {}}, key=key)
        work = caller.request("tools/call", {"name": "introduce", "arguments": {"greeting": greeting}, **members})
        return self.run(work)

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self.loop.run_until_complete(asyncio.wait_for(work, PATIENCE))

    def go_on(self, state: State, instance: int, key: str, responses: object = None) -> Answer:
        members = {} if responses is None else {"inputResponses": responses}
        return self.call(instance, key, state.greeting, requestState=state.text, **members)

    def is_good(self, state: State, instance: int, key: str) -> bool:
        """Tell whether an instance has to take a state from a caller."""
        is_valid = state.key in self.instances[instance].keys
        return is_valid and state.owner == OWNERS[key] and state.end > self.now

    def asked(self, answer: Answer, state: State, instance: int) -> State:
        """Return the state that an answer came with; fail unless it asks what is open now."""
        result = answer.result
        assert answer.status == 200
        assert list(result["inputRequests"]) == [QUESTIONS[len(state.answers)]]
        return State(
            result["requestState"],
            state.owner,
            state.greeting,
            state.answers,
            state.wrong,
            self.instances[instance].keys[0],
            self.now + rounds.LIFETIME,
        )

    @rule(target=states, instance=INSTANCES, key=CREDENTIALS, greeting=GREETINGS)
    def begin(self, instance: int, key: str, greeting: str) -> State:
        return self.asked(self.call(instance, key, greeting), State("", OWNERS[key], greeting, (), 0, b"", 0), instance)

    @rule(
        target=states,
        state=states,
        instance=INSTANCES,
        key=CREDENTIALS,
        name=NAMES,
        more=st.booleans(),
        declined=st.booleans(),
    )
    def answer(  # one argument for each thing that varies
        self, state: State, instance: int, key: str, name: str, more: bool, declined: bool
    ) -> State | MultipleResults[State]:
        """A right answer leads to the next question or to the end; answers to other questions beside it do nothing."""
        content = {"action": "accept", "content": {"name": name}}
        responses: dict[str, Any] = {QUESTIONS[len(state.answers)]: {"action": "decline"} if declined else content}
        if more:
            eve = {"action": "accept", "content": {"name": "Eve"}}
            responses = {**dict.fromkeys((*QUESTIONS, "unheard of"), eve), **responses}
        answer = self.go_on(state, instance, key, responses)
        if not self.is_good(state, instance, key):
            assert answer.outcome == (400, -32602)
            return multiple()
        answers = (*state.answers, "decline" if declined else name)
        if len(answers) == len(QUESTIONS):
            assert answer.text == "|".join([state.owner, state.greeting, *answers])
            return multiple()
        return self.asked(answer, State("", state.owner, state.greeting, answers, 0, b"", 0), instance)

    @rule(target=states, state=states, instance=INSTANCES, key=CREDENTIALS, wrong=WRONG)
    def answer_wrongly(self, state: State, instance: int, key: str, wrong: object) -> State | MultipleResults[State]:
        """A wrong answer is asked for again, until it was wrong too often."""
        answer = self.go_on(state, instance, key, {QUESTIONS[len(state.answers)]: wrong})
        if not self.is_good(state, instance, key):
            assert answer.outcome == (400, -32602)
            return multiple()
        count = state.wrong + 1
        if count >= rounds.MAX_INVALID_ANSWERS:
            assert answer.result["isError"] is True
            return multiple()
        return self.asked(answer, State("", state.owner, state.greeting, state.answers, count, b"", 0), instance)

    @rule(state=states, instance=INSTANCES, wrong=WRONG)
    def answer_wrongly_for_good(self, state: State, instance: int, wrong: object) -> None:
        """Nobody is asked for ever."""
        key = ALICE if state.owner == "alice" else BOB
        while self.is_good(state, instance, key):
            answer = self.go_on(state, instance, key, {QUESTIONS[len(state.answers)]: wrong})
            if state.wrong + 1 == rounds.MAX_INVALID_ANSWERS:
                assert answer.result["isError"] is True
                return
            state = self.asked(answer, replace(state, wrong=state.wrong + 1), instance)

    @rule(
        target=states,
        state=states,
        instance=INSTANCES,
        key=CREDENTIALS,
        responses=st.sampled_from([None, {}, {"unheard of": {"action": "decline"}}]),
    )
    def answer_nothing(
        self, state: State, instance: int, key: str, responses: object
    ) -> State | MultipleResults[State]:
        answer = self.go_on(state, instance, key, responses)
        if not self.is_good(state, instance, key):
            assert answer.outcome == (400, -32602)
            return multiple()
        return self.asked(answer, state, instance)

    @rule(state=states, instance=INSTANCES, key=CREDENTIALS, name=NAMES)
    def use_for_another_request(self, state: State, instance: int, key: str, name: str) -> None:
        responses = {question: {"action": "accept", "content": {"name": name}} for question in QUESTIONS}
        answer = self.call(instance, key, state.greeting + "!", requestState=state.text, inputResponses=responses)
        assert answer.outcome == (400, -32602)

    @rule(state=states, instance=INSTANCES, place=st.integers(0, 2000), sent=st.sampled_from("aZ0_.~ \n\u00e9"))
    def tamper(self, state: State, instance: int, place: int, sent: str) -> None:
        place %= len(state.text) + 1
        forged = state.text[:place] + sent + state.text[place + 1 :]
        if forged != state.text:
            key = ALICE if state.owner == "alice" else BOB
            answer = self.call(instance, key, state.greeting, requestState=forged)
            assert answer.outcome == (400, -32602)

    @rule(instance=INSTANCES, keys=st.sampled_from(["the same", "a new one in front", "without the oldest"]))
    def restart(self, instance: int, keys: str) -> None:
        if keys == "a new one in front":
            self.keys.insert(0, b"%032d" % (int(self.keys[0]) + 1))
        elif keys == "without the oldest" and len(self.keys) > 1:
            self.keys.pop()
        self.instances[instance] = Instance(list(self.keys))

    @rule(seconds=st.sampled_from([1, rounds.LIFETIME // 2, rounds.LIFETIME - 1, rounds.LIFETIME]))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @invariant()
    def every_instance_answers_a_good_request(self) -> None:
        for instance in range(len(self.instances)):
            answer = self.call(instance, ALICE, "Good day")
            assert list(answer.result["inputRequests"]) == [QUESTIONS[0]]

    def teardown(self) -> None:
        self.patch.undo()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


Rounds.TestCase.settings = settings(
    deadline=None, max_examples=40, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)

TestRounds = Rounds.TestCase
