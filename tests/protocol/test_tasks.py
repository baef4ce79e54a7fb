"""Tasks on the wire, against the official schemas."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol.revisions import REVISIONS
from funcmcp._protocol.tasks import EXTENSION, STATUSES, TaskStatus, created, declares, members, poll_seconds, timestamp
from tests import schemas

TASK = TaskStatus("id", "working", None, 1_753_660_800.25, 1_753_660_801.0, 3600.0, 0.25)
WITH_TASKS = ("2025-11-25", "2026-07-28")


def test_tasks_exist_in_the_two_newest_revisions() -> None:
    assert tuple(date for date, revision in REVISIONS.items() if revision.tasks is not None) == WITH_TASKS


@pytest.mark.parametrize("status", sorted(STATUSES))
@pytest.mark.parametrize("date", WITH_TASKS)
def test_a_task_is_valid_in_its_revision(date: str, status: str) -> None:
    rules = REVISIONS[date].tasks
    assert rules is not None
    task = TaskStatus("id", status, "half", TASK.created, TASK.updated, TASK.ttl, TASK.poll, status == "completed")
    shown = members(task, rules)
    schemas.validate_as({"resultType": "complete", **shown} if rules.extension else shown, *_definition(date, "Task"))


@pytest.mark.parametrize("date", WITH_TASKS)
def test_a_created_task_is_valid_in_its_revision(date: str) -> None:
    rules = REVISIONS[date].tasks
    assert rules is not None
    schemas.validate_as(created(TASK, rules), *_definition(date, "CreateTaskResult"))


def test_a_created_task_is_flat_in_the_extension_and_wrapped_in_2025_11_25() -> None:
    old, new = (REVISIONS[date].tasks for date in WITH_TASKS)
    assert old is not None
    assert new is not None
    times = {"createdAt": "2025-07-28T00:00:00.250Z", "lastUpdatedAt": "2025-07-28T00:00:01.000Z"}
    shared = {"taskId": "id", "status": "working", **times}
    assert created(TASK, old) == {"task": {**shared, "ttl": 3_600_000, "pollInterval": 250}}
    assert created(TASK, new) == {"resultType": "task", **shared, "ttlMs": 3_600_000, "pollIntervalMs": 250}


def test_a_tool_error_is_failed_in_2025_11_25_and_completed_in_the_extension() -> None:
    task = TaskStatus("id", "completed", "No", 0, 0, 1, 1, tool_failed=True)
    statuses = []
    for date in WITH_TASKS:
        rules = REVISIONS[date].tasks
        assert rules is not None
        statuses.append(members(task, rules)["status"])
    assert statuses == ["failed", "completed"]


@pytest.mark.parametrize(
    ("capabilities", "declared"),
    [
        ({}, False),
        ({"tasks": {}}, False),
        ({"extensions": {}}, False),
        ({"extensions": []}, False),
        ({"extensions": {EXTENSION: True}}, False),
        ({"extensions": {EXTENSION: {}}}, True),
    ],
)
def test_a_client_declares_the_extension_by_an_object(capabilities: dict[str, Any], declared: bool) -> None:
    assert declares(capabilities) is declared


@pytest.mark.parametrize(
    ("age", "fixed", "seconds"), [(0, None, 0.25), (5, None, 0.5), (20, None, 2), (5000, None, 5), (5000, 60, 60)]
)
def test_the_interval_is_a_tenth_of_the_age_unless_the_author_chose_one(
    age: float, fixed: float | None, seconds: float
) -> None:
    assert poll_seconds(age, fixed) == seconds


def test_a_timestamp_has_milliseconds_and_is_utc() -> None:
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(1_753_660_800.9994) == "2025-07-28T00:00:00.999Z"


def _definition(date: str, name: str) -> tuple[str, str]:
    return ("ext-tasks" if date == schemas.PER_REQUEST_REVISION else date), name
