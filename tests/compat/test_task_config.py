"""`task=` of a tool in the forms of FastMCP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from funcmcp._compat.task_config import task_option
from funcmcp.compat import FastMCP, TaskConfig
from funcmcp.tasks import TaskOptions
from funcmcp.testing import Client

DETACHING = TaskOptions(detaches=True)


@pytest.mark.parametrize(
    ("task", "option"),
    [
        (None, None),
        (False, None),
        ("forbidden", None),
        (TaskConfig("forbidden"), None),
        (True, "optional"),
        (TaskConfig(), "optional"),
        (TaskConfig(mode="required"), "required"),
        ("required", "required"),
        (TaskConfig(poll_interval=timedelta(seconds=2)), TaskOptions("optional", poll=2.0)),
        (DETACHING, DETACHING),
    ],
)
def test_forms_of_the_option(task: Any, option: Any) -> None:
    assert task_option(task, "work", default=False).get("task") == option


@pytest.mark.parametrize("task", [{"mode": "optional"}, 1, "sometimes", TaskConfig("never"), object()])
def test_another_value_is_refused_with_the_name_of_the_tool(task: Any) -> None:
    with pytest.raises(TypeError, match=r"task of the tool work must be True, False, 'optional', .* a TaskConfig"):
        FastMCP("t").tool(name="work", task=task)(lambda: "done")


def test_a_config_says_whether_there_are_tasks() -> None:
    assert TaskConfig.from_bool(True).supports_tasks()
    assert not TaskConfig.from_bool(False).supports_tasks()


async def test_a_tool_with_a_config_runs_as_a_task() -> None:
    mcp = FastMCP("t")

    @mcp.tool(task=TaskConfig(mode="required", poll_interval=timedelta(seconds=0.25)))
    async def work() -> str:
        return "done"

    async with Client(mcp) as client:
        assert (await (await client.start_tool("work")).result()).text == "done"
