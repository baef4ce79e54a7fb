"""Tasks in a real Redis, run by several servers, while processes and Redis fail."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp import MCPServer
from funcmcp._adapters.redis import tasks as redis_tasks
from funcmcp._adapters.redis.link import RedisLink
from funcmcp._server.tasks import worker
from funcmcp._serving.composition import runtime_of
from funcmcp.tasks import RedisTasks
from tests.cluster.task_worker import NAME, Ledger, make_server
from tests.instances import Caller, per_request
from tests.patience import PATIENCE
from tests.redis_server import redis_server
from tests.server.task_parts import DECLARED, ask, create, get
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from funcmcp._server.dispatch import Server
    from tests.redis_server import RedisServer

pytestmark = pytest.mark.slow("Several processes fail and start again, behind a proxy or a store.")

TASKS = 40
STOPPED = "The server was stopped while the tool ran. Part of its work may be done."
ENDED = ("completed", "failed", "cancelled")


@pytest.fixture(scope="module")
def running_redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
async def redis(running_redis: RedisServer) -> RedisServer:
    """An empty Redis, which does not wait for the disk."""
    link = RedisLink(running_redis.url, timeout=10.0)
    await link.do(lambda client: client.config_set("appendonly", "no"))
    await link.do(lambda client: client.flushall())
    await link.aclose()
    return running_redis


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "runs")


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_tasks, "_WAIT", 0.1)
    for name in ("_AWAY_PAUSE", "_UNKNOWN_DELAY"):
        monkeypatch.setattr(worker, name, 0.1)


@asynccontextmanager
async def process(redis: RedisServer, ledger: Ledger, kind: str = "work") -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process of `tests.cluster.task_worker` until the block ends."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.cluster.task_worker", redis.url, str(ledger.path), kind),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        if kind != "create":
            assert child.stdout is not None
            async with asyncio.timeout(PATIENCE):
                assert await child.stdout.readline() == b"ready\n"
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()  # waits for the end of the process and of its pipe


@asynccontextmanager
async def serving(mcp: MCPServer) -> AsyncIterator[Server]:
    """Serve in this process until the block ends."""
    async with mcp.lifespan():
        yield runtime_of(mcp).server


async def end_of(server: Server, task_id: str) -> dict[str, Any]:
    """Return a task that has ended."""
    async with asyncio.timeout(PATIENCE):
        while True:
            task = await get(server, task_id)
            if task["status"] in ENDED:
                return task
            await asyncio.sleep(0.02)


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if condition():
                return
            await asyncio.sleep(0.02)


async def until_runs(ledger: Ledger, count: int) -> None:
    """Wait until so many runs have begun."""
    await wait_until(lambda: ledger.runs().total() >= count)


def runs_of(server: Server) -> dict[Any, Any]:
    """Return the runs of tasks in this process."""
    assert server.tasks is not None
    assert server.tasks._worker is not None
    return server.tasks._worker._runs


def text_of(task: dict[str, Any]) -> str:
    text: str = task["result"]["content"][0]["text"]
    return text


async def test_tasks_of_a_killed_process_run_again_only_if_they_may_and_each_ends_once(
    redis: RedisServer, ledger: Ledger
) -> None:
    async with (
        serving(make_server(redis.url, ledger.path, concurrency=0)) as server,
        process(redis, ledger) as killed,
        process(redis, ledger),
    ):
        tools = {await create(server, name): name for name in ["again", "once"] * (TASKS // 2)}
        await wait_until(lambda: {tools[task_id] for task_id in ledger.running(killed.pid)} == {"again", "once"})
        killed.kill()
        await killed.wait()
        ended = {task_id: await end_of(server, task_id) for task_id in tools}
        assert {task_id: await get(server, task_id) for task_id in tools} == ended
    counts = ledger.runs()
    failed = {task_id for task_id, task in ended.items() if task["status"] == "failed"}
    assert failed
    assert {tools[task_id] for task_id in failed} == {"once"}
    assert {ended[task_id]["error"]["message"] for task_id in failed} == {STOPPED}
    assert all(counts[task_id] <= 1 for task_id, name in tools.items() if name == "once")
    again = {task_id for task_id, count in counts.items() if count == 2}
    assert again
    assert {tools[task_id] for task_id in again} == {"again"}


async def test_a_process_that_was_suspended_for_longer_than_the_lease_changes_nothing(
    redis: RedisServer, ledger: Ledger
) -> None:
    async with process(redis, ledger) as suspended:
        async with serving(make_server(redis.url, ledger.path, concurrency=0)) as client:
            again, once = await create(client, "again"), await create(client, "once")
            await until_runs(ledger, 2)
        suspended.send_signal(signal.SIGSTOP)
        async with serving(make_server(redis.url, ledger.path, concurrency=10)) as server:
            ended = {task_id: await end_of(server, task_id) for task_id in (again, once)}
            suspended.send_signal(signal.SIGCONT)
            await wait_until(lambda: sum(step.process == suspended.pid for step in ledger.steps()) >= 4)
            suspended.send_signal(signal.SIGTERM)  # it stores what its runs returned, as far as it may
            await suspended.wait()
            assert {task_id: await get(server, task_id) for task_id in ended} == ended
    assert text_of(ended[again]) == str(os.getpid())
    assert ended[once]["error"]["message"] == STOPPED
    assert ledger.runs() == {again: 2, once: 1}


async def test_a_process_that_stalls_for_ten_seconds_loses_nothing_and_nothing_starts_twice(
    redis: RedisServer, ledger: Ledger
) -> None:
    """With the usual lease, while another process looks for tasks whose leases have lapsed."""
    stalled_kind = "work-with-usual-lease"
    async with process(redis, ledger, stalled_kind) as stalled:
        link = RedisLink(redis.url, timeout=10.0)
        stream = f"funcmcp:{NAME}:tasks:due"

        async def is_renewed() -> bool:
            entries = await link.do(lambda client: client.xpending_range(stream, "workers", "-", "+", 100))
            return len(entries) == 4 and all(entry["time_since_delivered"] < 1000 for entry in entries)

        async with serving(make_server(redis.url, ledger.path, concurrency=0)) as client:
            tasks = [await create(client, name, {"seconds": 6.0}) for name in ["again", "once"] * 2]
            await until_runs(ledger, 4)
            async with asyncio.timeout(PATIENCE):
                while not await is_renewed():
                    pass
            stalled.send_signal(signal.SIGSTOP)
            async with process(redis, ledger, stalled_kind):
                await asyncio.sleep(10)
                stalled.send_signal(signal.SIGCONT)
                processes = {text_of(await end_of(client, task_id)) for task_id in tasks}
        await link.aclose()
    assert processes == {str(stalled.pid)}
    assert ledger.runs() == dict.fromkeys(tasks, 1)


async def test_a_process_that_ends_in_the_ordinary_way_finishes_its_tasks_and_leaves_the_others(
    redis: RedisServer, ledger: Ledger
) -> None:
    async with process(redis, ledger) as ending:
        async with serving(make_server(redis.url, ledger.path, concurrency=0)) as client:
            tasks = [await create(client, "once", {"seconds": 0.3}) for _ in range(20)]
            await until_runs(ledger, 10)
        ending.send_signal(signal.SIGTERM)
        assert await ending.wait() == 0
        async with serving(make_server(redis.url, ledger.path, concurrency=10)) as server:
            processes = [text_of(await end_of(server, task_id)) for task_id in tasks]
    assert set(processes) == {str(ending.pid), str(os.getpid())}
    assert ledger.runs() == dict.fromkeys(tasks, 1)


async def test_a_task_whose_creator_dies_before_it_answers_runs_once(redis: RedisServer, ledger: Ledger) -> None:
    async with process(redis, ledger, "create") as creator:
        assert await creator.wait() == -signal.SIGKILL
    async with serving(make_server(redis.url, ledger.path, concurrency=10)) as server:
        await until_runs(ledger, 1)
        (task_id,) = ledger.runs()
        assert (await end_of(server, task_id))["status"] == "completed"
    assert ledger.runs() == {task_id: 1}


async def test_instances_without_a_new_tool_leave_its_tasks_to_those_that_have_it(
    redis: RedisServer, ledger: Ledger
) -> None:
    def make(*, new: bool, concurrency: int) -> MCPServer:
        mcp = make_server(redis.url, ledger.path, concurrency=concurrency)
        if new:
            mcp.tool("new", task="optional")(lambda: "new")
        return mcp

    async with serving(make(new=True, concurrency=0)) as client:
        async with serving(make(new=False, concurrency=10)):
            tasks = [await create(client, "new") for _ in range(5)]
            await asyncio.sleep(0.3)  # the old instance has had each of them
            assert {(await get(client, task_id))["status"] for task_id in tasks} == {"working"}
        # While both instances run, it is chance which of them gets a task, and after six deliveries it fails.
        async with serving(make(new=True, concurrency=10)) as server:
            assert [text_of(await end_of(server, task_id)) for task_id in tasks] == ["new"] * 5


async def test_servers_with_other_names_never_run_or_find_each_others_tasks(redis: RedisServer) -> None:
    def make(name: str) -> MCPServer:
        mcp = MCPServer(name, tasks=RedisTasks(RedisLink(redis.url, timeout=5.0)))
        mcp.tool("who", task="optional")(lambda: name)
        return mcp

    async with serving(make("one")) as one, serving(make("one:tasks")) as two:
        servers = {"one": one, "one:tasks": two}
        tasks = [(name, await create(server, "who")) for _ in range(50) for name, server in servers.items()]
        assert [(text_of(await end_of(servers[name], task_id)), task_id) for name, task_id in tasks] == tasks
        for name, task_id in tasks[:10]:
            other = two if servers[name] is one else one
            message = await ask(other, "tasks/get", {"taskId": task_id})
            assert message["error"]["message"] == "Task not found"


async def test_arguments_and_results_pass_through_redis_unchanged(redis: RedisServer) -> None:
    value = {"empty": [], "object": {}, "large": 2**63, "small": 1e-320, "text": "\x00 \u2028 ä 😀", "none": None}
    mcp = MCPServer("echo", tasks=RedisTasks(RedisLink(redis.url, timeout=5.0)))

    @mcp.tool(task="optional")
    async def echo(value: dict[str, Any]) -> dict[str, Any]:
        return {"value": value, "text": repr(value)}

    async with serving(mcp) as server:
        task = await end_of(server, await create(server, "echo", {"value": value}))
    assert task["result"]["structuredContent"] == {"value": value, "text": repr(value)}


async def test_a_task_is_created_polled_run_and_cancelled_at_different_instances(
    redis: RedisServer, ledger: Ledger
) -> None:
    created, running, other = (make_server(redis.url, ledger.path, concurrency=count) for count in (0, 10, 0))
    async with serving(created) as first, serving(running) as second, serving(other) as third:
        task_id = await create(first, "again", {"seconds": 60})
        await until_runs(ledger, 1)
        assert (await get(second, task_id))["status"] == "working"
        assert "result" in await ask(third, "tasks/cancel", {"taskId": task_id})
        assert (await get(first, task_id))["status"] == "cancelled"
        # Without a bus, the next renewal stops the run. It would take a minute.
        await wait_until(lambda: not runs_of(second))
    assert [step.kind for step in ledger.steps()] == ["begin"]


async def post(caller: Caller, method: str, **params: Any) -> httpx2.Response:
    """Send a request of a client with tasks."""
    message, headers = per_request(method, **params)
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = DECLARED
    return await caller.post("http://127.0.0.1:8000/mcp", message, **headers)


async def test_while_redis_is_away_requests_are_refused_and_an_outcome_waits_for_it(ledger: Ledger) -> None:
    with redis_server() as redis:
        mcp = make_server(redis.url, ledger.path, concurrency=10, lease=30.0)
        transport = httpx2.ASGITransport(app=mcp)
        async with serving(mcp) as server, httpx2.AsyncClient(transport=transport, trust_env=False) as http:
            caller = Caller(http)
            task_id = await create(server, "once")
            await until_runs(ledger, 1)
            redis.stop(signal.SIGKILL)
            calls: dict[str, dict[str, Any]] = {
                "tools/call": {"name": "once", "arguments": {}},
                "tasks/get": {"taskId": task_id},
                "tasks/update": {"taskId": task_id, "inputResponses": {}},
                "tasks/cancel": {"taskId": task_id},
            }
            for method, params in calls.items():
                response = await post(caller, method, **params)
                assert response.status_code == 503
                assert (response.json()["id"], response.json()["error"]["code"]) == (1, -32603)
                message = response.json()["error"]["message"]
                if "retry-after" in response.headers:
                    assert message == "The task store of the server is unavailable now. Try again later."
                else:  # the request was the first one to notice it
                    text = "The task store of the server has not confirmed the task. It may have started."
                    assert (method, message) == ("tools/call", text)
            await wait_until(lambda: any(step.kind == "end" for step in ledger.steps()))
            await asyncio.sleep(0.3)  # the worker tries to store the outcome, and Redis is away
            redis.start()
            await asyncio.sleep(0.3)  # the link to Redis pauses after a failure
            assert text_of(await end_of(server, task_id)) == str(os.getpid())
            link = RedisLink(redis.url)
            keys = await link.do(lambda client: client.keys("*:tasks:task:*"))
            await link.aclose()
    assert len(keys) == 1
    assert ledger.runs() == {task_id: 1}


async def test_an_outcome_that_redis_does_not_get_within_the_lease_is_dropped(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server() as redis:
        async with serving(make_server(redis.url, ledger.path, concurrency=10, lease=0.5)) as server:
            again, once = await create(server, "again"), await create(server, "once")
            await until_runs(ledger, 2)
            redis.stop(signal.SIGKILL)
            await wait_until(lambda: caplog.text.count("could not be stored") == 2)
            redis.start()
            await asyncio.sleep(0.3)
            assert text_of(await end_of(server, again)) == str(os.getpid())
            assert (await end_of(server, once))["error"]["message"] == STOPPED
    assert ledger.runs() == {again: 2, once: 1}
    assert again not in caplog.text
