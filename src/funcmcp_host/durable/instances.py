"""An instance of an orchestration: what is stored of it, and the events of its history.

Source: the history events of the Durable Task Framework, as durable-functions 3.5 and azure-functions-durable 1.7 read
them.
"""

from __future__ import annotations

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
