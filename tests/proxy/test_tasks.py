"""Tasks of an upstream through the proxy: the reference server runs one in the form of 2025-11-25.

The tasks of 2026-07-28 are in `tests/conformance/test_proxy.py`.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.instances import Caller
from tests.patience import PATIENCE
from tests.proxy.published import node_server
from tests.proxy.serving import proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("A task of the reference server takes four seconds.")

CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}, "tasks": {}}
RELATED = "io.modelcontextprotocol/related-task"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with proxy({"command": node_server("server-everything"), "prefix": "all"}) as served:
        yield served.url


async def begin(caller: Caller, url: str, **arguments: Any) -> str:
    """Begin a task, and return its id."""
    await caller.begin(url, capabilities=CAPABILITIES)
    await caller.post(url, {"method": "notifications/initialized"})
    params = {"name": "all_simulate-research-query", "arguments": arguments, "task": {"ttl": 60_000}}
    answer = await caller.ask(url, "tools/call", **params)
    task: dict[str, Any] = answer["result"]["task"]
    assert task["status"] == "working"
    task_id: str = task["taskId"]
    return task_id


async def until(caller: Caller, url: str, task_id: str, status: str) -> dict[str, Any]:
    """Poll a task until it has a status."""
    async with asyncio.timeout(PATIENCE):
        while True:
            task: dict[str, Any] = (await caller.ask(url, "tasks/get", taskId=task_id))["result"]
            if task["status"] == status:
                return task
            assert task["status"] in {"working", "input_required"}
            await asyncio.sleep(0.1)


async def test_the_tool_says_that_its_calls_are_tasks(url: str) -> None:
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        caller = Caller(http)
        await caller.begin(url, capabilities=CAPABILITIES)
        tools = (await caller.ask(url, "tools/list"))["result"]["tools"]
    execution = {tool["name"]: tool.get("execution", {}).get("taskSupport") for tool in tools}
    assert execution["all_simulate-research-query"] == "required"
    assert execution["all_echo"] in {None, "forbidden"}


async def test_a_task_of_the_upstream_runs_to_its_end(url: str) -> None:
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        caller = Caller(http)
        task_id = await begin(caller, url, topic="tea")
        await until(caller, url, task_id, "completed")
        ended = (await caller.ask(url, "tasks/result", taskId=task_id))["result"]
    assert ended["content"][0]["text"].startswith("# Research Report: tea")
    assert ended["_meta"][RELATED] == {"taskId": task_id}


async def test_a_task_of_the_upstream_asks_the_user(url: str) -> None:
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        caller = Caller(http)
        task_id = await begin(caller, url, topic="python", ambiguous=True)
        await until(caller, url, task_id, "input_required")
        async with caller.stream(url, caller.request("tasks/result", taskId=task_id)) as events:
            question = await events.message()
            assert question is not None
            assert question["method"] == "elicitation/create"
            assert question["params"]["_meta"][RELATED] == {"taskId": task_id}
            answer = {"action": "accept", "content": {"interpretation": "snake"}}
            accepted = await caller.post(url, {"id": question["id"], "result": answer})
            assert accepted.status_code == 202
            ended = await events.message()
    assert ended is not None
    assert "snake" in json.dumps(ended["result"]["content"])


async def test_a_task_of_the_upstream_is_cancelled(url: str) -> None:
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        caller = Caller(http)
        task_id = await begin(caller, url, topic="tea")
        cancelled = (await caller.ask(url, "tasks/cancel", taskId=task_id))["result"]
        assert cancelled["status"] == "cancelled"
        again = await caller.ask(url, "tasks/cancel", taskId=task_id)
        assert again["error"]["code"] == -32602


async def test_a_client_without_credentials_gets_an_id_that_nobody_can_guess_and_no_list(url: str) -> None:
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        caller = Caller(http)
        task_id = await begin(caller, url, topic="tea")
        assert len(task_id) > 40
        assert (await caller.ask(url, "tasks/list"))["error"]["code"] == -32601
        assert (await caller.ask(url, "tasks/get", taskId=task_id[::-1]))["error"]["code"] == -32602
        await caller.ask(url, "tasks/cancel", taskId=task_id)
