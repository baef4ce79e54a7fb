"""Orchestrations, activities and entities of Node apps, run by Microsoft's library for Durable Functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from funcmcp_host.served import HostSettings
from tests.functions_host.durable.orchestrations import Running, node_app, running
from tests.nodejs import node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    folder = node_app(tmp_path_factory.mktemp("durable"))
    async with running(folder, HostSettings(node=str(node())), HUB="Tests") as app:
        yield app


@pytest.mark.parametrize(
    ("name", "value", "output"),
    [
        ("chain", ["Oslo", "Rom"], ["Hello Oslo!", "Hello Rom!"]),
        ("fanOut", 40, 1560),
        ("parent", None, [["Hello a!"], [2, 6], True]),
        ("countDown", 3, "zero"),
        ("counting", None, [7, 14]),
        ("describing", "text", {"kind": "string", "input": "text"}),
        ("describing", {"a": [1, None]}, {"kind": "object", "input": {"a": [1, None]}}),
    ],
)
async def test_an_orchestration_runs_to_its_end(app: Running, name: str, value: Any, output: Any) -> None:
    status = await app.run(name, value)
    assert (status["status"], status["output"]) == ("Completed", output)


async def test_activities_are_tried_again(app: Running, tmp_path: Path) -> None:
    assert (await app.run("retry", str(tmp_path / "attempts")))["output"] == [3, 42]
    status = await app.run("retryInVain")
    assert status["output"][1] == 6
    assert "never" in status["output"][0]


async def test_failures_and_critical_sections_say_why(app: Running) -> None:
    status = await app.run("failing")
    assert status["status"] == "Failed"
    assert status["custom"] == "before"
    assert "Activity function 'fail' failed: Error: because" in status["output"]
    assert "lock requires a Durable Functions extension" in (await app.run("locking"))["output"]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_events_timers_and_the_first_of_several_tasks(app: Running) -> None:
    instance = await app.start("firstOf", id="approval-1")
    await app.reach(instance, "Running")
    await app.call("manage", method="raiseEvent", arguments=[instance, "Approval", {"n": 4}])
    assert (await app.reach(instance, "Completed"))["output"] == ["approved", {"n": 4}, 8]
    second = await app.start("firstOf")
    await app.call("manage", method="terminate", arguments=[second, "enough"])
    assert (await app.reach(second, "Terminated"))["output"] == "enough"
    assert await app.call("manage", method="purgeInstanceHistory", arguments=[second]) == {"instancesDeleted": 1}
    assert await app.call("status", id=second) is None


async def test_entities_send_signals(app: Running) -> None:
    await app.call("entity", key="large", operation="add", input=101)
    while await app.call("entity", key="overflow") != [True, 1]:
        pass
    assert await app.call("entity", key="large") == [True, 101]
