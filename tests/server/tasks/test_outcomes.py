"""Runs of a claimed task that come to nothing. Runs that end are in tests/server/handlers/test_tasks.py."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._server.tasks.outcomes import TaskRuns
from funcmcp._server.tasks.worker import NoOutcome
from funcmcp._state.tasks.memory import MemoryTasks
from funcmcp._state.tasks.record import NewTask, TaskKey
from tests.server.parts import server, tool

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

SERVED = server(tool("job"))


async def never(*_arguments: Any) -> Any:
    raise AssertionError("The tool must not run.")


@pytest.mark.parametrize(("name", "call"), [("missing", b"{}"), ("job", b"{}"), ("job", b"no json")])
async def test_a_task_of_another_version_of_the_server_is_not_run(name: str, call: bytes) -> None:
    store = MemoryTasks()
    runs = TaskRuns(SERVED.catalog, SERVED.results, never, store)
    await store.create(NewTask(TaskKey(None, "id"), name, call))
    (claim,) = await store.claim(1)
    assert await runs.run(claim, print) is NoOutcome.UNKNOWN
