"""Orchestrations, activities and entities of Python apps, run by Microsoft's library for Durable Functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from funcmcp_host.durable.store import Store
from tests.functions_host.durable.orchestrations import Running, file_size_limit, python_app, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]
_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with running(python_app(tmp_path_factory.mktemp("durable"))) as app:
        yield app


@pytest.mark.parametrize(
    ("name", "value", "output"),
    [
        ("chain", ["Oslo", "Rom"], ["Hello Oslo!", "Hello Rom!"]),
        ("chain", [], []),
        ("fan-out", 40, 1560),
        ("parent", None, [["Hello a!"], [2, 6], True]),
        ("retry_child", None, True),
        ("count_down", 3, "zero"),
    ],
)
async def test_an_orchestration_runs_to_its_end(app: Running, name: str, value: Any, output: Any) -> None:
    assert await app.run(name, value) | {"custom": None} == {"status": "Completed", "output": output, "custom": None}


async def test_a_status_that_the_function_has_set_is_kept(app: Running) -> None:
    assert (await app.run("chain", ["a", "b"]))["custom"] == {"done": 2}
    assert await app.call("status", id="nothing") is None


async def test_a_failing_activity_fails_its_orchestration(app: Running) -> None:
    status = await app.run("failing")
    assert status["status"] == "Failed"
    assert status["custom"] == "before"
    assert status["output"].startswith("Orchestrator function 'failing' failed: Activity function 'fail' failed: ")
    assert "because" in status["output"]


async def test_activities_are_tried_again(app: Running, tmp_path: Path) -> None:
    assert (await app.run("retry", str(tmp_path / "attempts")))["output"] == [3, 8, 42]
    status = await app.run("retry_in_vain")
    assert status["output"][1] == 6
    assert "never" in status["output"][0]


async def test_events_timers_and_the_first_of_several_tasks(app: Running) -> None:
    instance = await app.start("first_of", id="approval-1")
    assert instance == "approval-1"
    await app.reach(instance, "Running")
    await app.call("manage", method="raise_event", arguments=[instance, "Other", {}])
    await app.call("manage", method="raise_event", arguments=[instance, "Approval", {"n": 4}])
    assert (await app.reach(instance, "Completed"))["output"] == ["approved", {"n": 4}, 8]


async def test_an_event_before_its_wait_is_not_lost(app: Running, tmp_path: Path) -> None:
    instance = await app.start("first_of")
    await app.call("manage", method="suspend", arguments=[instance, "wait"])
    assert (await app.call("status", id=instance))["status"] == "Suspended"
    await app.call("manage", method="raise_event", arguments=[instance, "Approval", {"n": 1}])
    await app.call("manage", method="resume", arguments=[instance, "go on"])
    assert (await app.reach(instance, "Completed"))["output"][1] == {"n": 1}


async def test_entities_keep_their_state(app: Running) -> None:
    assert await app.call("entity", key="shared") == [False, None]
    assert (await app.run("counting"))["output"] == [7, 14, "no such operation"]
    assert await app.call("entity", key="shared") == [True, 7]
    await app.call("entity", key="other", operation="add", input=3)
    await app.call("entity", key="other", operation="add", input=4)
    while await app.call("entity", key="other") != [True, 7]:
        pass
    await app.call("entity", key="other", operation="delete")
    while await app.call("entity", key="other") != [False, None]:
        pass


@_SLOW
async def test_an_instance_is_terminated_started_again_and_purged(app: Running, tmp_path: Path) -> None:
    file = tmp_path / "signal"
    instance = await app.start("waiting", str(file), id="waiting-1")
    with pytest.raises(AssertionError, match="An error occurred invoking 'start'"):
        await app.start("waiting", str(file), id=instance)
    await app.call("manage", method="terminate", arguments=[instance, "enough"])
    status = await app.call("status", id=instance)
    assert status == {"status": "Terminated", "output": "enough", "custom": None}
    assert await app.call("list", states=["Terminated"], prefix="waiting-") == [instance]
    file.touch()
    again = await app.call("manage", method="restart", arguments=[instance, False])
    assert again["id"] == instance
    assert (await app.reach(instance, "Completed"))["output"] == "seen"
    assert await app.call("manage", method="purge_instance_history", arguments=[instance]) == 1
    assert await app.call("status", id=instance) is None
    assert await app.call("manage", method="purge_instance_history", arguments=[instance]) == 0


@_SLOW
async def test_an_activity_runs_again_if_its_worker_ends(app: Running, tmp_path: Path) -> None:
    file = json.dumps(json.dumps(str(tmp_path / "crashed")))
    app.manage("POST", "orchestrators/crash/crash-1", file)
    await app.ended("crash-1")
    assert app.manage("GET", "instances/crash-1")["output"] == "survived"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("unsteady", "Orchestrator function 'unsteady' failed: The orchestrator function asks for other actions"),
        ("unknown_activity", "The function 'nothing' doesn't exist, is disabled, or is not an activity function."),
        ("web", "funcmcp host does not support call_http. Send the request in an activity function."),
    ],
)
async def test_what_can_not_run_says_why(app: Running, name: str, reason: str) -> None:
    status = await app.run(name)
    assert status["status"] == "Failed"
    assert reason in status["output"]


@_SLOW
async def test_orchestrations_go_on_after_a_restart(tmp_path: Path) -> None:
    folder, file = python_app(tmp_path), tmp_path / "signal"
    async with running(folder) as app:
        instance = await app.start("waiting", str(file))
        approval = await app.start("first_of")
        await app.reach(instance, "Running")
        await app.reach(approval, "Running")
        await app.call("entity", key="kept", operation="add", input=1)
    file.touch()
    async with running(folder) as app:
        assert (await app.reach(instance, "Completed"))["output"] == "seen"
        await app.call("manage", method="raise_event", arguments=[approval, "Approval", {"n": 2}])
        assert (await app.reach(approval, "Completed"))["output"][2] == 4
        while await app.call("entity", key="kept") != [True, 1]:
            pass


@_SLOW
async def test_instances_wait_for_a_full_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "signal"
    caplog.set_level("INFO")
    async with running(python_app(tmp_path)) as app:
        waiting = await app.start("waiting", str(file))
        await app.reach(waiting, "Running")
        await app.call("entity", key="kept", operation="add", input=1)
        with file_size_limit():
            reason = app.manage("POST", f"orchestrators/chain/{'b' * 9}", json.dumps(["x" * 100_000]))
            assert "Tests.sqlite of Durable Functions can't be used: " in reason
            file.touch()
            assert "can't be used" in app.manage("POST", f"instances/{waiting}/terminate")
        with pytest.raises(AssertionError, match="error occurred"):  # not an unknown instance
            await app.call("status", id=waiting)
        await app.until_stored(waiting)
        assert (await app.reach(waiting, "Completed"))["output"] == "seen"
        assert await app.call("status", id="b" * 9) is None
        while await app.call("entity", key="kept") != [True, 1]:
            pass
    errors = [record.getMessage() for record in caplog.records if record.getMessage().startswith("Durable")]
    assert len(errors) == 2
    assert errors[0].startswith("Durable Functions are stopped until their file can be used. The file ")
    assert errors[1].startswith("Durable Functions run again: the file ")


@_SLOW
async def test_a_turn_that_can_not_be_stored_is_taken_again(tmp_path: Path) -> None:
    file = tmp_path / "signal"
    async with running(python_app(tmp_path)) as app:
        waiting = await app.start("waiting", str(file))
        await app.reach(waiting, "Running")
        for number in range(20):  # the file has no room left for the end of the instance
            app.manage("POST", f"instances/{waiting}/raiseEvent/Unused{number}", json.dumps("x" * 10_000))
        with file_size_limit():
            file.touch()
            await app.ended(waiting)
        await app.until_stored(waiting)
        assert (await app.reach(waiting, "Completed"))["output"] == "seen"


@_SLOW
async def test_instances_go_on_when_another_process_leaves_the_file(tmp_path: Path) -> None:
    folder, file = python_app(tmp_path), tmp_path / "signal"
    async with running(folder) as app:
        waiting = await app.start("waiting", str(file))
        await app.reach(waiting, "Running")
    store = Store(next(folder.rglob("Tests.sqlite")))
    async with running(folder) as app:
        assert "Stop the other process" in app.manage("GET", f"instances/{waiting}")
        store.close()
        file.touch()
        await app.until_stored(waiting)
        assert (await app.reach(waiting, "Completed"))["output"] == "seen"
