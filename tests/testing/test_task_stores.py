"""The tests that stores of tasks have in common: correct stores pass, and each fault of a store fails one of them."""

from __future__ import annotations

import functools
import json
import re
import runpy
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.tasks import Claim, MemoryTasks, TaskFilter, TaskKey, position
from funcmcp.testing import task_store_tests
from tests.clock import Clock
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from funcmcp.tasks import NewTask, Outcome, TaskRecord, TaskStore

GUIDE = Path(__file__).parents[2] / "docs/guides/task-stores.md"
TIME = Clock()


async def wait(seconds: float) -> None:
    TIME.now += seconds


def example() -> str:
    """Return the store of the guide."""
    block = re.search(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1]


@functools.cache
def example_class() -> Callable[..., TaskStore]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "example.py"
        file.write_text(example(), encoding="utf-8")
        store: Callable[..., TaskStore] = runpy.run_path(str(file))["TableTasks"]
        return store


@asynccontextmanager
async def example_stores() -> AsyncIterator[Callable[..., TaskStore]]:
    yield partial(example_class(), {}, clock=TIME)


TestStoreOfTheGuide = task_store_tests(example_stores, wait=wait, name="TestStoreOfTheGuide")


def test_the_tests_need_pytest_and_no_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_store.py").write_text(example(), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-k", "read or two_cancellations", "test_store.py"]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": ""},
    )
    assert run.returncode == 0, run.stdout
    assert re.search(r"^[2-9] passed", run.stdout, re.MULTILINE), run.stdout


def test_the_class_has_the_name_that_pytest_is_to_show() -> None:
    assert task_store_tests(example_stores).__name__ == "TestTaskStore"
    assert TestStoreOfTheGuide.__name__ == "TestStoreOfTheGuide"


