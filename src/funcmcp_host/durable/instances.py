"""An instance of an orchestration: what is stored of it, and the events of its history.

Source: the history events of the Durable Task Framework, as durable-functions 3.5 and azure-functions-durable 1.7 read
them.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

ENDED = frozenset({"Completed", "Failed", "Terminated"})
"""The states in which an instance does not change any more."""


class EventType(IntEnum):
    """The kinds of events in a history."""

    EXECUTION_STARTED = 0
    EXECUTION_COMPLETED = 1
    EXECUTION_FAILED = 2
    EXECUTION_TERMINATED = 3
    TASK_SCHEDULED = 4
    TASK_COMPLETED = 5
    TASK_FAILED = 6
    SUB_ORCHESTRATION_CREATED = 7
    SUB_ORCHESTRATION_COMPLETED = 8
    SUB_ORCHESTRATION_FAILED = 9
    TIMER_CREATED = 10
    TIMER_FIRED = 11
    ORCHESTRATOR_STARTED = 12
    ORCHESTRATOR_COMPLETED = 13
    EVENT_SENT = 14
    EVENT_RAISED = 15


_TERMINOLOGY = {
    EventType.SUB_ORCHESTRATION_CREATED: "SubOrchestrationInstanceCreated",
    EventType.SUB_ORCHESTRATION_COMPLETED: "SubOrchestrationInstanceCompleted",
    EventType.SUB_ORCHESTRATION_FAILED: "SubOrchestrationInstanceFailed",
}
"""The names of events for clients that are not those of `EventType`."""

_INTERNAL = ("EventId", "IsPlayed", "TaskScheduledId", "TimerId", "OrchestrationInstance", "Version", "Tags")
"""The members of events that clients do not get."""

_TURNS = frozenset({EventType.ORCHESTRATOR_STARTED, EventType.ORCHESTRATOR_COMPLETED})
_SCHEDULED = frozenset({EventType.TASK_SCHEDULED, EventType.SUB_ORCHESTRATION_CREATED})
_SUCCEEDED = frozenset({EventType.TASK_COMPLETED, EventType.SUB_ORCHESTRATION_COMPLETED})


def event(kind: EventType, event_id: int = -1, **members: Any) -> dict[str, Any]:
    """Return an event of a history."""
    return {"EventType": int(kind), "EventId": event_id, "IsPlayed": False, "Timestamp": now_text(), **members}


def now_text() -> str:
    """Return the time as histories have it."""
    return text_of_time(datetime.now(UTC))


def text_of_time(moment: datetime) -> str:
    """Return a time as histories have it: in UTC, with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True)
class Parent:
    """The orchestration that waits for an instance.

    Attributes:
        instance: The id of its instance.
        execution: The id of its execution: an instance that has begun again does not wait any more.
        task: The id of its task.
    """

    instance: str
    execution: str
    task: int


@dataclass(slots=True)
class Instance:
    """An instance of an orchestration.

    Attributes:
        id: Its id, unique in the app.
        name: The name of its orchestrator function.
        input: Its input, decoded from JSON.
        version: The version that its starter gave it.
        parent: The orchestration that waits for it.
        execution: Identifies this execution; another one begins with ``continue_as_new``.
        created: When it was created.
        updated: When it has changed.
        status: Its state, in the words of Durable Functions.
        output: Its result, or the text of its error.
        custom_status: What its function has set as its status.
        history: The events that its function has seen.
        inbox: The events that its function has not seen.
        open: The tasks that have not ended, by their ids.
        next_id: The id of the next task.
        scheduled: The signature and the id of each action that its function has asked for; the id is None for an action
            that is not a task.
    """

    id: str
    name: str
    input: Any = None
    version: str | None = None
    parent: Parent | None = None
    execution: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: str = field(default_factory=now_text)
    updated: str = field(default_factory=now_text)
    status: str = "Pending"
    output: Any = None
    custom_status: Any = None
    history: list[dict[str, Any]] = field(default_factory=list)
    inbox: list[dict[str, Any]] = field(default_factory=list)
    open: dict[str, dict[str, Any]] = field(default_factory=dict)
    next_id: int = 0
    scheduled: list[tuple[str, int | None]] = field(default_factory=list)

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> Instance:
        """Return the instance of a stored record; members that this version does not know are ignored."""
        values = {name: record[name] for name in cls.__slots__ if name in record}
        if values.get("parent") is not None:
            values["parent"] = Parent(**values["parent"])
        values["scheduled"] = [(signature, task) for signature, task in values.get("scheduled", ())]
        return cls(**values)

    def record(self) -> dict[str, Any]:
        """Return what is stored, which shares its values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "parent": None if self.parent is None else asdict(self.parent)}

    @property
    def has_ended(self) -> bool:
        """Whether it does not change any more."""
        return self.status in ENDED

    @property
    def is_due(self) -> bool:
        """Whether its function has to run: it has not begun, or there are events that it has not seen."""
        return self.status != "Suspended" and (not self.history or bool(self.inbox))

    def begin_again(self, value: Any) -> None:
        """Begin another execution with another input. Events that have not been seen are kept."""
        self.execution = uuid.uuid4().hex
        self.input = value
        self.history = []
        self.open = {}
        self.next_id = 0
        self.scheduled = []
        self.inbox = [event for event in self.inbox if event["EventType"] == EventType.EVENT_RAISED]


def public_history(instance: Instance, *, has_inputs: bool, has_outputs: bool) -> list[dict[str, Any]]:
    """Return the history of an instance as clients get it.

    Events have the names of their kinds, and the end of a task replaces the event that scheduled it. The turns of the
    orchestrator are left out.

    Source: GetDurableOrchestrationStatusAsync of the Durable Functions extension 3.0 (DurableClient.cs).

    Args:
        instance: The instance.
        has_inputs: Whether events have inputs.
        has_outputs: Whether the ends of tasks and of the instance have their results, decoded from JSON.
    """
    scheduled = {known["EventId"]: known for known in instance.history if known["EventType"] in _SCHEDULED}
    ended = {known.get("TaskScheduledId") for known in instance.history}
    events = []
    for known in instance.history:
        kind = EventType(known["EventType"])
        if kind in _TURNS or (kind in _SCHEDULED and known["EventId"] in ended):
            continue
        events.append(_shown_event(known, kind, scheduled.get(known.get("TaskScheduledId"))))
    if instance.has_ended:
        ending = {"EventType": "ExecutionCompleted", "OrchestrationStatus": instance.status}
        events.append({**ending, "Result": instance.output, "Timestamp": instance.updated})
    hidden = {*(() if has_inputs else ("Input",)), *(() if has_outputs else ("Result",))}
    return [{name: value for name, value in shown.items() if name not in hidden} for shown in events]


def _shown_event(known: dict[str, Any], kind: EventType, beginning: dict[str, Any] | None) -> dict[str, Any]:
    """Return an event as clients get it, with what the event that scheduled it has."""
    shown = {name: value for name, value in known.items() if name not in _INTERNAL}
    shown["EventType"] = _TERMINOLOGY.get(kind) or kind.name.title().replace("_", "")
    if kind == EventType.EXECUTION_STARTED:
        shown["FunctionName"] = shown.pop("Name")
    elif beginning is not None:
        shown |= {"ScheduledTime": beginning["Timestamp"], "FunctionName": beginning["Name"]}
        shown["Input"] = beginning["Input"]
    if kind in _SUCCEEDED:
        shown["Result"] = json.loads(known["Result"])
    return shown
