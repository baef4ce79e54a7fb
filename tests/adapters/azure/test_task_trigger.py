"""Which stores of tasks a function app accepts, and the function with a queue trigger."""

from __future__ import annotations

import json
import logging
import re
import secrets
from typing import TYPE_CHECKING, Any

import pytest

import funcmcp.azure
from funcmcp import MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp.tasks import AzureTasks, MemoryTasks, RedisTasks, SQLiteTasks, TaskOptions

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
    pytest.mark.lowest("azure-functions has the classes of functions and bindings."),
]


def report() -> str:
    """Write the report."""
    return "done"


def server(**options: Any) -> MCPServer:
    mcp = MCPServer("Shop", **options)
    mcp.tool(task="optional")(report)
    return mcp


def functions(mcp: MCPServer, **options: Any) -> dict[str, list[dict[str, Any]]]:
    indexed = funcmcp.azure.http_app(mcp, **options).get_functions()
    return {
        str(function.get_function_name()): [json.loads(text) for text in function.get_raw_bindings()]
        for function in indexed
    }


def test_azure_tasks_get_a_function_with_a_queue_trigger() -> None:
    store = AzureTasks("Storage", prefix="shop")
    registered = functions(server(tasks=store), route="api/shop")
    assert list(registered) == ["api_shop", "api_shop_preflight", "api_shop_livez", "api_shop_readyz", "api_shop_tasks"]
    (trigger,) = registered["api_shop_tasks"]
    assert trigger == {
        "direction": "IN",
        "type": "queueTrigger",
        "name": "message",
        "queueName": store.queue_name(),
        "connection": "Storage",
    }
    assert store.queue_name().startswith("shop-shop-")
    assert store.pulls is False


def with_queues(*queues: str) -> MCPServer:
    mcp = server(tasks=AzureTasks("Storage"))
    for number, queue in enumerate(queues):
        mcp.tool(name=f"tool{number}", task=TaskOptions(queue=queue))(report)
    return mcp


def test_each_queue_of_a_tool_has_a_function_of_its_own() -> None:
    mcp = with_queues("slow", "slow", "Slow", "v1.0")
    app = funcmcp.azure.http_app(mcp)
    mcp.tool(name="later", task=TaskOptions(queue="later"))(report)
    mcp.tool(name="plain")(report)
    indexed = {str(function.get_function_name()): function.get_raw_bindings() for function in app.get_functions()}
    names = [name for name in indexed if name.startswith("mcp_tasks")]
    assert names == ["mcp_tasks", names[1], "mcp_tasks_slow", names[3], "mcp_tasks_later"]
    assert re.fullmatch("mcp_tasks_slow_[0-9a-f]{8}", names[1])
    assert re.fullmatch("mcp_tasks_v1_0_[0-9a-f]{8}", names[3])
    assert len({json.loads(indexed[name][0])["queueName"] for name in names}) == 5


def test_an_app_has_functions_for_the_queues_that_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCMCP_TASK_QUEUES", "slow")
    names = list(functions(with_queues("slow", "other")))
    assert names == ["mcp", "mcp_preflight", "mcp_livez", "mcp_readyz", "mcp_tasks_slow"]


def test_two_servers_of_an_app_have_queues_of_their_own() -> None:
    app = funcmcp.azure.http_app(MCPServer("one", tasks=AzureTasks()), route="one")
    registered = functions(MCPServer("two", tasks=AzureTasks()), route="two", app=app)
    queues = {registered[name][0]["queueName"] for name in ("one_tasks", "two_tasks")}
    assert len(queues) == 2


@pytest.mark.parametrize("kind", ["memory", "MemoryTasks", "SQLiteTasks"])
def test_tasks_of_one_machine_are_refused_with_the_line_to_write(kind: str, tmp_path: Path) -> None:
    stores: dict[str, Any] = {"MemoryTasks": MemoryTasks(), "SQLiteTasks": SQLiteTasks(tmp_path / "tasks.db")}
    with pytest.raises(ValueError, match=r"The tool 'report' has task=.*MCPServer\(\.\.\., tasks=AzureTasks\(\)\)"):
        funcmcp.azure.http_app(server(tasks=stores.get(kind, "memory")))


def test_a_tool_with_tasks_is_refused_when_it_is_added_later() -> None:
    mcp = MCPServer("Shop")
    mcp.tool(name="plain")(report)
    funcmcp.azure.http_app(mcp)
    mcp.tool(name="other")(report)
    with pytest.raises(ValueError, match="The tool 'report' has task="):
        mcp.tool(task="optional")(report)
    with pytest.raises(KeyError):
        mcp.remove_tool("report")  # a refused tool is not there


def test_without_tasks_every_call_is_plain() -> None:
    assert list(functions(server(tasks=None))) == ["mcp", "mcp_preflight", "mcp_livez", "mcp_readyz"]


def test_tasks_in_redis_run_elsewhere_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "funcmcp")
    store = RedisTasks("redis://127.0.0.1:1")
    mcp = server(tasks=store)
    assert list(functions(mcp)) == ["mcp", "mcp_preflight", "mcp_livez", "mcp_readyz"]
    tasks = runtime_of(mcp).server.tasks
    assert tasks is not None
    assert tasks.concurrency == 0
    (record,) = caplog.records
    assert record.message == (
        "Shop creates tasks in RedisTasks and does not run them: Azure stops a function app between two invocations. "
        "Run the same server elsewhere, for example with `funcmcp worker`."
    )


def test_a_store_without_tools_needs_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    functions(MCPServer("Shop", tasks=RedisTasks("redis://127.0.0.1:1")))
    assert caplog.records == []


def test_runs_of_a_worker_that_stops_have_a_short_time() -> None:
    mcp = server(tasks=AzureTasks(prefix=f"t-{secrets.token_hex(4)}"))
    funcmcp.azure.http_app(mcp)
    assert runtime_of(mcp).server.drain.seconds == 2.0
