"""The limits of stores of tasks, and the order of an owner's tasks. What stores do is in `contract`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from funcmcp.state.tasks.record import NewTask, TaskKey, new_record
from funcmcp.state.tasks.store import TaskLimits, position


@pytest.mark.parametrize("name", ["total", "per_principal", "live_per_principal", "result_bytes"])
def test_a_limit_is_at_least_one(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1; got 0"):
        TaskLimits(**{name: 0})


def test_positions_sort_by_the_time_of_creation() -> None:
    record = new_record(NewTask(TaskKey(None, "a"), "add", b""), 999.0)
    newer = replace(record, created=1000.0)
    assert position(record) < position(newer)
