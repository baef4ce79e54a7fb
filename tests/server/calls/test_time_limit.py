"""The time limit of a call, and the option that its error and the log name."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from funcmcp import Context, MCPServer, ToolError
from funcmcp._server.calls.feature import DEFAULT_TIME_LIMIT, TimeLimit
from funcmcp.client import Client
from funcmcp.tasks import TaskOptions
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from typing import Any

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


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


async def test_a_call_that_is_extended_before_its_first_wait_goes_on() -> None:
    mcp = MCPServer("limits")

    @mcp.tool(timeout=0.001, max_timeout=PATIENCE)
    async def job(context: Context) -> str:
        await context.extend(PATIENCE)
        await asyncio.sleep(0.01)
        return "done"

    async with Client(mcp) as client:
        assert (await client.call_tool("job")).text == "done"


async def test_a_call_that_is_extended_while_it_waits_goes_on() -> None:
    mcp = MCPServer("limits")

    @mcp.tool(timeout=PATIENCE, max_timeout=2 * PATIENCE)
    async def job(context: Context) -> float:
        await asyncio.sleep(0)
        return await context.extend(1.5 * PATIENCE)

    async with Client(mcp) as client:
        result = await client.call_tool("job")
    assert PATIENCE < result.structured_content["result"] < 1.5 * PATIENCE + 1  # a float, with its rounding


async def test_the_error_of_an_extended_call_names_the_extended_time(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("limits")

    @mcp.tool(timeout=0.001, max_timeout=0.1)
    async def job(context: Context) -> None:
        await context.extend(PATIENCE)
        await asyncio.Event().wait()

    async with Client(mcp) as client:
        result = await client.call_tool("job")
    assert result.text == "It did not finish within 0.1 seconds (max_timeout=)."
    assert "job did not finish within 0.1 seconds (max_timeout=)" in caplog.text


async def test_only_another_failure_of_a_call_replaces_the_error_of_its_time_limit() -> None:
    """A call that its time limit cancels may return, raise the cancellation in another form, or fail while it ends."""
    mcp = MCPServer("limits")
    limit = "It did not finish within 0.001 seconds (timeout=)."
    ends: dict[str, tuple[BaseException, str]] = {
        "cancelled": (asyncio.CancelledError(), limit),
        "group": (BaseExceptionGroup("both", [asyncio.CancelledError()]), limit),
        "timed out": (TimeoutError(), limit),
        "failed": (ToolError("The roll-back failed."), "The roll-back failed."),
        "failed twice": (ExceptionGroup("both", [ToolError("The roll-back failed.")]), "The roll-back failed."),
    }

    @mcp.tool(timeout=0.001, max_timeout=PATIENCE)
    async def job(end: str, context: Context) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await context.extend(PATIENCE)  # too late
        error, _ = ends[end]
        raise error

    @mcp.tool(timeout=0.001)
    async def stubborn() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "done"

    async with Client(mcp) as client:
        texts = {end: (await client.call_tool("job", {"end": end})).text for end in ends}
        assert (await client.call_tool("stubborn")).text == limit
    assert texts == {end: text for end, (_, text) in ends.items()}


async def test_a_call_that_is_also_cancelled_from_outside_when_its_time_is_up_is_cancelled() -> None:
    mcp = MCPServer("limits")

    @mcp.tool(timeout=0.001)
    async def job() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            calling.cancel()
            raise

    calling = asyncio.ensure_future(mcp.call_tool("job"))
    with pytest.raises(asyncio.CancelledError):
        await calling


async def test_a_mounted_tool_extends_the_time_limit_of_the_server_above() -> None:
    async def passes_on(context: Any, call_next: Any) -> Any:
        return await call_next(context)

    mounted, above = MCPServer("mounted", middleware=[passes_on]), MCPServer("above")

    @mounted.tool(timeout=0.001, max_timeout=PATIENCE)
    async def job(context: Context) -> str:
        await context.extend(PATIENCE / 2)
        await context.extend(PATIENCE / 4)
        await asyncio.sleep(0.01)
        return "done"

    above.mount(mounted)
    async with Client(above) as client:
        assert (await client.call_tool("job")).text == "done"


async def test_a_run_of_a_task_is_extended_up_to_the_ttl_of_the_task() -> None:
    mcp = MCPServer("limits")

    @mcp.tool(task=TaskOptions(ttl=600), timeout=60, max_timeout=3600)
    async def job(context: Context) -> float:
        return await context.extend(3600)

    @mcp.tool(task=TaskOptions(ttl=600))
    async def unlimited(context: Context) -> float:
        return await context.extend(60)

    async with Client(mcp) as client:
        for tool in ("job", "unlimited"):
            result = await asyncio.wait_for(client.call_tool(tool), PATIENCE)
            assert 500 < result.structured_content["result"] < 601
