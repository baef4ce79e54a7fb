"""Tasks over HTTP and hostile clients: too many, too fast, too large, at the wrong time."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp import Context, HTTPOptions, MCPServer, ToolError
from funcmcp._protocol.errors import MCPError
from funcmcp._state.rates import MemoryRates
from funcmcp._state.tasks.record import TaskKey
from funcmcp.auth import APIKeys, Auth
from funcmcp.tasks import MemoryTasks, TaskLimits
from tests.clock import Clock
from tests.instances import Caller, per_request
from tests.patience import PATIENCE
from tests.server.task_parts import DECLARED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._state.tasks.record import TaskRecord

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")
_SLOW = pytest.mark.slow("Many calls take half a second or longer.")

URL = "http://127.0.0.1:8000/mcp"
ALICE, BOB = "kq3vJ8wZ1xP5sT7u", "mB4nY6tR2eW9aQ0z"
ENDED = ("completed", "failed", "cancelled")


class TaskCaller(Caller):
    """A client with tasks."""

    async def send(self, method: str, **params: Any) -> httpx2.Response:
        """Send a request and return the response."""
        message, headers = per_request(method, **params)
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = DECLARED
        return await self.post(URL, message, **headers)

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its result."""
        response = await self.send(method, **params)
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()["result"]
        return result

    async def create(self, name: str, **arguments: Any) -> str:
        """Call a tool as a task; return the id of the task."""
        task_id: str = (await self.result("tools/call", name=name, arguments=arguments))["taskId"]
        return task_id

    async def end_of(self, task_id: str) -> dict[str, Any]:
        """Return a task that has ended."""
        async with asyncio.timeout(PATIENCE * 2):
            while True:
                task = await self.result("tasks/get", taskId=task_id)
                if task["status"] in ENDED:
                    return task
                await asyncio.sleep(0.005)


def objects() -> int:
    """Return how many objects there are that the garbage collector knows."""
    gc.collect()
    return len(gc.get_objects())


