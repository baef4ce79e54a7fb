"""The official Python SDK's client, which has no tasks, uses tasks as tools over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp import Client

from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVER = """
from funcmcp import Context, MCPServer

mcp = MCPServer("Jobs")


@mcp.tool(task="optional")
async def add(a: int, b: int) -> int:
    return a + b


@mcp.tool(task="required", confirm="Delete {name}?")
async def delete(name: str, context: Context) -> str:
    answer = await context.elicit("Why?", str)
    return f"{name}: {answer.content}"


mcp.task_tools()
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file: Path = tmp_path_factory.mktemp("jobs") / "jobs_server.py"
    file.write_text(SERVER, encoding="utf-8")
    with serve(file) as served:
        yield served.url


def client_of(url: str, mode: str) -> Client:
    async def elicit(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        content: dict[str, Any] = {"confirm": True} if params.message.startswith("Delete") else {"value": "old"}
        return types.ElicitResult(action="accept", content=content)

    options: Any = {"mode": mode, "elicitation_callback": elicit}
    return Client(url, **options)


async def started(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert result.structured_content is not None
    return {"task_id": result.structured_content["task_id"]}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_started_task_has_the_result_of_its_tool(url: str, mode: str) -> None:
    async with client_of(url, mode) as client:
        task = await started(client, "start_add", {"a": 1, "b": 2})
        result = await client.call_tool("task_result", task)
        assert result.structured_content == {"result": 3}
        status = await client.call_tool("task_status", task)
    assert status.structured_content is not None
    assert status.structured_content["status"] == "completed"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_person_confirms_before_the_task_and_answers_during_it(url: str, mode: str) -> None:
    async with client_of(url, mode) as client:
        task = await started(client, "start_delete", {"name": "order 7"})
        result = await client.call_tool("task_result", task)
    assert [block.text for block in result.content if block.type == "text"] == ["order 7: old"]
