"""One run of an orchestrator function: the history that it gets, and what follows from its answer.

How it works. An orchestrator runs from its beginning each time. It gets the history with the events that have come
since, and answers with all actions that it has asked for; those that were not known are new. The libraries number their
tasks in the order in which they are scheduled, and find them by these numbers in the history, so the numbers here must
be the same. A task with retries takes two more at each failure: one for the timer, when the failure is in the history,
and one for the next attempt, when the timer has fired. Such an event must be the first of its turn, because an event
before it could schedule tasks.

Nothing of the instance changes before `Turn.apply`, so that a turn whose worker ends can be run again.

Source: TaskOrchestrationExecutor of azure-functions-durable 1.7 and durable-functions 3.5, replay schema V2.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from funcmcp_host.durable.answers import ActionType, AnswerError, signature_of
from funcmcp_host.durable.instances import EventType, Instance, Parent, event, text_of_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp_host.durable.answers import Answer

_SCHEMA = 1
"""Replay schema V2: actions are a flat list with groups, and timers are not split."""

_FAILURES = frozenset({EventType.TASK_FAILED, EventType.SUB_ORCHESTRATION_FAILED})
_ENDINGS = frozenset(
    {EventType.TASK_COMPLETED, EventType.SUB_ORCHESTRATION_COMPLETED, EventType.TIMER_FIRED, *_FAILURES}
)
_CHANGED = (
    "The orchestrator function asks for other actions than before ({} in place of {}). It must do the same each time "
    "that it runs with the same history."
)
_WITHOUT_HTTP = "funcmcp host does not support call_http. Send the request in an activity function."


@dataclass(frozen=True, slots=True)
class EntityRequest:
    """An operation of an entity.

    Attributes:
        entity: The id of the entity, such as ``@counter@a``.
        operation: The name of the operation.
        input: Its input, decoded from JSON.
        id: Identifies the request.
        caller: The instance that waits for the result; None for a signal.
        due: When it is run at the earliest, as histories have times; None for at once.
    """

    entity: str
    operation: str
    input: Any = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    caller: str | None = None
    due: str | None = None


@dataclass(slots=True)
class Effects:
    """What has to be done after a turn, besides storing the instance.

    Attributes:
        begun: The ids of tasks that begin.
        cancelled: The ids of timers that are not needed any more.
        children: The instances of sub-orchestrations that begin.
        requests: The operations of entities.
    """

    begun: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    children: list[Instance] = field(default_factory=list)
    requests: list[EntityRequest] = field(default_factory=list)


class Turn:
    """One run of an orchestrator function.

    Args:
        instance: The instance, which is due.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._open = dict(instance.open)
        self._next_id = instance.next_id
        self._effects = Effects()
        self._events = [event(EventType.ORCHESTRATOR_STARTED)]
        if not instance.history:
            self._events.append(_execution_started(instance))
        self._seen = 0
        for received in instance.inbox:
            takes_number = self._takes_number(received)
            if takes_number and self._seen:
                break
            self._seen += 1
            self._receive(received)

    def context(self) -> str:
        """Return what the function gets."""
        instance = self._instance
        context = {
            "history": [*instance.history, *self._events],
            "input": instance.input,
            "instanceId": instance.id,
            "isReplaying": bool(instance.history),
            "parentInstanceId": None if instance.parent is None else instance.parent.instance,
            "upperSchemaVersion": _SCHEMA,
        }
        return json.dumps(context)

    def apply(self, answer: Answer) -> Effects:
        """Change the instance as the answer asks for, and return what has to be done.

        Raises:
            AnswerError: The answer can't be carried out. The instance has not changed.
        """
        instance = self._instance
        if answer.error is None:
            self._check_unchanged(answer)
        scheduled = list(instance.scheduled)
        restart = None
        for action in answer.actions[len(scheduled) :]:
            if action["actionType"] == ActionType.CONTINUE_AS_NEW:
                restart = action
                break
            scheduled.append((signature_of(action), self._schedule(action)))
        self._cancel_timers(answer, scheduled)
        self._events.append(event(EventType.ORCHESTRATOR_COMPLETED))
        instance.history = [{**known, "IsPlayed": True} for known in [*instance.history, *self._events]]
        del instance.inbox[: self._seen]
        instance.open = self._open
        instance.next_id = self._next_id
        instance.scheduled = scheduled
        if instance.status != "Suspended":
            instance.status = "Running"
        instance.custom_status = answer.custom_status
        if restart is not None and answer.error is None:
            instance.begin_again(restart.get("input"))
            self._effects.begun.clear()
        elif answer.error is not None:
            end(instance, "Failed", answer.error)
        elif answer.is_done:
            end(instance, "Completed", answer.output)
        return self._effects

    def _receive(self, received: dict[str, Any]) -> None:
        """Add an event to the history, and what follows from it whatever the function does.

        The end of a task that is not open is left out: a timer that was cancelled, or an activity that has run twice.
        """
        kind = received["EventType"]
        if kind in _ENDINGS and key_of(received) not in self._open:
            return
        self._events.append(received)
        if kind == EventType.EVENT_RAISED:
            self._open = {key: task for key, task in self._open.items() if task.get("request") != received["Name"]}
        if kind not in _ENDINGS:
            return
        task = self._open.pop(key_of(received))
        if kind in _FAILURES and task.get("retry"):
            self._wait_for_retry(task)
        elif task["kind"] == "retry" and _has_attempts_left(task["task"]):
            self._begin({**task["task"], "attempt": task["task"]["attempt"] + 1})

    def _takes_number(self, received: dict[str, Any]) -> bool:
        task = self._open.get(key_of(received), {})
        if received["EventType"] in _FAILURES:
            return bool(task.get("retry"))
        return task.get("kind") == "retry" and _has_attempts_left(task["task"])

    def _wait_for_retry(self, task: dict[str, Any]) -> None:
        """Open the timer after which a task is tried again. The last failure has one, too, which is over at once."""
        seconds = retry_seconds(task) if _has_attempts_left(task) else 0.0
        fire_at = text_of_time(datetime.now(UTC) + timedelta(seconds=seconds))
        task_id = self._open_task({"kind": "retry", "fire_at": fire_at, "task": task})
        self._events.append(event(EventType.TIMER_CREATED, task_id, FireAt=fire_at))

    def _check_unchanged(self, answer: Answer) -> None:
        for (before, _), action in zip(self._instance.scheduled, answer.actions, strict=False):
            if signature_of(action) != before:
                raise AnswerError(_CHANGED.format(signature_of(action), before))
        if len(answer.actions) < len(self._instance.scheduled):
            raise AnswerError(_CHANGED.format(len(answer.actions), len(self._instance.scheduled)))

    def _schedule(self, action: dict[str, Any]) -> int | None:
        """Open the task of a new action; return its id, or None for what is not a task."""
        kind = action["actionType"]
        if kind == ActionType.WAIT_FOR_EXTERNAL_EVENT:
            return None
        if kind == ActionType.CALL_HTTP:
            raise AnswerError(_WITHOUT_HTTP)
        schedule = self._SCHEDULING.get(kind)
        if schedule is None:
            raise AnswerError(f"funcmcp host does not support the action {kind}.")
        return schedule(self, action)

    def _schedule_activity(self, action: dict[str, Any]) -> int:
        return self._begin(_task_of("activity", action))

    def _schedule_child(self, action: dict[str, Any]) -> int:
        child = f"{self._instance.execution}:{self._next_id:04x}"
        if action.get("instanceId"):
            child = _text_in(action, "instanceId")
        return self._begin({**_task_of("child", action), "instance": child, "version": action.get("version")})

    def _schedule_timer(self, action: dict[str, Any]) -> int:
        fire_at = _time_in(action, "fireAt")
        task_id = self._open_task({"kind": "timer", "fire_at": fire_at})
        self._events.append(event(EventType.TIMER_CREATED, task_id, FireAt=fire_at))
        return task_id

    def _schedule_call(self, action: dict[str, Any]) -> int:
        request = EntityRequest(
            entity_id(action.get("instanceId")),
            _text_in(action, "operation"),
            action.get("input"),
            caller=self._instance.id,
        )
        task_id = self._open_task({"kind": "entity", "request": request.id})
        self._send(task_id, request)
        return task_id

    def _schedule_signal(self, action: dict[str, Any]) -> int:
        task_id, self._next_id = self._next_id, self._next_id + 1
        entity, operation = entity_id(action.get("instanceId")), _text_in(action, "operation")
        due = _time_in(action, "fireAt") if action["actionType"] == ActionType.SCHEDULED_SIGNAL_ENTITY else None
        self._send(task_id, EntityRequest(entity, operation, action.get("input"), due=due))
        return task_id

    def _send(self, task_id: int, request: EntityRequest) -> None:
        self._effects.requests.append(request)
        message = {"id": request.id, "op": request.operation, "signal": request.caller is None}
        if request.due is not None:
            message["due"] = request.due
        text = json.dumps({**message, "input": json.dumps(request.input), "parent": request.caller})
        name = "op" if request.due is None else f"op@{request.due}"
        self._events.append(event(EventType.EVENT_SENT, task_id, InstanceId=request.entity, Name=name, Input=text))

    def _begin(self, task: dict[str, Any]) -> int:
        """Begin an attempt of an activity or a sub-orchestration."""
        task_id = self._open_task(task)
        members: dict[str, Any] = {"Name": task["name"], "Input": json.dumps(task["input"])}
        if task["kind"] == "activity":
            self._events.append(event(EventType.TASK_SCHEDULED, task_id, **members))
            return task_id
        instance = self._instance
        child_id = task["instance"] if task["attempt"] == 1 else f"{task['instance']}:{task['attempt']}"
        self._effects.children.append(
            Instance(
                child_id,
                task["name"],
                task["input"],
                version=task["version"],
                parent=Parent(instance.id, instance.execution, task_id),
            )
        )
        self._events.append(event(EventType.SUB_ORCHESTRATION_CREATED, task_id, InstanceId=child_id, **members))
        return task_id

    def _open_task(self, task: dict[str, Any]) -> int:
        task_id, self._next_id = self._next_id, self._next_id + 1
        self._open[str(task_id)] = task
        self._effects.begun.append(task_id)
        return task_id

    def _cancel_timers(self, answer: Answer, scheduled: list[tuple[str, int | None]]) -> None:
        for action, (_, task_id) in zip(answer.actions, scheduled, strict=False):
            if action["actionType"] == ActionType.CREATE_TIMER and action.get("isCanceled") and task_id is not None:
                self._open.pop(str(task_id), None)
                self._effects.cancelled.append(task_id)

    _SCHEDULING: ClassVar[dict[int, Callable[[Turn, dict[str, Any]], int]]] = {
        ActionType.CALL_ACTIVITY: _schedule_activity,
        ActionType.CALL_ACTIVITY_WITH_RETRY: _schedule_activity,
        ActionType.CALL_SUB_ORCHESTRATOR: _schedule_child,
        ActionType.CALL_SUB_ORCHESTRATOR_WITH_RETRY: _schedule_child,
        ActionType.CREATE_TIMER: _schedule_timer,
        ActionType.CALL_ENTITY: _schedule_call,
        ActionType.SIGNAL_ENTITY: _schedule_signal,
        ActionType.SCHEDULED_SIGNAL_ENTITY: _schedule_signal,
    }


