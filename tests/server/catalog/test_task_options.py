"""How an author lets calls become tasks."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol.errors import MCPError, ToolError
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.catalog.task_options import Retry, TaskOptions
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
        ({"delay": -1}, "delay must be 0 or more seconds, and less than the ttl; got -1."),
        ({"delay": 5, "ttl": 5}, "delay must be 0 or more seconds, and less than the ttl; got 5."),
        ({"concurrency": 0}, "concurrency must be an integer of at least 1; got 0."),
        ({"concurrency": True}, "concurrency must be an integer of at least 1; got True."),
        ({"queue": ""}, "The name of a queue must have 1 to 40 letters, digits, '.', '_' and '-', and begin with a"),
        ({"queue": "a,b"}, "The name of a queue must have .* a letter or a digit; got 'a,b'."),
        ({"retry": 3}, r"retry must be Retry\(...\), such as Retry\(5\); got 3."),
    ],
)
def test_an_invalid_option_is_rejected_with_the_values_that_are_valid(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RegistrationError, match=message):
        TaskOptions(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": 0}, "Retry.attempts must be an integer of at least 1; got 0."),
        ({"attempts": 2.0}, "Retry.attempts must be an integer of at least 1; got 2.0."),
        ({"delay": -1}, "Retry.delay must be from 0 to 604800 seconds; got -1."),
        ({"max_delay": True}, "Retry.max_delay must be from 0 to 604800 seconds; got True."),
        ({"on": ()}, r"Retry.on must be a class of exceptions, or a tuple of them; got \(\)."),
        ({"on": "OSError"}, "Retry.on must be a class of exceptions, or a tuple of them; got 'OSError'."),
        ({"on": (OSError, 1)}, r"Retry.on must be a class of exceptions, or a tuple of them; got \(.*, 1\)."),
    ],
)
def test_an_invalid_retry_is_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RegistrationError, match=message):
        Retry(**options)


@pytest.mark.parametrize(
    ("on", "error", "applies"),
    [
        (Exception, OSError(), True),
        (Exception, TimeoutError(), True),
        (Exception, ToolError("no"), False),
        (Exception, MCPError(-1, "no"), False),
        (Exception, ExceptionGroup("", [ToolError("no")]), False),
        (Exception, ExceptionGroup("", [ToolError("no"), OSError()]), True),
        (ToolError, ToolError("no"), True),
        ((ToolError, OSError), ConnectionError(), True),
        (OSError, ExceptionGroup("", [ConnectionError()]), True),
        (OSError, ValueError(), False),
    ],
)
def test_a_tool_runs_again_after_the_exceptions_of_its_retry(on: Any, error: Exception, applies: bool) -> None:
    assert Retry(on=on).applies_to(error) is applies


def test_the_waits_double_with_up_to_a_half_more_and_end_at_the_longest() -> None:
    retry = Retry(1000, delay=1.0, max_delay=60.0)
    for attempt, shortest, longest in [(1, 1, 1.5), (2, 2, 3), (3, 4, 6), (6, 32, 48), (7, 60, 60), (999, 60, 60)]:
        assert shortest <= retry.delay_after(attempt) <= longest
    assert Retry(delay=0).delay_after(900) == 0


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
