"""Tasks of an upstream, in the four pairs of eras: they are tasks of this server for its clients.

An upstream of 2026-07-28 decides for each call whether it becomes a task. A client of 2025-11-25 would have to know it
before the call, so its calls of such an upstream are no tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.client import TaskCancelledError
from tests.upstreams.everything import ERAS

if TYPE_CHECKING:
    from tests.upstreams.conftest import Pair


async def connected(pair: Pair) -> None:
    """Let this server know its tools, so that it declares tasks to a client that then connects."""
    async with pair.connect() as client:
        await client.list_tools()


def has_tasks(pair: Pair) -> bool:
    """Return whether calls become tasks."""
    return (pair.client_revision, pair.upstream_revision) != (ERAS["handshake"], ERAS["per-request"])


async def test_a_call_is_a_task_of_both_servers(pair: Pair) -> None:
    await connected(pair)
    async with pair.connect() as client:
        task = await client.start_tool("up_report", {"topic": "tea"})
        assert has_tasks(pair) is (task.task_id is not None)
        assert (await task.result()).text == "All about tea"
    assert pair.events.get_nowait() == "report tea"
    assert pair.events.empty()


async def test_a_task_asks_the_client(pair: Pair) -> None:
    async def elicit(params: dict[str, Any]) -> dict[str, Any]:
        (name,) = params["requestedSchema"]["properties"]
        return {"action": "accept", "content": {name: {"Your name?": "Ada", "Your age?": 36}[params["message"]]}}

    await connected(pair)
    async with pair.connect(elicit=elicit) as client:
        task = await client.start_tool("up_survey")
        assert has_tasks(pair) is (task.task_id is not None)
        assert (await task.result()).text == "Ada 36"


async def test_a_cancelled_task_is_cancelled_at_the_upstream(pair: Pair) -> None:
    if not has_tasks(pair):
        pytest.skip("The call is no task.")
    await connected(pair)
    async with pair.connect() as client:
        task = await client.start_tool("up_endless")
        await pair.wait_for("began")
        await task.cancel()
        await pair.wait_for("cancelled")
        with pytest.raises(TaskCancelledError):
            await task.result()