def end(instance: Instance, status: str, output: Any) -> None:
    """Make an instance end."""
    instance.status = status
    instance.output = output
    instance.open = {}
    instance.inbox = []


def entity_id(value: Any) -> str:
    """Return the id of an entity, such as ``@counter@a``: names are compared without case, and keys with it.

    Raises:
        AnswerError: The value names no entity.
    """
    if isinstance(value, dict):
        name, key = value.get("name"), value.get("key")
    else:
        _, name, key = (*f"{value}".split("@", 2), "", "")[:3]
    if not name or not key:
        raise AnswerError(f"The entity id {value!r} must have a name and a key.")
    return f"@{str(name).lower()}@{key}"


def _execution_started(instance: Instance) -> dict[str, Any]:
    return event(
        EventType.EXECUTION_STARTED,
        Name=instance.name,
        Version=instance.version,
        Input=json.dumps(instance.input),
        OrchestrationInstance={"InstanceId": instance.id, "ExecutionId": instance.execution},
        Tags=None,
    )


def key_of(received: dict[str, Any]) -> str:
    """Return the id of the task that an event ends, as `Instance.open` has it."""
    return str(received.get("TaskScheduledId", received.get("TimerId")))


def _task_of(kind: str, action: dict[str, Any]) -> dict[str, Any]:
    task = {"kind": kind, "name": _text_in(action, "functionName"), "input": action.get("input"), "attempt": 1}
    return {**task, "retry": action.get("retryOptions")}


def _text_in(action: dict[str, Any], name: str) -> str:
    text = action.get(name)
    if not isinstance(text, str) or not text:
        raise AnswerError(f"Its action {action['actionType']} must have the text {name}.")
    return text


def _time_in(action: dict[str, Any], name: str) -> str:
    text = _text_in(action, name)
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise AnswerError(f"The time {name}, {text!r}, is not an ISO 8601 date with a time.") from None
    return text


def _has_attempts_left(task: dict[str, Any]) -> bool:
    return bool(task["attempt"] < int(task["retry"].get("maxNumberOfAttempts") or 1))


def retry_seconds(task: dict[str, Any]) -> float:
    """Return how long to wait before the next attempt of a task."""
    options = task["retry"]
    first = float(options.get("firstRetryIntervalInMilliseconds") or 0)
    milliseconds: float = first * float(options.get("backoffCoefficient") or 1) ** (task["attempt"] - 1)
    longest = options.get("maxRetryIntervalInMilliseconds")
    return min(milliseconds, float(longest)) / 1000 if longest else milliseconds / 1000
