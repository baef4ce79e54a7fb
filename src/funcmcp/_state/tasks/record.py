"""Tasks: the record of a long tool call, and the transitions that it can make.

How it works: a record is immutable. Each transition is a pure function from a record to its successor, or to None if
the transition is not allowed any more. A store applies one transition atomically. The rules are therefore the same for
every store.

    working ---> input_required ---> working ---> completed | failed | cancelled

A worker *claims* a task that is due, for the length of a lease, and renews the lease while the tool runs. Each claim
has a random token. A worker passes the token of its claim with each write, so a worker that was suspended and has lost
its task can't change it any more, also if the store was restored from a backup and has given the task to another
worker. A task whose lease has lapsed is due again; `starts` counts the runs that ended without a word, and a task that
may not be started again fails.

A task counts with its bytes for its caller: `new_bytes` when it is created, `changed_bytes` after each transition. A
transition that makes a task grow needs room (`funcmcp._state.tasks.store`); all others are always possible.

A task has to end before `expires`. A task that does not has failed from that moment on, without any write: `current`
derives it. Its record is removed `keep` seconds later.

Servers of several versions may share a store. The fields of `TaskRecord` are the members of the stored JSON. A field
that a later version adds needs a default, which stands for the absent member; a member that this version does not know
is kept in `extra`. A change that older versions must not read gets another `VERSION`. For an older version such a task
exists, and can't be read (`funcmcp._state.tasks.store.UnreadableTask`).
"""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, field, fields, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import MAX_DEPTH, InvalidJSONError, RepeatedNameError, count_values, decode, encode
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import INTERNAL_ERROR
from funcmcp._protocol.tasks import CANCELLED, COMPLETED, FAILED, INPUT_REQUIRED, STATUSES, TERMINAL, WORKING
from funcmcp._state.tasks.queues import DEFAULT_QUEUE

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
"""The version of the records that this version of funcmcp reads and writes."""

_NESTING = MAX_DEPTH + 8
"""Levels of nesting in an encoded record: those of a message, and those of the record around it."""

_RECORD_BYTES = 2048
"""Bytes that each task counts: its record, its places in a store, and an outcome of `OUTCOME_BYTES`."""

OUTCOME_BYTES = 512
"""Bytes of an outcome for which there is always room."""

_VALUE_BYTES = 100
"""Bytes of memory of a value in an answer or a question, besides its text."""

_INTERRUPTED = "The server was stopped while the tool ran. Part of its work may be done."
"""Of a task that may not be started again after its worker stopped."""


@public("funcmcp.tasks")
class TaskKey(NamedTuple):
    """Names a task. The owner is part of the key, so that no look-up can find a task of another owner.

    Attributes:
        owner: The mark of the principal that created the task; None for callers without credentials.
        task_id: The id that the client has.
    """

    owner: str | None
    task_id: str


@public("funcmcp.tasks")
class Question(NamedTuple):
    """A question to the client.

    Attributes:
        key: The author's key, the same in every run of the tool.
        digest: The fingerprint of the request. An answer counts for exactly this request.
        request: The method and the params.
    """

    key: str
    digest: str
    request: Mapping[str, Any]


@public("funcmcp.tasks")
@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended.

    Attributes:
        text: The result, or the JSON-RPC error, as a JSON object.
        is_error: Whether the text is a JSON-RPC error.
        tool_failed: Whether the text is a result with ``isError: true``.
        message: The status message of the task; None: no message. That of the progress ends with the run.
    """

    text: bytes
    is_error: bool = False
    tool_failed: bool = False
    message: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the tool has failed, in either way."""
        return self.is_error or self.tool_failed


