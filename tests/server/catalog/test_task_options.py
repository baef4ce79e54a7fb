"""How an author lets calls become tasks."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.catalog.task_options import TaskOptions
from funcmcp._state.tasks.memory import MemoryTasks
from tests.server.parts import server, tool


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "always"}, "The mode of a task must be 'optional' or 'required'; got 'always'."),
        ({"ttl": 0.5}, "ttl must be from 1 to 604800 seconds; got 0.5."),
        ({"ttl": 604_801}, "ttl must be from 1 to 604800 seconds; got 604801."),
        ({"keep": -1}, "keep must be from 0 to 604800 seconds; got -1."),
        ({"poll": 0}, "poll must be more than 0 seconds and at most the ttl; got 0."),
        ({"poll": 10, "ttl": 5}, "poll must be more than 0 seconds and at most the ttl; got 10."),
        ({"attempts": 0}, "attempts must be an integer of at least 1; got 0."),
        ({"attempts": True}, "attempts must be an integer of at least 1; got True."),
    ],
)
def test_an_invalid_option_is_rejected_with_the_values_that_are_valid(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RegistrationError, match=message):
        TaskOptions(**options)


def test_a_tool_that_runs_only_as_a_task_needs_a_server_with_tasks() -> None:
    required = tool("job", task=TaskOptions("required"))
    with pytest.raises(RegistrationError, match=r"The tool 'job' runs only as a task, and the server has none"):
        server(required)
    assert "tasks" in server(required, tasks=MemoryTasks()).catalog.offered


def test_the_capability_is_offered_as_long_as_a_tool_has_tasks() -> None:
    served = server(tool("plain"), tasks=MemoryTasks())
    assert "tasks" not in served.catalog.offered
    served.catalog.add(tool("job", task=TaskOptions()))
    assert "tasks" in served.catalog.offered
    served.catalog.tools.remove("job")
    assert "tasks" not in served.catalog.offered
    assert "tasks" not in server(tool("job", task=TaskOptions())).catalog.offered