@asynccontextmanager
async def serving(mcp: MCPServer) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve in memory until the block ends; yield a connection."""
    transport = httpx2.ASGITransport(app=mcp)
    async with mcp.lifespan(), httpx2.AsyncClient(transport=transport, trust_env=False) as http:
        yield http


def make_server(**options: Any) -> MCPServer:
    """Return a server with a tool that waits until its task is cancelled, and one that returns its arguments."""
    mcp = MCPServer("tasks", **options)

    @mcp.tool(task="optional")
    async def wait() -> None:
        await asyncio.Event().wait()

    @mcp.tool(task="optional")
    async def echo(text: str) -> str:
        return text

    return mcp


@_SLOW
async def test_a_thousand_calls_of_one_caller_make_a_hundred_tasks_and_others_are_served() -> None:
    auth = Auth(APIKeys({"alice": ALICE, "bob": BOB}))
    async with serving(make_server(auth=auth, tasks=MemoryTasks(limits=TaskLimits(), concurrency=200))) as http:
        alice, bob = TaskCaller(http, {"x-api-key": ALICE}), TaskCaller(http, {"x-api-key": BOB})
        created = [await alice.create("wait") for _ in range(100)]
        refused = await alice.send("tools/call", name="wait", arguments={})
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, -32603)
        assert int(refused.headers["retry-after"]) == refused.json()["error"]["data"]["retryAfter"] == 60
        assert refused.json()["error"]["message"] == "You have too many tasks that have not ended."
        before = objects()
        for _ in range(900):
            assert (await alice.send("tools/call", name="wait", arguments={})).status_code == 429
        assert objects() - before < 200
        assert (await bob.end_of(await bob.create("echo", text="served")))["status"] == "completed"
        for task_id in created:
            await alice.result("tasks/cancel", taskId=task_id)
        await alice.create("echo", text="there is room again")


async def test_an_unknown_id_and_a_foreign_one_have_the_same_response_from_the_same_steps() -> None:
    store = MemoryTasks()
    mcp = make_server(auth=Auth(APIKeys({"alice": ALICE, "bob": BOB})), tasks=store)
    reads: list[TaskKey] = []
    read = store.read

    async def note_read(key: TaskKey) -> TaskRecord | None:
        reads.append(key)
        return await read(key)

    store.read = note_read  # type: ignore[method-assign]
    async with serving(mcp) as http:
        alice, bob = TaskCaller(http, {"x-api-key": ALICE}), TaskCaller(http, {"x-api-key": BOB})
        foreign, unknown = await alice.create("wait"), secrets.token_urlsafe(33)
        methods: dict[str, dict[str, Any]] = {
            "tasks/get": {},
            "tasks/cancel": {},
            "tasks/update": {"inputResponses": {}},
        }
        for method, params in methods.items():
            reads.clear()
            responses = [await bob.send(method, taskId=task_id, **params) for task_id in (foreign, unknown)]
            first, second = responses
            assert (first.status_code, first.content) == (second.status_code, second.content)
            assert first.json()["error"] == {"code": -32602, "message": "Task not found"}
            assert first.headers.multi_items() == second.headers.multi_items()
            owner = reads[0].owner
            assert reads == [TaskKey(owner, foreign), TaskKey(owner, unknown)]
        assert (await alice.result("tasks/get", taskId=foreign))["status"] == "working"
        assert reads[-1].owner != owner


async def test_a_lone_surrogate_is_refused_in_arguments_and_replaced_in_what_a_task_sends() -> None:
    mcp = make_server()

    @mcp.tool(task="optional")
    async def produce() -> str:
        return "\ud800"

    @mcp.tool(task="optional")
    async def report(context: Context) -> str:
        await context.report_progress(1, message="\ud800")
        return "reported"

    @mcp.tool(task="optional")
    async def refuse() -> str:
        raise ToolError("\ud800")

    @mcp.tool(task="optional")
    async def break_protocol() -> str:
        raise MCPError(-1, "\ud800", {"text": "\ud800"})

    async with serving(mcp) as http:
        caller = TaskCaller(http)
        message, headers = per_request("tools/call", name="echo", arguments={"text": "\ud800"})
        headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        response = await http.post(URL, content=json.dumps(message), headers=headers)
        assert (response.status_code, response.json()["error"]["code"]) == (400, -32700)
        assert response.json()["id"] == message["id"]
        for name, text in {"produce": "\ufffd", "report": "reported", "refuse": "\ufffd"}.items():
            task = await caller.end_of(await caller.create(name))
            assert (task["status"], task["result"].get("isError", False)) == ("completed", name == "refuse")
            assert task["result"]["content"][0]["text"] == text
        task = await caller.end_of(await caller.create("break_protocol"))
        assert (task["status"], task["statusMessage"]) == ("failed", "\ufffd")
        assert task["error"] == {"code": -1, "message": "\ufffd", "data": {"text": "\ufffd"}}


async def test_a_tool_that_calls_itself_as_a_task_ends_with_all_its_calls() -> None:
    mcp = MCPServer("tasks")
    callers: list[TaskCaller] = []

    @mcp.tool(task="optional")
    async def count(number: int, context: Context) -> int:
        assert context.task_id is not None
        if number == 0:
            return 0
        task = await callers[0].end_of(await callers[0].create("count", number=number - 1))
        return 1 + int(task["result"]["structuredContent"]["result"])

    async with serving(mcp) as http:
        callers.append(TaskCaller(http))
        task = await callers[0].end_of(await callers[0].create("count", number=7))  # eight of ten places
        assert task["result"]["structuredContent"] == {"result": 7}


@_SLOW
async def test_a_tool_that_calls_itself_without_end_is_stopped_by_the_limit_of_its_caller() -> None:
    mcp = MCPServer("tasks", auth=Auth(APIKeys({"alice": ALICE, "bob": BOB})), tasks=MemoryTasks(limits=TaskLimits()))
    callers: list[TaskCaller] = []
    refused: list[httpx2.Response] = []

    @mcp.tool(task="optional")
    async def multiply() -> None:
        for _ in range(50):
            response = await callers[0].send("tools/call", name="multiply", arguments={})
            if response.status_code != 200:
                refused.append(response)

    @mcp.tool(task="optional")
    async def echo(text: str) -> str:
        return text

    async with serving(mcp) as http:
        alice, bob = TaskCaller(http, {"x-api-key": ALICE}), TaskCaller(http, {"x-api-key": BOB})
        callers.append(alice)
        first = await alice.create("multiply")
        assert (await bob.end_of(await bob.create("echo", text="served")))["status"] == "completed"
        assert (await alice.end_of(first))["status"] == "completed"
        async with asyncio.timeout(PATIENCE * 2):
            while len(refused) < 100:  # noqa: ASYNC110 - the tool has no event
                await asyncio.sleep(0.01)
    assert {response.status_code for response in refused} == {429}


@_SLOW
async def test_a_client_that_polls_too_fast_is_refused_and_others_are_not() -> None:
    clock = Clock()
    auth = Auth(APIKeys({"alice": ALICE, "bob": BOB}))
    mcp = make_server(auth=auth, http=HTTPOptions(rates=MemoryRates(8, 20, clock=clock)))
    async with serving(mcp) as http:
        alice, bob = TaskCaller(http, {"x-api-key": ALICE}), TaskCaller(http, {"x-api-key": BOB})
        task_id = await alice.create("wait")
        responses = [await alice.send("tasks/get", taskId=task_id) for _ in range(1000)]
        assert [response.status_code for response in responses] == [200] * 19 + [429] * 981
        assert responses[-1].headers["retry-after"] == "1"
        assert (await bob.send("tools/call", name="echo", arguments={"text": "x"})).status_code == 200
        clock.now += 0.125
        assert (await alice.result("tasks/get", taskId=task_id))["status"] == "working"


@_SLOW
async def test_one_anonymous_connection_fills_its_share_of_the_room_for_arguments_and_results_and_no_more() -> None:
    store = MemoryTasks(limits=TaskLimits(bytes_per_principal=4 * 1024 * 1024))
    mcp = MCPServer("tasks", tasks=store)

    @mcp.tool(task="optional")
    async def fill(characters: int) -> str:
        return "x" * characters

    @mcp.tool(task="optional")
    async def wait(text: str) -> None:
        await asyncio.Event().wait()

    async with serving(mcp) as http:
        caller = TaskCaller(http)
        ended = [await caller.end_of(await caller.create("fill", characters=1_000_000)) for _ in range(3)]
        assert [task["status"] for task in ended] == ["completed"] * 3
        responses = [await caller.send("tools/call", name="wait", arguments={"text": "x" * 900_000}) for _ in range(6)]
        assert [response.status_code for response in responses] == [200, 200, 200, 200, 429, 429]
        gone = await caller.send("tasks/get", taskId=ended[0]["taskId"])
        assert gone.json()["error"]["message"] == "Task not found", "tasks that have ended make room"
        assert int(responses[4].headers["retry-after"]) == 60
        assert responses[4].json()["error"] == {
            "code": -32603,
            "message": "The arguments and results of your tasks have too many bytes.",
            "data": {"retryAfter": int(responses[4].headers["retry-after"])},
        }
        failed = await caller.end_of(await caller.create("fill", characters=1_000_000))
        assert failed["status"] == "failed"
        assert failed["error"]["message"].startswith("The tool ran. There is no room for its result of 1000")


async def test_a_result_of_four_mebibytes_fits_and_one_byte_more_does_not() -> None:
    limit = TaskLimits().result_bytes
    mcp = MCPServer("tasks")

    @mcp.tool(task="optional")
    async def fill(characters: int) -> str:
        return "x" * characters

    async with serving(mcp) as http:
        caller = TaskCaller(http)
        task = await caller.end_of(await caller.create("fill", characters=0))
        size = len(json.dumps(task["result"], separators=(",", ":")))
        task = await caller.end_of(await caller.create("fill", characters=limit - size))
        assert len(task["result"]["content"][0]["text"]) == limit - size
        task = await caller.end_of(await caller.create("fill", characters=limit - size + 1))
        assert task["status"] == "completed"
        assert task["result"]["isError"] is True
        assert task["result"]["content"][0]["text"] == f"The result has {limit + 1} bytes; {limit} fit."


@_SLOW
async def test_of_many_cancellations_and_the_end_of_a_run_one_wins_and_stays() -> None:
    mcp = MCPServer("tasks")

    @mcp.tool(task="optional")
    async def work() -> str:
        await asyncio.sleep(0.003)
        return "done"

    statuses = set()
    async with serving(mcp) as http:
        caller = TaskCaller(http)
        for number in range(40):
            task_id = await caller.create("work")
            await asyncio.sleep(number / 10_000)
            answers = await asyncio.gather(*(caller.result("tasks/cancel", taskId=task_id) for _ in range(20)))
            assert [answer["resultType"] for answer in answers] == ["complete"] * 20
            task = await caller.end_of(task_id)
            statuses.add(task["status"])
            assert ("result" in task) == (task["status"] == "completed")
            await asyncio.sleep(0.005)
            assert await caller.result("tasks/get", taskId=task_id) == task
    assert statuses <= {"completed", "cancelled"}
    assert "cancelled" in statuses


async def test_a_tool_that_cancels_its_own_task_is_cancelled() -> None:
    mcp = MCPServer("tasks")
    callers: list[TaskCaller] = []

    @mcp.tool(task="optional")
    async def cancel_itself(context: Context) -> str:
        assert context.task_id is not None
        await callers[0].result("tasks/cancel", taskId=context.task_id)
        await asyncio.sleep(0)
        return "still here"

    async with serving(mcp) as http:
        callers.append(TaskCaller(http))
        task = await callers[0].end_of(await callers[0].create("cancel_itself"))
        assert (task["status"], "result" in task) == ("cancelled", False)


async def test_no_log_has_an_id_an_argument_or_the_text_of_an_expected_error(caplog: pytest.LogCaptureFixture) -> None:
    mcp = make_server()
    secret = secrets.token_hex(16)

    @mcp.tool(task="optional")
    async def refuse(text: str) -> None:
        raise ToolError(text)

    @mcp.tool(task="optional")
    async def break_protocol(text: str) -> None:
        raise MCPError(-1, text, {"text": text})

    caplog.set_level(logging.DEBUG)
    async with serving(mcp) as http:
        caller = TaskCaller(http)
        tasks = [await caller.create(name, text=secret) for name in ("echo", "refuse", "break_protocol")]
        for task_id in tasks:
            assert secret in json.dumps(await caller.end_of(task_id))
        waiting = await caller.create("wait")
        for task_id in (waiting, "x" * 44):
            await caller.send("tasks/cancel", taskId=task_id)
            await caller.send("tasks/get", taskId=task_id)
    logged = "\n".join(f"{record.getMessage()} {record.exc_text} {record.__dict__}" for record in ours(caplog.records))
    for text in (secret, *tasks, waiting, "x" * 44):
        assert text not in logged


def ours(records: list[logging.LogRecord]) -> list[logging.LogRecord]:
    """Return the records of funcmcp; the client of the test logs what it sends."""
    return [record for record in records if record.name.startswith("funcmcp")]
