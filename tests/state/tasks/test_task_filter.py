"""Which tasks a worker can run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from funcmcp._state.tasks.record import Claim, new_record
from funcmcp._state.tasks.task_filter import TaskFilter
from funcmcp.testing._task_stores import new_task

if TYPE_CHECKING:
    from collections.abc import Sequence


def claims_of(*tools: str) -> Sequence[Claim]:
    return [Claim(replace(new_record(new_task(), 0.0), tool=tool), b"", 0.0) for tool in tools]


def test_a_worker_without_limits_can_run_any_task() -> None:
    only = TaskFilter()
    assert only.accepts("default", "add", claims_of("add"))
    assert only.full_tools(claims_of("add")) == []


def test_a_worker_can_run_the_tasks_of_its_queues() -> None:
    only = TaskFilter(frozenset({"slow"}))
    assert (only.accepts("slow", "add"), only.accepts("default", "add")) == (True, False)
    assert not TaskFilter(frozenset()).accepts("slow", "add")


def test_the_claims_of_a_tool_take_its_places() -> None:
    only = TaskFilter(places={"render": 2, "scan": 0})
    assert (only.accepts("default", "render"), only.accepts("default", "scan")) == (True, False)
    assert only.accepts("default", "render", claims_of("render", "add"))
    assert not only.accepts("default", "render", claims_of("render", "add", "render"))
    assert only.accepts("default", "add", claims_of("render", "render"))
    assert only.full_tools() == ["scan"]
    assert only.full_tools(claims_of("render", "render")) == ["render", "scan"]