@public("funcmcp.tasks")
@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to create.

    Attributes:
        key: Unique among all tasks of the server.
        tool: The name of the tool.
        call: What a worker needs to run the tool, as JSON. Stores never read it.
        ttl: Seconds from the creation within which the task has to end.
        keep: Seconds for which the outcome is kept at least.
        poll: Seconds between two requests for the status that clients are asked for; None derives them from the age.
        delay: Seconds from the creation until a worker may run it.
        attempts: How often a worker may start the tool, if the process stops while it runs.
        answers: Answers that the client gave before there was a task; see `TaskRecord`.
        address: The mark of the address from which an anonymous caller created it; None if it is unknown.
        fingerprint: The digest of the tool and its arguments, if the client may repeat the call; else empty.
        queue: The queue whose workers run it.
        limited: Whether the tool has a limit of tasks that a process runs at once. A store may keep such tasks apart.
        arguments: The beginning of the arguments as JSON, by which the caller recognizes the task in a list.
    """

    key: TaskKey
    tool: str
    call: bytes
    ttl: float = 3600.0
    keep: float = 900.0
    poll: float | None = None
    delay: float = 0.0
    attempts: int = 1
    answers: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    address: str | None = None
    fingerprint: str = ""
    queue: str = DEFAULT_QUEUE
    limited: bool = False
    arguments: str = ""

    @property
    def payer(self) -> str | None:
        """The mark of the caller for whom the bytes count: a principal, or else an address; None if it is unknown."""
        return self.address if self.key.owner is None else self.key.owner


@public("funcmcp.tasks")
@dataclass(frozen=True, slots=True)
class TaskRecord:
    """The state of a task. Times are seconds since 1970, by the clock of the store.

    Attributes:
        key: See `NewTask`.
        tool: See `NewTask`.
        created: When it was created.
        expires: When it has to have ended.
        keep: See `NewTask`.
        poll: See `NewTask`.
        attempts: See `NewTask`.
        status: One of the specification's five.
        message: The last status message.
        updated: When the status or the message changed.
        attempt: The number of the last claim.
        token: The token of the last claim.
        starts: Runs since the last one that ended by itself.
        failures: Runs that ended with an exception after which the tool is to be run again.
        claimed: Whether a worker has it.
        due: When a worker may claim it; None if there is nothing to run.
        serial: The number of the last question. The key of a question on the wire contains it and is never used again.
        questions: Questions without an answer, by their keys on the wire.
        answers: Digest of the request and answer, by the author's key.
        results: The results of `Context.once`, by the author's key.
        outcome: How it ended; None while it runs.
        watched: Whether a client waits for changes, so that they have to be published.
        returned: Deliveries in a row to workers that could not run the tool.
        removed: When a store may remove it.
        fingerprint: See `NewTask`.
        address: See `NewTask`.
        queue: See `NewTask`.
        limited: See `NewTask`.
        arguments: See `NewTask`.
        extra: Members of the stored JSON that this version does not know.
    """

    key: TaskKey
    tool: str
    created: float
    expires: float
    keep: float
    poll: float | None
    attempts: int
    status: str = WORKING
    message: str | None = None
    updated: float = 0.0
    attempt: int = 0
    token: str = ""
    starts: int = 0
    failures: int = 0
    claimed: bool = False
    due: float | None = None
    serial: int = 0
    questions: Mapping[str, Question] = field(default_factory=dict)
    answers: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    watched: bool = False
    returned: int = 0
    removed: float = 0.0
    fingerprint: str = ""
    address: str | None = None
    queue: str = DEFAULT_QUEUE
    limited: bool = False
    arguments: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def payer(self) -> str | None:
        """See `NewTask`."""
        return self.address if self.key.owner is None else self.key.owner

    @property
    def over(self) -> bool:
        """Whether the status can't change any more."""
        return self.status in TERMINAL

    @property
    def failed(self) -> bool:
        """Whether it has ended with a failure, and was not cancelled."""
        return self.status == FAILED or (self.outcome is not None and self.outcome.tool_failed)

    @property
    def keeps_call(self) -> bool:
        """Whether its call is kept: until it ends, and if it has failed until it is removed, for operators."""
        return not self.over or self.failed