class CreatesAgain(MemoryTasks):
    async def _insert(self, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        self._tasks.pop(task.key, None)
        return await super()._insert(record, task, size)


class GivesATaskTwice(MemoryTasks):
    async def _claim_due(self, count: int, only: TaskFilter) -> list[Claim]:
        claims = await super()._claim_due(count, only)
        for claim in claims:
            self._push_due(replace(claim.record, due=0.0))
            task = self._tasks[claim.key]
            task.record = replace(task.record, due=0.0, starts=0)
        return claims


class ReadsForEverybody(MemoryTasks):
    async def _load(self, key: TaskKey) -> TaskRecord | None:
        records = [task.record for task in self._tasks.values() if task.record.key.task_id == key.task_id]
        return records[0] if records else None


class IgnoresTokens(MemoryTasks):
    async def finish(self, claim: Claim, outcome: Outcome) -> TaskRecord | None:
        record = self._tasks[claim.key].record
        return await super().finish(replace(claim, record=replace(claim.record, token=record.token)), outcome)


class NeverEndsALease(MemoryTasks):
    async def _claim_due(self, count: int, only: TaskFilter) -> list[Claim]:
        self.lease = inf
        return await super()._claim_due(count, only)


class RunsAgainWithoutEnd(MemoryTasks):
    async def _insert(self, record: TaskRecord, task: NewTask, size: int) -> TaskRecord:
        return await super()._insert(replace(record, attempts=9), task, size)


class TakesAnyNumberOfTasks(MemoryTasks):
    def _check_room(self, owner: str | None, now: float) -> None:
        pass


class CountsNoBytes(MemoryTasks):
    def _count(self, task: Any, size: int, now: float) -> None:
        super()._count(task, 0, now)


class ListsTheNewestFirst(MemoryTasks):
    async def _page(self, owner: str, after: str | None, size: int) -> Sequence[TaskRecord]:
        records = [task.record for task in self._tasks.values() if task.record.key.owner == owner]
        return sorted(records, key=position, reverse=True)[:size]


class KeepsAnswersOfAnyKey(MemoryTasks):
    async def answer(self, key: TaskKey, answers: Mapping[str, Mapping[str, Any]]) -> TaskRecord | None:
        record = await self.read(key)
        questions = {} if record is None else record.questions
        return await super().answer(key, dict(zip(questions, answers.values(), strict=False)))


class ChangesNumbers(MemoryTasks):
    async def _claim_due(self, count: int, only: TaskFilter) -> list[Claim]:
        claims = await super()._claim_due(count, only)
        return [Claim(claim.record, _as_floats(claim.call), claim.now) for claim in claims]


class CancelsForEverybody(MemoryTasks):
    async def cancel(self, key: TaskKey) -> TaskRecord | None:
        names = [name for name in self._tasks if name.task_id == key.task_id]
        return await super().cancel(names[0] if names else key)


class IgnoresQueues(MemoryTasks):
    async def _claim_due(self, count: int, only: TaskFilter) -> list[Claim]:
        return await super()._claim_due(count, TaskFilter(None, only.places))


class ReturnsTasksToTheDefaultQueue(MemoryTasks):
    def _push_due(self, record: TaskRecord) -> None:
        super()._push_due(replace(record, queue="default") if record.attempt else record)


class IgnoresPlaces(MemoryTasks):
    async def _claim_due(self, count: int, only: TaskFilter) -> list[Claim]:
        return await super()._claim_due(count, TaskFilter(only.queues))


class NeverRemovesTasks(MemoryTasks):
    async def read(self, key: TaskKey) -> TaskRecord | None:
        return await self._load(key)


def _as_floats(call: bytes) -> bytes:
    return json.dumps(json.loads(call, parse_int=float)).encode()


FAULTS: list[tuple[type[MemoryTasks], str]] = [
    (CreatesAgain, "a_task_that_exists_is_left_as_it_is_when_it_is_created_again"),
    (GivesATaskTwice, "a_claim_brings_the_call_unchanged_and_no_one_else_gets_it"),
    (ReadsForEverybody, "a_task_can_be_read_at_once_by_its_owner_alone"),
    (IgnoresTokens, "a_claim_with_the_number_of_another_and_a_token_of_its_own_is_refused"),
    (NeverEndsALease, "a_lapsed_task_runs_again_if_it_may_and_the_first_worker_has_lost_it"),
    (RunsAgainWithoutEnd, "a_lapsed_task_that_may_run_once_fails_in_words"),
    (TakesAnyNumberOfTasks, "one_principal_has_limits_of_its_own"),
    (CountsNoBytes, "one_principal_has_so_many_bytes_and_no_more"),
    (ListsTheNewestFirst, "a_page_has_the_tasks_of_its_owner_oldest_first"),
    (KeepsAnswersOfAnyKey, "a_task_with_questions_waits_for_all_answers_and_is_due_again"),
    (ChangesNumbers, "a_claim_brings_the_call_unchanged_and_no_one_else_gets_it"),
    (CancelsForEverybody, "a_cancelled_task_is_over_for_its_worker_too"),
    (IgnoresQueues, "a_worker_gets_tasks_of_the_queues_that_it_serves"),
    (ReturnsTasksToTheDefaultQueue, "a_task_returns_to_its_own_queue"),
    (ReturnsTasksToTheDefaultQueue, "the_lapsed_task_of_a_queue_runs_again_in_it"),
    (IgnoresPlaces, "a_worker_gets_as_many_tasks_of_a_tool_as_it_has_places_for"),
    (NeverRemovesTasks, "a_task_that_does_not_end_in_time_fails_and_is_removed_later"),
]


def run_on(store: type[MemoryTasks], rule: str) -> None:
    """Run one of the tests on a store."""

    @asynccontextmanager
    async def stores() -> AsyncIterator[Callable[..., TaskStore]]:
        def make(*, lease: float = inf, **options: Any) -> TaskStore:
            made = store(clock=TIME, **options)
            made.lease = lease
            return made

        yield make

    getattr(task_store_tests(stores, wait=wait)(), f"test_{rule}")()


@pytest.mark.parametrize(("store", "rule"), FAULTS)
def test_a_fault_of_a_store_fails_the_test_of_its_rule(store: type[MemoryTasks], rule: str) -> None:
    run_on(MemoryTasks, rule)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run_on(store, rule)
