"""The limits of stores of tasks, and the order of an owner's tasks. See `funcmcp.testing._task_stores`, too."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._state.tasks.record import NewTask, TaskKey, new_record
from funcmcp._state.tasks.store import TaskLimits, position
from funcmcp.tasks import AzureTasks, MemoryTasks, PostgresTasks, RedisTasks, SQLiteTasks

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("name", [limit.name for limit in fields(TaskLimits)])
def test_a_limit_is_at_least_one(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1; got 0"):
        TaskLimits(**{name: 0})


STORES: dict[str, Callable[..., object]] = {
    "memory": MemoryTasks,
    "sqlite": lambda **options: SQLiteTasks("tasks.db", **options),
    "redis": lambda **options: RedisTasks("redis://localhost", **options),
    "postgres": lambda **options: PostgresTasks("postgresql://localhost", **options),
    "azure": AzureTasks,
}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("value", [-1, 1.5, "x", True, None])
def test_a_wrong_concurrency_is_refused(store: str, value: Any) -> None:
    with pytest.raises(ValueError, match="concurrency must be a number of tasks, or 0 to run none; got "):
        STORES[store](concurrency=value)


@pytest.mark.parametrize("store", ["sqlite", "redis", "postgres", "azure"])
@pytest.mark.parametrize("value", [0, -5, float("inf"), float("nan"), "30", True])
def test_a_wrong_lease_is_refused(store: str, value: Any) -> None:
    with pytest.raises(ValueError, match="lease must be a number of seconds above 0; got "):
        STORES[store](lease=value)


def test_positions_sort_by_the_time_of_creation() -> None:
    record = new_record(NewTask(TaskKey(None, "a"), "add", b""), 999.0)
    newer = replace(record, created=1000.0)
    assert position(record) < position(newer)