@public("funcmcp.tasks")
@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to run a task.

    Attributes:
        record: The record after the claim. If it is `over`, the claim failed it: there is nothing to run.
        call: See `NewTask`.
        now: The time of the claim, by the clock of the store.
    """

    record: TaskRecord
    call: bytes
    now: float

    @property
    def key(self) -> TaskKey:
        """The key of the task."""
        return self.record.key

    @property
    def attempt(self) -> int:
        """The number of this claim."""
        return self.record.attempt

    @property
    def token(self) -> str:
        """The token of this claim, which no other claim has."""
        return self.record.token


def new_record(task: NewTask, now: float) -> TaskRecord:
    """Return the record of a new task."""
    now = _milliseconds(now)
    expires = round(now + task.ttl, 3)
    return TaskRecord(
        key=task.key,
        tool=task.tool,
        created=now,
        expires=expires,
        keep=task.keep,
        poll=task.poll,
        attempts=task.attempts,
        answers=task.answers,
        updated=now,
        due=now + task.delay,
        removed=expires + task.keep,
        fingerprint=task.fingerprint,
        address=task.address,
        queue=task.queue,
        limited=task.limited,
        arguments=task.arguments,
    )


def current(record: TaskRecord, now: float) -> TaskRecord | None:
    """Return a record as it is now, or None if it is to be removed. A task that did not end in time has failed."""
    if now >= record.removed:
        return None
    if record.over or now < record.expires:
        return record
    seconds = seconds_text(round(record.expires - record.created, 3))
    outcome = failure(f"The task did not finish within {seconds} (its ttl).")
    if not record.attempt:
        outcome = failure(f"No worker started the task within {seconds} (its ttl).")
    return _ended(record, FAILED, outcome, record.expires)


@public("funcmcp.tasks")
def claimed(record: TaskRecord, now: float, lease: float) -> TaskRecord | None:
    """Give a task that is due to a worker; fail it if it may not be started again."""
    if record.over or record.due is None or record.due > now:
        return None
    if record.starts >= record.attempts:
        return _ended(record, FAILED, interrupted(), now)
    return replace(
        record,
        attempt=record.attempt + 1,
        token=new_token(),
        starts=record.starts + 1,
        claimed=True,
        due=now + lease,
    )


def first_claim(record: TaskRecord) -> TaskRecord:
    """Return a new record that is claimed by the worker of the process that creates it."""
    return replace(record, attempt=1, token=new_token(), starts=1, claimed=True)


def abandoned(record: TaskRecord, now: float, deliveries: int) -> TaskRecord | None:
    """Fail a task that is due, because none of several deliveries to a worker led to an outcome."""
    if record.over or record.due is None or record.due > now:
        return None
    outcome = failure(f"The task was delivered to a worker {deliveries} times, and no run of it ended.")
    return _ended(record, FAILED, outcome, now)


def renewed(record: TaskRecord, token: str, now: float, lease: float) -> TaskRecord | None:
    """Extend the lease of a claim."""
    return replace(record, due=now + lease) if _holds(record, token) else None


def reported(record: TaskRecord, token: str, now: float, message: str) -> TaskRecord | None:
    """Change the status message."""
    return replace(record, message=message, updated=now) if _holds(record, token) else None


def noted(record: TaskRecord, token: str, key: str, result: Any) -> TaskRecord | None:
    """Keep the result of a part of a run for later runs."""
    return replace(record, results={**record.results, key: result}) if _holds(record, token) else None


def asking(record: TaskRecord, token: str, now: float, questions: Mapping[str, Question]) -> TaskRecord | None:
    """End a run that needs answers of the client.

    Args:
        record: The task.
        token: Of the claim.
        now: The time.
        questions: At least one, by the author's keys.
    """
    if not _holds(record, token):
        return None
    serial = record.serial
    outstanding: dict[str, Question] = {}
    for question in questions.values():
        serial += 1
        outstanding[f"{question.key}.{serial}"] = question
    return replace(
        record,
        status=INPUT_REQUIRED,
        updated=now,
        starts=0,
        returned=0,
        claimed=False,
        due=None,
        serial=serial,
        questions=outstanding,
    )


def answered(record: TaskRecord, now: float, answers: Mapping[str, Mapping[str, Any]]) -> TaskRecord | None:
    """Take answers to outstanding questions, by their keys on the wire; the last answer makes the task due."""
    accepted = {key: answer for key, answer in answers.items() if key in record.questions}
    if record.over or not accepted:
        return None
    outstanding = dict(record.questions)
    known = dict(record.answers)
    for key, answer in accepted.items():
        question = outstanding.pop(key)
        known[question.key] = (question.digest, answer)
    if outstanding:
        return replace(record, updated=now, questions=outstanding, answers=known)
    return replace(record, status=WORKING, updated=now, due=now, questions={}, answers=known)


def finished(record: TaskRecord, token: str, now: float, outcome: Outcome) -> TaskRecord | None:
    """End a task with what its run returned."""
    if not _holds(record, token):
        return None
    return _ended(record, FAILED if outcome.is_error else COMPLETED, outcome, now)


def released(record: TaskRecord, token: str, now: float, delay: float, *, unknown: bool = False) -> TaskRecord | None:
    """Return a task to the queue, and count it if the worker can't run the tool; another one may."""
    if not _holds(record, token):
        return None
    returned = record.returned + unknown
    return replace(record, starts=record.starts - 1, returned=returned, claimed=False, due=_milliseconds(now + delay))


