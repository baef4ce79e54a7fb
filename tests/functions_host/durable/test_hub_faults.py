"""What a function answers that no library of Durable Functions would, and how much runs at once."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_host.bindings import DurableTrigger, Function
from funcmcp_host.durable.hub import DurableHub
from funcmcp_host.durable.instances import text_of_time
from funcmcp_host.durable.management import Management
from funcmcp_host.durable.store import Store, StoreError
from funcmcp_host.durable.turn import EntityRequest
from funcmcp_host.extras import Storage
from funcmcp_host.workers.worker import LanguageWorker, Outcome, Value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from funcmcp_host.workers.worker import FunctionInfo, Invocation

pytestmark = pytest.mark.asyncio


class Worker(LanguageWorker):
    """A worker whose functions are functions of the test."""

    def __init__(self, **functions: Callable[[str], Any]) -> None:
        self._functions = functions
        self.running = 0
        self.most = 0
        self.gate = asyncio.Event()
        self.gate.set()

    functions: Sequence[FunctionInfo] = ()
    http_url: str | None = None

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...

    async def invoke(self, invocation: Invocation, seconds: float | None) -> Outcome:
        assert seconds is None
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.gate.wait()
            answer = self._functions[invocation.function](invocation.inputs["context"].data)
        finally:
            self.running -= 1
        return Outcome(answer if isinstance(answer, Value) else Value("json", json.dumps(answer)), {})


@asynccontextmanager
async def hub_of(folder: Path, worker: Worker, **kinds: str) -> AsyncIterator[DurableHub]:
    hub = DurableHub(worker, folder / "hub.sqlite", seconds=None)
    functions = [
        Function(name, DurableTrigger(parameter="context", kind=kind, name=name), ()) for name, kind in kinds.items()
    ]
    assert hub.update(functions, Storage(folder, {}, uses_service=False)) == {}
    try:
        yield hub
    finally:
        await hub.aclose()


def state(*actions: Any, **members: Any) -> dict[str, Any]:
    return {"isDone": False, "actions": list(actions), "output": None, **members}


async def turns() -> None:
    """Let everything run that can."""
    for _ in range(300):
        await asyncio.sleep(0)


async def ended(hub: DurableHub, instance_id: str) -> tuple[str, Any]:
    for _ in range(2000):
        instance = hub.instance(instance_id)
        if instance is not None and instance.has_ended:
            return instance.status, instance.output
        await asyncio.sleep(0)
    raise AssertionError("It does not end.")


@pytest.mark.parametrize(
    "answer",
    [
        state({"actionType": 5}),
        state({"actionType": 5, "fireAt": "tomorrow"}),
        state({"actionType": 5, "fireAt": 5}),
        state({"actionType": 0}),
        state({"actionType": 0, "functionName": 5}),
        state({"actionType": 0, "functionName": ["a"]}),
        state({"actionType": 2}),
        state({"actionType": 2, "functionName": {"a": 1}}),
        state({"actionType": 2, "functionName": "f", "instanceId": ["a"]}),
        state({"actionType": 7}),
        state({"actionType": 7, "instanceId": "@a@b"}),
        state({"actionType": 9, "instanceId": "@a@b"}),
        state({"actionType": 11}),
        state({"actionType": 12, "compoundActions": 5}),
        state({"actionType": 1, "functionName": "a", "retryOptions": 5}),
        state({"actionType": 1, "functionName": "a", "retryOptions": {"maxNumberOfAttempts": "x"}}),
        state(
            {
                "actionType": 1,
                "functionName": "a",
                "retryOptions": {"firstRetryIntervalInMilliseconds": "x", "maxNumberOfAttempts": 3},
            }
        ),
        state(
            {
                "actionType": 1,
                "functionName": "a",
                "retryOptions": {"firstRetryIntervalInMilliseconds": 1e300, "maxNumberOfAttempts": 5},
            }
        ),
        Value("json", '{"actions": [' + "[" * 100000 + "]" * 100000 + "]}"),
        Value("json", '{"actions": [], "customStatus": ' + "[" * 990 + "]" * 990 + "}"),
        Value("json", "{"),
        Value("json", '{"actions": [], "isDone": true, "output": ' + "[" * 50000 + "]" * 50000 + "}"),
        Value("http", {"status": 200, "headers": [], "body": b""}),
    ],
    ids=range(23),
)
async def test_an_answer_that_can_not_be_carried_out_fails_its_orchestration(tmp_path: Path, answer: Any) -> None:
    worker = Worker(f=lambda _: answer, a=lambda _: Value("http", {"body": b""}))
    async with hub_of(tmp_path, worker, f="orchestration", a="activity") as hub:
        hub.start("f", None, instance_id="i")
        status, output = await ended(hub, "i")
        assert (status, output[:33]) == ("Failed", "Orchestrator function 'f' failed:"), output


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"results": 5},
        {"results": {"a": 1}},
        {"results": [5]},
        {"results": [{}], "entityExists": True, "entityState": {"a": 1}},
        {"results": [{}], "signals": 5},
        {"results": [{}], "signals": [5]},
        {"results": [{}], "signals": [{"target": "nobody"}]},
        {"results": [{}], "signals": [{"target": "@e@a", "name": "n", "input": "{"}]},
        Value("json", "["),
        Value("json", "[" * 100000),
        Value("http", {"body": b""}),
    ],
    ids=range(12),
)
async def test_an_answer_that_can_not_be_carried_out_fails_the_operation_and_not_the_next_one(
    tmp_path: Path, answer: Any
) -> None:
    answers = [answer, {"results": [{}], "entityExists": True, "entityState": "5"}]
    worker = Worker(e=lambda _: answers.pop(0))
    async with hub_of(tmp_path, worker, e="entity") as hub:
        hub.signal(EntityRequest("@e@a", "first"))
        hub.signal(EntityRequest("@e@a", "second"))
        await turns()
        record = hub.entity("@e@a")
        assert record is not None
        assert (record["state"], record["queue"], answers) == ("5", [], [])


async def test_many_instances_do_not_take_all_of_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp_host.durable.hub._PARALLEL", 3)
    worker = Worker(f=lambda _: state(isDone=True), e=lambda _: {"results": [{}]})
    worker.gate.clear()
    async with hub_of(tmp_path, worker, f="orchestration", e="entity") as hub:
        for number in range(50):
            hub.start("f", None, instance_id=f"i{number}")
            hub.signal(EntityRequest(f"@e@{number}", "go"))
        await turns()
        assert worker.running == 3
        worker.gate.set()
        for number in range(50):
            assert await ended(hub, f"i{number}") == ("Completed", None)
        assert worker.most == 3


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_all_work_goes_on_after_its_file_has_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unusable(*_: object) -> Store:
        raise StoreError("It is readonly.")

    entity = {"results": [{}], "entityExists": True, "entityState": "5"}
    worker = Worker(f=lambda _: state(isDone=True, output=1), e=lambda _: entity)
    async with hub_of(tmp_path, worker, f="orchestration", e="entity") as hub:
        hub._pause = 0.01
        hub.start("f", None, instance_id="i\x9b2J")
        hub.signal(EntityRequest("@e@a", "first"))
        hub._opened()._connection.execute("PRAGMA query_only = 1")
        monkeypatch.setattr("funcmcp_host.durable.hub.Store", unusable)
        await turns()
        assert caplog.text.count("Durable Functions are stopped until their file can be used. The file ") == 1
        assert "\x9b" not in caplog.text
        with pytest.raises(StoreError, match="readonly"):
            hub.instance("i\x9b2J")
        with pytest.raises(StoreError, match="readonly"):
            hub.signal(EntityRequest("@e@b", "lost"))
        monkeypatch.undo()
        while hub._fault is not None:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)
        assert await ended(hub, "i\x9b2J") == ("Completed", 1)
        await turns()
        record = hub.entity("@e@a")
        assert record is not None
        assert (record["state"], record["queue"]) == ("5", [])
        assert hub.entity("@e@b") is None


@pytest.mark.parametrize("path", ["orchestrators/f/i", "instances/w/raiseEvent/e", "entities/e/a?op=x"])
async def test_a_body_that_is_nested_too_deep_is_refused(tmp_path: Path, path: str) -> None:
    worker = Worker(f=lambda _: state(), e=lambda _: {"results": [{}]})
    async with hub_of(tmp_path, worker, f="orchestration", e="entity") as hub:
        management = Management(hub, hub_name="h", origin="http://localhost", key="")
        hub.start("f", None, instance_id="w")
        path, _, query = path.partition("?")
        for depth in (980, 1000, 100_000):
            reply = management.answer("POST", path, query, b"[" * depth + b"]" * depth)
            assert (reply.status, "nested" in str(reply.content)) == (400, True)
        assert hub.instance("i") is None


async def test_an_operation_waits_until_it_is_due_and_others_do_not_wait_for_it(tmp_path: Path) -> None:
    names: list[str] = []

    def operate(text: str) -> Any:
        names.append(json.loads(text)["batch"][0]["name"])
        return {"results": [{}]}

    soon = text_of_time(datetime.now(UTC) + timedelta(milliseconds=200))
    late = text_of_time(datetime.now(UTC) + timedelta(days=1))
    async with hub_of(tmp_path, Worker(e=operate), e="entity") as hub:
        hub.signal(EntityRequest("@e@a", "late", due=late))
        hub.signal(EntityRequest("@e@a", "soon", due=soon))
        hub.signal(EntityRequest("@e@a", "at once"))
        await turns()
    assert names == ["at once"]
    async with hub_of(tmp_path, Worker(e=operate), e="entity") as hub:
        hub.resume()
        while names != ["at once", "soon"]:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)
        record = hub.entity("@e@a") or hub._entity_record("@e@a")
        assert [request["operation"] for request in record["queue"]] == ["late"]


@pytest.mark.parametrize("ending", ["close", "kill"])
async def test_the_end_of_an_activity_is_kept_while_its_instance_is_suspended(ending: str, tmp_path: Path) -> None:
    calls: list[str] = []
    scheduled = {"actionType": 0, "functionName": "a", "input": None}

    def orchestrate(text: str) -> Any:
        worker.gate.clear()  # the activity waits for the test
        results = [known["Result"] for known in json.loads(text)["history"] if "Result" in known]
        return state(scheduled, isDone=bool(results), output=results)

    def act(_: str) -> int:
        calls.append("a")
        return 7

    worker = Worker(f=orchestrate, a=act)
    async with hub_of(tmp_path, worker, f="orchestration", a="activity") as hub:
        hub.start("f", None, instance_id="i")
        await turns()
        assert worker.running == 1
        hub.suspend(hub.instance("i"), is_suspended=True)  # type: ignore[arg-type]
        worker.gate.set()
        await turns()
        assert calls == ["a"]
        if ending == "kill":
            hub._save_inboxes = lambda: None  # type: ignore[method-assign]
    async with hub_of(tmp_path, worker, f="orchestration", a="activity") as hub:
        hub.resume()
        hub.suspend(hub.instance("i"), is_suspended=False)  # type: ignore[arg-type]
        assert await ended(hub, "i") == ("Completed", ["7"])
    assert calls == ["a"]


async def test_an_operation_that_comes_when_the_entity_has_just_finished_is_run(tmp_path: Path) -> None:
    names: list[str] = []

    def operate(text: str) -> Any:
        names.append(json.loads(text)["batch"][0]["name"])
        return {"results": [{}]}

    async with hub_of(tmp_path, Worker(e=operate), e="entity") as hub:
        hub.signal(EntityRequest("@e@a", "first"))
        task = hub._entities["@e@a"]
        while not task.done():
            await asyncio.sleep(0)
            if task.done():
                hub.signal(EntityRequest("@e@a", "second"))
        await turns()
        assert names == ["first", "second"]
