"""Clients of FastMCP and of the official SDK that connect to servers of `funcmcp.compat` in memory."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic
import pytest

from funcmcp.compat import AcceptedElicitation, Context, FastMCP, MCPServer, ToolError
from funcmcp.compat.mcp import client as sdk
from funcmcp.compat.mcp import types
from funcmcp.compat.mcp.shared.exceptions import MCPError
from funcmcp.compat.mcp.shared.memory import create_connected_server_and_client_session
from tests.patience import PATIENCE
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

REPOSITORY = Path(__file__).parents[2]
PYTHONS = {name: REPOSITORY / ".servers" / name / "bin" / "python" for name in ("differential", "fastmcp")}
"""Environments with versions of FastMCP."""


@pytest.mark.slow("The original answers the same calls.")
@pytest.mark.parametrize("environment", PYTHONS)
def test_the_client_of_fastmcp_connects_to_a_server(environment: str) -> None:
    require(f"FastMCP in .servers/{environment}", PYTHONS[environment].exists())
    script = Path(__file__).with_name("original_clients_cases.py")
    variables = os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}
    command = [str(PYTHONS[environment]), str(script)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE, env=variables)
    assert json.loads(run.stdout.splitlines()[-1]) == {
        "sum": 3,
        "answer": "accept 3",
        "logs": ["info", "info"],
        "errors": [["ToolError", "too small"], ["MCPError", "Resource not found"]],
        "tools": ["add", "ask"],
    }


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_low_level_server_is_a_transport_of_the_client_of_the_sdk(mode: str) -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    def read(ctx: Context) -> str:
        return str(ctx.session_id)

    server: Any = mcp._mcp_server
    async with sdk.Client(server, mode=mode) as client:
        results = [await client.call_tool("read", {}) for _ in range(2)]
    first, second = (result.content[0].text for result in results)
    assert len(first) == len(second) == 32
    assert (first == second) is (mode == "legacy")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("server", [FastMCP, MCPServer])
async def test_the_client_of_the_sdk_connects_to_a_server(server: Any, mode: str) -> None:
    events = []

    async def lifespan(_: Any) -> AsyncIterator[None]:
        events.append("open")
        yield
        events.append("closed")

    mcp = server("shop")
    mcp.add_lifespan(lifespan)

    @mcp.tool()  # type: ignore[untyped-decorator] # either class of server
    async def add(first: int, ctx: Context) -> int:
        await ctx.report_progress(1, 2)
        if first < 0:
            raise ToolError("too small")
        return first + 1

    progress = []

    async def report(*values: Any) -> None:
        progress.append(values)

    async with sdk.Client(mcp, mode=mode) as client:
        result = await client.call_tool("add", {"first": 1}, progress_callback=report)
        assert result.structured_content == {"result": 2}
        failed = await client.call_tool("add", {"first": -1})
        assert failed.is_error
        assert failed.content[0].text.endswith("too small")
        assert events == ["open"]
    assert events == ["open", "closed"]
    assert progress == [(1, 2, None)]


async def test_a_session_of_the_sdk_connects_to_a_server() -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    def add(first: int) -> int:
        return first + 1

    for server in (mcp, mcp._mcp_server):
        async with create_connected_server_and_client_session(server) as session:
            assert [tool.name for tool in (await session.list_tools()).tools] == ["add"]
            assert (await session.call_tool("add", {"first": 1})).structured_content == {"result": 2}


class Confirmation(pydantic.BaseModel):
    ok: bool


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_client_of_the_sdk_takes_and_raises_objects_of_compat(mode: str) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def buy(ctx: Context) -> str:
        answer = await ctx.elicit("Really?", Confirmation)
        return str(answer.data.ok) if isinstance(answer, AcceptedElicitation) else answer.action

    @mcp.tool()
    async def fail() -> str:
        raise MCPError(types.INVALID_PARAMS, "no such dish")

    @mcp.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Any:
        return types.Completion(values=[ref.name, argument.value])

    async def answer(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"ok": True})

    async with sdk.Client(mcp, elicitation_callback=answer, mode=mode) as client:
        assert (await client.call_tool("buy", {})).content[0].text == "True"
        with pytest.raises(MCPError, match="no such dish") as failure:
            await client.call_tool("fail", {})
        assert failure.value.code == types.INVALID_PARAMS
        reference = types.PromptReference(type="ref/prompt", name="menu")
        completed = await client.complete(reference, {"name": "dish", "value": "So"})
        assert completed.completion.values == ["menu", "So"]