def retrying(record: TaskRecord, token: str, now: float, delay: float, message: str) -> TaskRecord | None:
    """End a run that failed, after which the tool runs again; its message says why it failed."""
    if not _holds(record, token):
        return None
    return replace(
        record,
        message=message,
        updated=now,
        starts=0,
        returned=0,
        failures=record.failures + 1,
        claimed=False,
        due=_milliseconds(now + delay),
    )


def cancelled(record: TaskRecord, now: float) -> TaskRecord | None:
    """Cancel a task that is not over."""
    if record.over:
        return None
    outcome = failure("The task was cancelled.")
    return _ended(record, CANCELLED, outcome, now)


def watched(record: TaskRecord) -> TaskRecord | None:
    """Note that changes have to be published."""
    return None if record.watched or record.over else replace(record, watched=True)


def _milliseconds(seconds: float) -> float:
    """Return a time without fractions of milliseconds, not later than it was: stores compare whole milliseconds."""
    return math.floor(seconds * 1000) / 1000


def new_token() -> str:
    """Return a token that no other claim has."""
    return token_hex(8)


def _holds(record: TaskRecord, token: str) -> bool:
    """Return whether a claim is still valid."""
    return record.claimed and record.token == token and not record.over


def interrupted() -> Outcome:
    """Return the outcome of a task whose worker stopped and that may not be started again."""
    return failure(_INTERRUPTED)


def failure(message: str) -> Outcome:
    """Return the outcome of a task that fails with an internal error."""
    text = encode({"code": INTERNAL_ERROR, "message": message})
    return Outcome(text, is_error=True, message=message)


def _ended(record: TaskRecord, status: str, outcome: Outcome, now: float) -> TaskRecord:
    return replace(
        record,
        status=status,
        message=outcome.message,
        updated=now,
        claimed=False,
        due=None,
        questions={},
        answers={},
        results={},
        outcome=outcome,
        removed=max(record.expires, now + record.keep),
    )


def new_bytes(record: TaskRecord, call: bytes) -> int:
    """Return the bytes that a new task counts."""
    return _record_bytes(record) + len(call)


@public("funcmcp.tasks")
def changed_bytes(size: int, before: TaskRecord, after: TaskRecord) -> int:
    """Return the bytes that a task counts after a transition.

    Args:
        size: The bytes that it counted before.
        before: The record before.
        after: The record after.
    """
    if not after.keeps_call:
        return _record_bytes(after)
    return size - _record_bytes(before) + _record_bytes(after)


