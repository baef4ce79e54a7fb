"""Metrics of the real OpenTelemetry SDK, of servers with real stores of tasks."""

from __future__ import annotations

import asyncio
import gc
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from pydantic import BaseModel

from funcmcp import Context, MCPServer, ToolError
from funcmcp._adapters.opentelemetry_metrics import Names
from funcmcp._protocol.errors import MCPError
from funcmcp._server.limits import LimitReachedError
from funcmcp._server.tasks import backlog
from funcmcp._serving.composition import runtime_of
from funcmcp._serving.environment import TASK_CONCURRENCY_VARIABLE
from funcmcp.tasks import AzureTasks, MemoryTasks, PostgresTasks, RedisTasks, Retry, SQLiteTasks, TaskOptions, TaskStore
from funcmcp.testing import Client, accept
from tests.patience import PATIENCE
from tests.postgres_server import postgres_server
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.lowest("OpenTelemetry keeps spans and metrics.")

SERVER, TOOL, STATUS = "funcmcp.server.name", "gen_ai.tool.name", "mcp.task.status"
COMPLETED, TOOL_ERROR = {STATUS: "completed"}, {STATUS: "completed", "error.type": "tool_error"}


class Agreement(BaseModel):
    agreed: bool


class Measured:
    """Servers whose metrics one reader gets."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader])

    def points(self, name: str) -> dict[frozenset[tuple[str, Any]], Any]:
        """Return the data points of a metric, by their attributes: values, or numbers of durations."""
        data: Any = self._reader.get_metrics_data()
        if data is None:
            return {}
        metrics = [metric for scope in data.resource_metrics[0].scope_metrics for metric in scope.metrics]
        return {
            frozenset(point.attributes.items()): point.value if hasattr(point, "value") else point.count
            for metric in metrics
            if metric.name == name
            for point in metric.data.data_points
        }

    def value(self, name: str, attributes: dict[str, str] | None = None, *, server: str = "measured") -> Any:
        """Return the value of a data point; None if there is none."""
        return self.points(name).get(frozenset({SERVER: server, **(attributes or {})}.items()))

    async def becomes(self, value: Any, name: str, attributes: dict[str, str] | None = None) -> None:
        """Wait until a data point has a value."""
        async with asyncio.timeout(PATIENCE):
            while self.value(name, attributes) != value:  # noqa: ASYNC110 - the reader has no event
                await asyncio.sleep(0.01)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    monkeypatch.setattr(backlog, "_INTERVAL", 0.02)
    return Measured()


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres", "azure"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[TaskStore]:
    """A store of each kind, without tasks."""
    match request.param:
        case "memory":
            yield MemoryTasks()
        case "sqlite":
            yield SQLiteTasks(tmp_path / "tasks.db")
        case "redis":
            with redis_server() as server:
                yield RedisTasks(server.url)
        case "postgres":
            with postgres_server() as database:
                yield PostgresTasks(database.url)
        case _:
            azurite = request.getfixturevalue("azurite")
            monkeypatch.setenv("AzureWebJobsStorage", azurite.connection_string)
            yield AzureTasks(prefix=f"t-{secrets.token_hex(8)}")


@asynccontextmanager
async def serving(measured: Measured, store: TaskStore, name: str = "measured") -> AsyncIterator[MCPServer]:
    """Serve tools whose calls become tasks, until the block ends."""
    mcp = MCPServer(name, tasks=store)
    runs: list[str] = []

    @mcp.tool(task=TaskOptions(poll=0.02, retry=Retry(2, delay=0.01)))
    async def export(how: str, context: Context) -> str:
        runs.append(how)
        if how == "ask":
            await context.elicit("Really?", Agreement)
        if how == "fail":
            raise ToolError("No.")
        if how == "protocol":
            raise MCPError(-32050, "Out of stock")
        if how == "again" and runs.count(how) == 1:
            raise RuntimeError
        if how == "hang":
            await asyncio.sleep(2 * PATIENCE)
        return "done"

    mcp.measure(measured.provider)
    try:
        yield mcp
    finally:
        await runtime_of(mcp).aclose()


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_tasks_and_their_runs_are_counted_on_every_store(measured: Measured, store: TaskStore) -> None:
    export = {TOOL: "export"}
    async with serving(measured, store) as mcp, Client(mcp, elicit=accept({"agreed": True})) as client:
        for how in ("quick", "ask", "fail", "again"):
            await client.call_tool("export", {"how": how})
        with pytest.raises(MCPError, match="Out of stock"):
            await client.call_tool("export", {"how": "protocol"})
        task = await client.start_tool("export", {"how": "hang"})
        await measured.becomes(1, "funcmcp.task.running", export)
        await task.cancel()
        await measured.becomes(0, "funcmcp.task.running", export)
    assert measured.value("funcmcp.task.created", export) == 6
    assert measured.value("funcmcp.task.started", export) == 8
    assert measured.value("funcmcp.task.start.duration", export) == 6
    assert measured.points("funcmcp.task.retried") == {
        frozenset({SERVER: "measured", **export, "funcmcp.task.retry.reason": "failed"}.items()): 1
    }
    for name, other in (("funcmcp.task.ended", "cancelled"), ("funcmcp.task.run.duration", "input_required")):
        assert measured.value(name, {**export, **COMPLETED}) == 3
        assert measured.value(name, {**export, **TOOL_ERROR}) == 1
        assert measured.value(name, {**export, STATUS: "failed"}) == 1
        assert measured.value(name, {**export, STATUS: other}) == 1
    assert measured.value("funcmcp.task.run.duration", export) == 1
    assert measured.value("funcmcp.task.run.duration", {**export, "error.type": "tool_error"}) == 1


async def test_tasks_that_wait_are_measured_on_every_store_also_by_a_process_that_runs_none(
    measured: Measured, store: TaskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TASK_CONCURRENCY_VARIABLE, "0")
    async with serving(measured, store) as mcp, Client(mcp) as client:
        for _ in range(2):
            await client.start_tool("export", {"how": "quick"})
        await measured.becomes(2, "funcmcp.task.waiting")
        assert measured.value("funcmcp.task.waiting.oldest") >= 0
        async with asyncio.timeout(PATIENCE):
            while not measured.value("funcmcp.task.waiting.oldest"):  # noqa: ASYNC110 - the reader has no event
                await asyncio.sleep(0.01)
        assert not measured.points("funcmcp.task.started")
    assert not measured.points("funcmcp.task.waiting")  # the server has ended


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_the_waiting_tasks_of_a_store_that_is_away_have_no_number(measured: Measured) -> None:
    with redis_server() as server:
        async with serving(measured, RedisTasks(server.url)) as mcp:
            await runtime_of(mcp).start()
            await measured.becomes(0, "funcmcp.task.waiting")
            server.stop()
            await measured.becomes(None, "funcmcp.task.waiting")
            server.start()
            await measured.becomes(0, "funcmcp.task.waiting")


async def test_a_run_after_one_whose_process_stopped_is_counted_as_such(measured: Measured, tmp_path: Path) -> None:
    first, second = (SQLiteTasks(tmp_path / "tasks.db", lease=0.1) for _ in range(2))
    mcp = MCPServer("measured", tasks=second)

    @mcp.tool(task=TaskOptions(attempts=2, poll=0.02))
    async def export() -> str:
        return "done"

    mcp.measure(measured.provider)
    async with Client(mcp) as client:
        tasks = runtime_of(mcp).server.tasks
        assert tasks is not None
        tasks.set_concurrency(0)
        task = await client.start_tool("export", {})
        first.bind("measured")
        assert len(await first.claim(1)) == 1  # by a process that does not renew it
        tasks.set_concurrency(1)
        tasks.start()
        assert (await task.result()).text == "done"
    await runtime_of(mcp).aclose()
    await first.aclose()
    assert measured.value("funcmcp.task.retried", {TOOL: "export", "funcmcp.task.retry.reason": "interrupted"}) == 1
    assert not measured.points("funcmcp.task.start.duration")


async def test_two_servers_of_one_process_have_numbers_of_their_own(measured: Measured) -> None:
    async with serving(measured, MemoryTasks()) as first, serving(measured, MemoryTasks(), "other") as second:
        for mcp in (first, second, second):
            async with Client(mcp) as client:
                await client.call_tool("export", {"how": "quick"})
        await measured.becomes(0, "funcmcp.task.waiting")
        assert measured.value("funcmcp.task.waiting", server="other") == 0
    assert measured.value("funcmcp.task.ended", {TOOL: "export", **COMPLETED}) == 1
    assert measured.value("funcmcp.task.ended", {TOOL: "export", **COMPLETED}, server="other") == 2


async def test_a_server_that_is_gone_has_no_numbers_any_more(measured: Measured) -> None:
    async with serving(measured, MemoryTasks()) as mcp:
        async with Client(mcp) as client:
            await client.call_tool("export", {"how": "quick"})
        await measured.becomes(0, "funcmcp.task.waiting")
    del mcp, client
    gc.collect()
    assert not measured.points("funcmcp.task.waiting")


async def test_names_that_callers_make_up_are_no_values(measured: Measured) -> None:
    async with serving(measured, MemoryTasks()) as mcp, Client(mcp) as client:
        for name in ("nothing", "x" * 100_000):
            with pytest.raises(MCPError):
                await client.request("tools/call", {"name": name, "arguments": {"how": "quick"}})
        await client.call_tool("export", {"how": "quick"})
    assert len(measured.points("funcmcp.task.created")) == 1


METHOD, VERSION, CODE = "mcp.method.name", "mcp.protocol.version", "rpc.response.status_code"
CALL = {METHOD: "tools/call", "gen_ai.operation.name": "execute_tool", VERSION: "2026-07-28"}


def offer(mcp: MCPServer) -> None:
    """Add a tool that fails in several ways, and a prompt."""

    @mcp.tool
    async def find(how: str) -> str:
        if how == "limit":
            raise LimitReachedError("Too many.", 1)
        if how == "protocol":
            raise MCPError(-32050, "Out of stock")
        if how == "tool":
            raise ToolError("No.")
        return "found"

    @mcp.prompt
    async def review() -> str:
        return "Review it."


async def test_the_duration_of_a_request_has_the_attributes_of_the_conventions(measured: Measured) -> None:
    mcp = MCPServer("measured")
    offer(mcp)
    mcp.measure(measured.provider)
    async with Client(mcp, revision="2026-07-28") as client:
        for how in ("well", "well", "tool"):
            await client.request("tools/call", {"name": "find", "arguments": {"how": how}})
        for name, how in (("find", "protocol"), ("nothing", "well"), ("x" * 5000, "well")):
            with pytest.raises(MCPError):
                await client.request("tools/call", {"name": name, "arguments": {"how": how}})
        await client.request("prompts/get", {"name": "review"})
        for method in ("made/up", "made/up/too"):
            with pytest.raises(MCPError):
                await client.request(method, {})
    find = {**CALL, TOOL: "find"}
    points = measured.points("mcp.server.operation.duration")
    for method in ("server/discover", "tools/list"):  # which the client sends itself
        assert points.pop(frozenset({SERVER: "measured", METHOD: method, VERSION: "2026-07-28"}.items())) == 1
    assert {
        frozenset({SERVER: "measured", **attributes}.items()): number
        for attributes, number in [
            (find, 2),
            ({**find, "error.type": "tool_error"}, 1),
            ({**find, "error.type": "-32050", CODE: "-32050"}, 1),
            ({**CALL, CODE: "-32602"}, 2),
            ({METHOD: "prompts/get", "gen_ai.prompt.name": "review", VERSION: "2026-07-28"}, 1),
            ({METHOD: "_OTHER", VERSION: "2026-07-28", CODE: "-32601"}, 2),
        ]
    } == points


async def test_requests_that_a_limit_stops_are_measured_and_their_responses_counted(measured: Measured) -> None:
    mcp = MCPServer("measured", sessions=None)
    offer(mcp)
    mcp.measure(measured.provider)
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "find", "arguments": {"how": "limit"}},
    }
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=mcp), base_url="http://127.0.0.1") as client:
        limited = await client.post("/mcp", json=call, headers=headers)
        foreign = await client.post("/mcp", json=call, headers={**headers, "host": "evil.example"})
    assert (limited.status_code, foreign.status_code) == (503, 421)
    ((attributes, number),) = measured.points("mcp.server.operation.duration").items()
    assert (number, dict(attributes)) == (
        1,
        {
            SERVER: "measured",
            **CALL,
            TOOL: "find",
            VERSION: "2025-06-18",
            "network.transport": "tcp",
            "error.type": "-32603",
            CODE: "-32603",
        },
    )
    assert measured.points("funcmcp.http.refused") == {
        frozenset({SERVER: "measured", "http.response.status_code": status}.items()): 1 for status in (503, 421)
    }


async def test_sessions_streams_and_requests_under_way_are_gauges(measured: Measured) -> None:
    mcp = MCPServer("measured", sessions="memory")
    running, done = asyncio.Event(), asyncio.Event()

    @mcp.tool
    async def wait() -> str:
        running.set()
        await done.wait()
        return "done"

    mcp.measure(measured.provider)
    async with Client(mcp, revision="2025-11-25") as client:
        assert measured.value("funcmcp.server.sessions") == 1
        call = asyncio.ensure_future(client.call_tool("wait"))
        await running.wait()
        assert measured.value("funcmcp.server.requests") == 1
        done.set()
        await call
    assert measured.value("funcmcp.server.sessions") == 0
    assert measured.points("mcp.server.session.duration") == {
        frozenset({SERVER: "measured", VERSION: "2025-11-25"}.items()): 1
    }
    assert measured.value("funcmcp.server.requests") == 0
    assert measured.value("funcmcp.server.streams") == 0
    stateless = MCPServer("stateless", sessions=None)
    stateless.measure(measured.provider)
    assert measured.value("funcmcp.server.sessions", server="stateless") is None


def test_a_thousand_names_of_tools_are_values_and_others_are_not() -> None:
    names = Names()
    assert names["x" * 257] == "_OTHER"
    for number in range(1000):
        assert names[f"tool_{number}"] == f"tool_{number}"
    assert names["another"] == "_OTHER"
    assert names["tool_0"] == "tool_0"


async def test_without_a_provider_the_processs_own_is_used_and_a_server_without_tasks_can_be_measured() -> None:
    mcp = MCPServer("plain")

    @mcp.tool(task="optional")
    async def export() -> str:
        return "done"

    mcp.measure()
    async with Client(mcp) as client:
        assert (await client.call_tool("export")).text == "done"
    await runtime_of(mcp).aclose()
    MCPServer("no tasks", tasks=None).measure()


async def test_metrics_are_exported_once_more_when_the_server_ends() -> None:
    class Exporter(InMemoryMetricReader):
        flushed = 0

        def force_flush(self, timeout_millis: float = 10_000) -> bool:
            self.flushed += 1
            return super().force_flush(timeout_millis)

    reader = Exporter()
    mcp = MCPServer("Measured")
    mcp.measure(MeterProvider([reader]))
    await runtime_of(mcp).aclose()
    assert reader.flushed == 1
