"""Turns: the history that an orchestrator gets, and the numbers of its tasks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from funcmcp_host.durable.answers import Answer, AnswerError
from funcmcp_host.durable.instances import EventType, Instance, Parent, event
from funcmcp_host.durable.turn import Turn, entity_id, retry_seconds

RETRY = {"firstRetryIntervalInMilliseconds": 1000, "maxNumberOfAttempts": 2, "backoffCoefficient": 3}


def activity(name: str = "a", **members: Any) -> dict[str, Any]:
    return {"actionType": 1 if members else 0, "functionName": name, "input": "1", **members}


def kinds_of(history: list[dict[str, Any]]) -> list[EventType]:
    return [EventType(known["EventType"]) for known in history]


def completed(task: int, result: str = "1") -> dict[str, Any]:
    return event(EventType.TASK_COMPLETED, TaskScheduledId=task, Result=result)


def failed(task: int) -> dict[str, Any]:
    return event(EventType.TASK_FAILED, TaskScheduledId=task, Reason="no", Details="")


def fired(task: int) -> dict[str, Any]:
    return event(EventType.TIMER_FIRED, TimerId=task, FireAt="")


def take(instance: Instance, *actions: dict[str, Any], **answer: Any) -> Any:
    return Turn(instance).apply(Answer(list(actions), **answer))


def test_the_history_of_the_first_two_turns() -> None:
    instance = Instance("i", "f", 5, parent=Parent("p", "e", 3))
    context = json.loads(Turn(instance).context())
    assert kinds_of(context["history"]) == [EventType.ORCHESTRATOR_STARTED, EventType.EXECUTION_STARTED]
    assert context["history"][1]["Version"] is None
    assert {name: context[name] for name in ("input", "instanceId", "isReplaying", "parentInstanceId")} == {
        "input": 5,
        "instanceId": "i",
        "isReplaying": False,
        "parentInstanceId": "p",
    }
    assert take(instance, activity()).begun == [0]
    was_due = instance.is_due
    instance.inbox.append(completed(0))
    assert (was_due, instance.is_due) == (False, True)
    history = json.loads(Turn(instance).context())["history"]
    assert kinds_of(history)[2:] == [
        EventType.TASK_SCHEDULED,
        EventType.ORCHESTRATOR_COMPLETED,
        EventType.ORCHESTRATOR_STARTED,
        EventType.TASK_COMPLETED,
    ]
    assert [known["IsPlayed"] for known in history] == [True] * 4 + [False] * 2
    take(instance, activity(), is_done=True, output=2)
    assert (instance.status, instance.output, instance.open, instance.inbox) == ("Completed", 2, {}, [])


def test_an_instance_is_stored_and_read() -> None:
    instance = Instance("i", "f", parent=Parent("p", "e", 3))
    take(instance, activity())
    record = json.loads(json.dumps(instance.record()))
    assert Instance.of_record({**record, "other": 1}) == instance


def test_a_turn_that_is_not_applied_changes_nothing() -> None:
    instance = Instance("i", "f")
    take(instance, activity(retryOptions=RETRY))
    instance.inbox.append(failed(0))
    before = json.dumps(instance.record())
    Turn(instance)
    assert json.dumps(instance.record()) == before


def test_retries_take_a_number_for_the_timer_and_one_for_the_attempt() -> None:
    instance = Instance("i", "f")
    actions = [activity(retryOptions=RETRY), activity("b")]
    take(instance, *actions)
    instance.inbox += [completed(1), failed(0)]
    effects = take(instance, *actions, activity("c"))  # the failure waits for the next turn: c has number 2
    assert effects.begun == [2]
    assert take(instance, *actions, activity("c")).begun == [3]
    assert instance.open["3"]["kind"] == "retry"
    instance.inbox += [fired(3), completed(2)]
    assert take(instance, *actions, activity("c"), activity("d")).begun == [4, 5]
    assert instance.open["4"]["attempt"] == 2
    instance.inbox.append(failed(4))
    effects = take(instance, *actions, activity("c"), activity("d"))
    assert effects.begun == [6]
    assert instance.open["6"]["fire_at"] <= instance.history[-1]["Timestamp"]  # no wait after the last attempt
    instance.inbox.append(fired(6))
    assert take(instance, *actions, activity("c"), activity("d"), activity("e")).begun == [7]


def test_timers_are_cancelled_and_late_events_do_no_harm() -> None:
    instance = Instance("i", "f")
    timer = {"actionType": 5, "fireAt": "2030-01-01T00:00:00.000000Z"}
    wait = {"actionType": 6, "externalEventName": "E"}
    take(instance, wait, timer)
    instance.inbox.append(event(EventType.EVENT_RAISED, Name="E", Input="1"))
    assert take(instance, wait, {**timer, "isCanceled": True}).cancelled == [0]
    assert instance.open == {}
    instance.inbox.append(fired(0))
    assert EventType.TIMER_FIRED not in kinds_of(json.loads(Turn(instance).context())["history"])
    assert take(instance, wait, {**timer, "isCanceled": True}, activity()).begun == [1]
    instance.inbox += [completed(1), completed(1)]
    assert kinds_of(json.loads(Turn(instance).context())["history"]).count(EventType.TASK_COMPLETED) == 1


def test_a_new_execution_keeps_events_that_it_has_not_seen() -> None:
    instance = Instance("i", "f", 1)
    turn = Turn(instance)
    raised = event(EventType.EVENT_RAISED, Name="E", Input="1")
    instance.inbox += [completed(9), raised]
    execution = instance.execution
    again = {"actionType": 4, "input": "2"}
    turn.apply(Answer([activity(), again], is_done=True))
    assert (instance.input, instance.history, instance.open, instance.inbox) == ("2", [], {}, [raised])
    assert (instance.next_id, instance.scheduled, instance.has_ended) == (0, [], False)
    assert instance.execution != execution


def test_operations_of_entities() -> None:
    instance = Instance("i", "f")
    signal = {"actionType": 9, "instanceId": {"name": "Counter", "key": "K"}, "operation": "add", "input": "1"}
    call = {**signal, "actionType": 7}
    effects = take(instance, signal, call)
    assert [(request.entity, request.caller) for request in effects.requests] == [
        ("@counter@K", None),
        ("@counter@K", "i"),
    ]
    request = effects.requests[1].id
    assert instance.open == {"1": {"kind": "entity", "request": request}}
    assert json.loads(instance.history[-2]["Input"])["id"] == request
    instance.inbox.append(event(EventType.EVENT_RAISED, Name=request, Input="{}"))
    take(instance, signal, call)
    assert instance.open == {}


def test_a_signal_may_be_due_later() -> None:
    instance = Instance("i", "f")
    time = "2030-01-01T00:00:00.000000Z"
    signal = {"actionType": 10, "instanceId": "@Counter@K", "operation": "add", "input": "1", "fireAt": time}
    [request] = take(instance, signal).requests
    assert (request.entity, request.operation, request.caller, request.due) == ("@counter@K", "add", None, time)
    sent = next(known for known in instance.history if known["EventType"] == EventType.EVENT_SENT)
    assert (sent["Name"], json.loads(sent["Input"])["due"]) == (f"op@{time}", time)
    assert (instance.open, instance.next_id) == ({}, 1)
    with pytest.raises(AnswerError, match="The time fireAt, 'soon', is not an ISO 8601 date"):
        take(Instance("j", "f"), {**signal, "fireAt": "soon"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [({"name": "A", "key": "B"}, "@a@B"), ("@A@b@c", "@a@b@c"), ({"name": "A"}, None), ("A", None), (None, None)],
)
def test_ids_of_entities(value: object, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(AnswerError, match="must have a name and a key"):
            entity_id(value)
    else:
        assert entity_id(value) == expected


def test_sub_orchestrations_have_an_id_for_each_attempt() -> None:
    instance = Instance("i", "f")
    named = {"actionType": 3, "functionName": "g", "input": "1", "instanceId": "child", "retryOptions": RETRY}
    other = {"actionType": 2, "functionName": "g", "version": "2"}
    children = take(instance, named, other).children
    assert [child.id for child in children] == ["child", f"{instance.execution}:0001"]
    assert children[1].version == "2"
    assert children[0].parent == Parent("i", instance.execution, 0)
    instance.inbox.append(event(EventType.SUB_ORCHESTRATION_FAILED, TaskScheduledId=0, Reason="no", Details=""))
    take(instance, named, other)
    instance.inbox.append(fired(2))
    assert [child.id for child in take(instance, named, other).children] == ["child:2"]


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        ([activity("b")], r"asks for other actions than before \(0 b in place of 0 a\)"),
        ([], r"asks for other actions than before \(0 in place of 1\)"),
        ([activity(), {"actionType": 8}], "funcmcp host does not support call_http"),
        ([activity(), {"actionType": 77}], "funcmcp host does not support the action 77"),
    ],
)
def test_answers_that_can_not_be_carried_out_change_nothing(actions: list[dict[str, Any]], text: str) -> None:
    instance = Instance("i", "f")
    take(instance, activity())
    before = json.dumps(instance.record())
    with pytest.raises(AnswerError, match=text):
        take(instance, *actions)
    assert json.dumps(instance.record()) == before


def test_a_failure_ends_an_instance_and_a_suspended_one_stays_so() -> None:
    instance = Instance("i", "f")
    turn = Turn(instance)
    instance.status = "Suspended"
    turn.apply(Answer([activity()]))
    assert (instance.status, instance.is_due) == ("Suspended", False)
    instance.status = "Running"
    instance.inbox.append(completed(0))
    take(instance, error="no", custom_status=4)
    assert (instance.status, instance.output, instance.custom_status) == ("Failed", "no", 4)


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ({}, [1, 3, 9]),
        ({"maxRetryIntervalInMilliseconds": 2000}, [1, 2, 2]),
        ({"backoffCoefficient": None, "maxRetryIntervalInMilliseconds": None}, [1, 1, 1]),
    ],
)
def test_waits_before_the_next_attempt(options: dict[str, Any], waits: list[float]) -> None:
    assert [retry_seconds({"retry": {**RETRY, **options}, "attempt": attempt}) for attempt in (1, 2, 3)] == waits