def _record_bytes(record: TaskRecord) -> int:
    """Return the bytes of a task without its call."""
    size = _RECORD_BYTES
    if record.outcome is not None:
        size += max(0, len(record.outcome.text) - OUTCOME_BYTES)
    if record.questions or record.answers or record.results:
        text = encode([record.questions, record.answers, record.results])
        size += len(text) + _VALUE_BYTES * count_values(text)
    return size


@public("funcmcp.tasks")
def to_json(record: TaskRecord) -> bytes:
    """Return the record as JSON, without its key and the text of its outcome, which stores keep beside it."""
    outcome = record.outcome
    members = {name: getattr(record, name) for name in _MEMBERS}
    members["outcome"] = None if outcome is None else [outcome.is_error, outcome.tool_failed]
    return encode({**record.extra, **members, "v": VERSION})


@public("funcmcp.tasks")
def from_json(key: TaskKey, state: bytes, outcome: bytes | None) -> TaskRecord | None:
    """Return the record of `to_json`, or None if this version can't read it: the task is not absent then.

    Args:
        key: The key under which it was found.
        state: What `to_json` returned.
        outcome: The text of its outcome, if it has one.
    """
    try:
        value: Any = decode(state, _NESTING)
    except (InvalidJSONError, RepeatedNameError):
        return None
    if not isinstance(value, dict):
        return None
    version = value.pop("v", None)
    if type(version) is not int or not 1 <= version <= VERSION:
        return None
    members = {name: value.pop(name) for name in _MEMBERS if name in value}
    if not _has_types(members):
        return None
    members["questions"] = {name: _question(item) for name, item in members.get("questions", {}).items()}
    members["answers"] = {name: _answer(item) for name, item in members.get("answers", {}).items()}
    if None in members["questions"].values() or None in members["answers"].values():
        return None
    if (members.get("outcome") is None) != (outcome is None):
        return None
    members["outcome"] = _outcome(members.get("outcome"), outcome, members.get("message"))
    record = TaskRecord(key=key, extra=value, **members)
    if record.status not in STATUSES or (record.outcome is not None) != record.over:
        return None
    return record


def _has_types(members: Mapping[str, Any]) -> bool:
    """Return whether members of a record have their types, and none that is required is absent."""
    return members.keys() >= _REQUIRED and all(type(member) in _MEMBERS[name] for name, member in members.items())


_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "str": (str,),
    "str | None": (str, type(None)),
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "Mapping[str, Any]": (dict,),
    "Mapping[str, Question]": (dict,),
    "Mapping[str, tuple[str, Mapping[str, Any]]]": (dict,),
    "Outcome | None": (list, type(None)),
}
"""The types of members in the stored JSON, by the types of the fields."""

_OF_CLAIMS = {"expires", "attempts", "attempt", "token", "starts", "claimed", "due"}
"""The members that a claim reads or changes. They are the last ones of the stored JSON, in the order of the fields,
followed by the version: Redis, whose scripts can't read JSON, replaces them as text."""

_FIELDS = [declared for declared in fields(TaskRecord) if declared.name not in {"key", "extra"}]
_FIELDS.sort(key=lambda declared: declared.name in _OF_CLAIMS)
_MEMBERS = {declared.name: _TYPES[str(declared.type)] for declared in _FIELDS}
_REQUIRED = {
    declared.name for declared in _FIELDS if declared.default is MISSING and declared.default_factory is MISSING
}


def _outcome(flags: list[Any] | None, text: bytes | None, message: str | None) -> Outcome | None:
    """Return the outcome of a record; None if it has none, or if a part of it is missing."""
    match flags:
        case [bool(is_error), bool(tool_failed), *_] if text is not None:
            return Outcome(text, is_error, tool_failed, message)
    return None


def _question(value: object) -> Question | None:
    match value:
        case [str(key), str(digest), dict(request), *_] if type(request.get("method")) is str:
            return Question(key, digest, request)
    return None


def _answer(value: object) -> tuple[str, Mapping[str, Any]] | None:
    match value:
        case [str(digest), dict(answer), *_]:
            return digest, answer
    return None
