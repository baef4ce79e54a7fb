"""A state machine that drives a store of tasks and compares it with a simple model after each step."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from funcmcp._state.tasks.record import NewTask, Outcome, Question, TaskKey
from funcmcp._state.tasks.task_filter import TaskFilter

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from funcmcp._state.tasks.record import Claim, TaskRecord
    from funcmcp._state.tasks.store import TaskStore

T = TypeVar("T")

TERMINAL = {"completed", "failed", "cancelled"}
RESULT = Outcome(b'{"content":[]}')
ERROR = Outcome(b'{"code":1,"message":"No"}', is_error=True)


@dataclass
class Model:
    """What a task should be.

    Attributes:
        queue: Its queue.
        status: Its status.
        message: Its status message.
        queued: Whether a worker should get it.
        holder: The attempt that has it; 0 for none.
        attempt: The last attempt.
        questions: Wire keys that wait for an answer.
        used: All wire keys that there ever were.
        answers: Author's keys that have an answer.
    """

    queue: str
    status: str = "working"
    message: str | None = None
    queued: bool = True
    holder: int = 0
    attempt: int = 0
    questions: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    answers: set[str] = field(default_factory=set)

    def end(self, status: str) -> None:
        self.status, self.queued, self.holder = status, False, 0
        self.questions, self.answers = set(), set()


class TaskStoreMachine(RuleBasedStateMachine):
    """A subclass makes the stores: two that have the same tasks, if they are shared."""

    keys = Bundle("keys")
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stores = self.run(self.make())
        self.models: dict[TaskKey, Model] = {}

    async def make(self) -> list[TaskStore]:
        raise NotImplementedError

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        for store in self.stores:
            self.run(store.aclose())
        self.loop.close()

    def valid(self, claim: Claim) -> Model | None:
        model = self.models[claim.key]
        return model if model.holder == claim.attempt else None

    which = st.integers(0, 1)

    def store(self, index: int) -> TaskStore:
        return self.stores[index % len(self.stores)]

    queues = st.sampled_from(["default", "slow"])

    @rule(target=keys, index=which, owner=st.sampled_from([None, "a" * 32, "b" * 32]), queue=queues)
    def create(self, index: int, owner: str | None, queue: str) -> TaskKey:
        key = TaskKey(owner, secrets.token_urlsafe(33))
        self.run(self.store(index).create(NewTask(key, "add", key.task_id.encode(), attempts=3, queue=queue)))
        self.models[key] = Model(queue)
        return key

    @rule(target=claims, index=which, count=st.integers(1, 3), served=st.none() | st.frozensets(queues))
    def claim(self, index: int, count: int, served: frozenset[str] | None) -> Any:
        claims = self.run(self.store(index).claim(count, TaskFilter(served)))
        due = sum(model.queued and (served is None or model.queue in served) for model in self.models.values())
        assert bool(claims) == bool(due)
        assert len(claims) <= count
        for claim in claims:
            model = self.models[claim.key]
            assert model.queued
            assert claim.record.queue == model.queue
            assert served is None or model.queue in served
            assert claim.call == claim.key.task_id.encode()
            assert set(claim.record.answers) == model.answers
            model.attempt += 1
            assert claim.attempt == model.attempt
            model.queued, model.holder = False, claim.attempt
        return multiple(*claims)

    @rule(index=which, claim=claims)
    def renew(self, index: int, claim: Claim) -> None:
        assert self.run(self.store(index).renew(claim)) == (self.valid(claim) is not None)

    @rule(index=which, claim=claims, message=st.text(st.characters(exclude_categories=["Cs"])))
    def report(self, index: int, claim: Claim, message: str) -> None:
        model = self.valid(claim)
        assert (self.run(self.store(index).report(claim, message)) is not None) == (model is not None)
        if model is not None:
            model.message = message

    @rule(index=which, claim=claims, names=st.sets(st.sampled_from("abc"), min_size=1))
    def ask(self, index: int, claim: Claim, names: set[str]) -> None:
        questions = {name: Question(name, "digest", {"method": "roots/list"}) for name in sorted(names)}
        model = self.valid(claim)
        assert (self.run(self.store(index).ask(claim, questions)) is not None) == (model is not None)
        if model is not None:
            record = self.run(self.store(index).read(claim.key))
            assert record is not None
            outstanding = set(record.questions)
            assert {question.key for question in record.questions.values()} == names
            assert outstanding & model.used == set()
            model.status, model.holder, model.questions = "input_required", 0, outstanding
            model.used |= outstanding

    @rule(index=which, key=keys, data=st.data())
    def answer(self, index: int, key: TaskKey, data: st.DataObject) -> None:
        model = self.models[key]
        chosen = data.draw(st.sets(st.sampled_from([*sorted(model.used), "other"])))
        accepted = chosen & model.questions
        assert (self.run(self.store(index).answer(key, {name: {"roots": []} for name in chosen})) is not None) == bool(
            accepted
        )
        if accepted:
            model.questions -= accepted
            model.answers |= {name.partition(".")[0] for name in accepted}
            if not model.questions:
                model.status, model.queued = "working", True

    @rule(index=which, key=keys)
    def cancel(self, index: int, key: TaskKey) -> None:
        model = self.models[key]
        assert (self.run(self.store(index).cancel(key)) is not None) == (model.status not in TERMINAL)
        if model.status not in TERMINAL:
            model.end("cancelled")

    @rule(index=which, claim=claims, outcome=st.sampled_from([RESULT, ERROR]))
    def finish(self, index: int, claim: Claim, outcome: Outcome) -> None:
        model = self.valid(claim)
        assert (self.run(self.store(index).finish(claim, outcome)) is not None) == (model is not None)
        if model is not None:
            model.end("failed" if outcome.is_error else "completed")

    @rule(index=which, claim=claims)
    def release(self, index: int, claim: Claim) -> None:
        model = self.valid(claim)
        assert (self.run(self.store(index).release(claim)) is not None) == (model is not None)
        if model is not None:
            model.queued, model.holder = True, 0

    @rule(index=which, key=keys)
    def watch(self, index: int, key: TaskKey) -> None:
        self.run(self.store(index).watch(key))

    @rule(index=which, key=keys)
    def read_as_another_owner(self, index: int, key: TaskKey) -> None:
        assert self.run(self.store(index).read(TaskKey("c" * 32, key.task_id))) is None

    @invariant()
    def tasks_are_what_they_should_be(self) -> None:
        async def read_all() -> list[TaskRecord | None]:
            return await asyncio.gather(*(self.store(index).read(key) for index, key in enumerate(self.models)))

        for model, record in zip(self.models.values(), self.run(read_all()), strict=True):
            assert record is not None
            assert (record.status, set(record.questions)) == (model.status, model.questions)
            assert (record.outcome is not None) == (model.status in TERMINAL)
            if model.status not in TERMINAL:
                assert record.message == model.message
