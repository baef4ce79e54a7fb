"""The time limit of a call, and the option that its error and the log name."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from funcmcp import MCPServer
from funcmcp._server.calls.feature import DEFAULT_TIME_LIMIT, TimeLimit
from funcmcp.client import Client
from funcmcp.tasks import TaskOptions

if TYPE_CHECKING:
    from typing import Any


async def wait_forever() -> str:
    await asyncio.Event().wait()
    return "never"


def limited(option: str, **options: Any) -> MCPServer:
    """Return a server with a tool whose time limit has this option, but is short."""
    mcp = MCPServer("limits")
    mcp.tool("job", **options)(wait_forever)
    tool = mcp._server.catalog.tools.get("job")
    assert tool is not None
    assert tool.time_limit is not None
    assert tool.time_limit.option == option
    mcp._server.catalog.remove(tool)
    mcp._server.catalog.add(replace(tool, time_limit=TimeLimit(0.01, option)))
    return mcp


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({}, "the default of timeout="),
        ({"timeout": 5}, "timeout="),
        ({"task": "optional"}, "ttl of TaskOptions"),
        ({"task": TaskOptions("optional", detaches=True)}, "ttl of TaskOptions"),
        ({"task": "optional", "timeout": 5}, "timeout="),
    ],
)
async def test_the_error_and_one_line_of_the_log_name_the_option(
    options: dict[str, Any], option: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(limited(option, **options), revision="2025-06-18") as client:  # which has no tasks
        caplog.clear()
        result = await client.call_tool("job")
    assert (result.is_error, result.text) == (True, f"It did not finish within 0.01 seconds ({option}).")
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    remainder = "An async function is cancelled; a plain function continues in its thread."
    assert lines == [f"job did not finish within 0.01 seconds ({option}). {remainder}"]


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, DEFAULT_TIME_LIMIT),
        ({"timeout": None}, None),
        ({"timeout": 5}, TimeLimit(5)),
        ({"task": "optional"}, TimeLimit(3600.0, "ttl of TaskOptions")),
        ({"task": TaskOptions(ttl=7200)}, TimeLimit(7200, "ttl of TaskOptions")),
        ({"task": "optional", "timeout": None}, None),
    ],
)
def test_a_plain_call_of_a_tool_with_tasks_may_take_as_long_as_a_task(
    options: dict[str, Any], limit: TimeLimit | None
) -> None:
    mcp = MCPServer("limits")
    mcp.tool("job", **options)(wait_forever)
    tool = mcp._server.catalog.tools.get("job")
    assert tool is not None
    assert tool.time_limit == limit


def test_no_call_is_cut_before_clients_give_up_and_none_holds_its_place_forever() -> None:
    """The Python SDK reads for 300 seconds, Node's fetch waits 300 seconds, and the TypeScript SDK waits 60 seconds."""
    assert 300 < DEFAULT_TIME_LIMIT.seconds < 3600
