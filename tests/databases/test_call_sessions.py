"""Sessions of real databases: after a thousand calls of which half fail, the table has the lines of the successes."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator  # noqa: TC003 - an annotation of a factory
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from funcmcp import Context, InvalidParams, MCPError, MCPServer, ToolError, tool
from funcmcp.tasks import MemoryTasks
from funcmcp.testing import Client, accept
from tests.databases.shop import Database, add
from tests.patience import PATIENCE
from tests.postgres_server import postgres_server
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp.client import CallToolResult

pytestmark = pytest.mark.slow("A thousand calls end on real databases.")

ROUNDS = 36
"""Calls of each function that fails. There are fourteen of them, so 504 calls fail."""

SUCCESSES = 71
"""Calls of each function that succeeds. There are seven of them, so 497 calls succeed."""

ROOT = Path(__file__).parents[2]
FASTMCP = ROOT / ".servers" / "fastmcp" / "bin" / "python"


@dataclass
class Amount:
    count: int


class Rejected(Exception):
    """A failure of a function."""


def make_shop(database: Database) -> MCPServer:
    mcp = MCPServer("Shop", tasks=MemoryTasks())

    async def open_session() -> AsyncIterator[AsyncSession]:
        async with database.session() as session:
            yield session

    mcp.services.register_factory(AsyncSession, open_session)
    add_failing_tools(mcp, database)
    add_tools_that_fail_late(mcp)
    add_succeeding_tools(mcp)
    add_resources_and_prompts(mcp)
    return mcp


def add_failing_tools(mcp: MCPServer, database: Database) -> None:
    @mcp.tool
    async def raises(session: AsyncSession) -> str:
        await add(session, "raises")
        raise Rejected

    @mcp.tool
    def raises_in_a_thread(session: AsyncSession, context: Context) -> str:
        context.wait(add(session, "raises in a thread"))
        raise Rejected

    @mcp.tool
    async def tool_error(session: AsyncSession) -> str:
        await add(session, "tool error")
        raise ToolError("Sold out.")

    @mcp.tool
    async def invalid_params(session: AsyncSession) -> str:
        await add(session, "invalid params")
        raise InvalidParams("There is no such item.")

    @mcp.tool(timeout=0.1)
    async def slow(session: AsyncSession) -> str:
        await add(session, "slow")
        await asyncio.Event().wait()
        return "never"

    @mcp.tool(timeout=0.1)
    async def ignores_the_time_limit(session: AsyncSession) -> str:
        await add(session, "ignores the time limit")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "too late"
        return "never"

    @mcp.tool
    async def cancelled(session: AsyncSession) -> str:
        await add(session, "cancelled")
        database.entered.set()
        await asyncio.Event().wait()
        return "never"


def add_tools_that_fail_late(mcp: MCPServer) -> None:
    @mcp.tool
    async def wrong_type(session: AsyncSession) -> int:
        await add(session, "wrong type")
        return "text"  # type: ignore[return-value]

    @mcp.tool
    async def failing_commit(session: AsyncSession) -> str:
        await add(session, "failing commit", item="no such item")
        return "written"

    @mcp.tool
    async def unfinished(session: AsyncSession, context: Context) -> str:
        await add(session, "unfinished")
        await context.elicit("How many?", Amount)
        return "finished"

    class Orders:
        def __init__(self, session: AsyncSession) -> None:
            self.session = session

        @tool
        async def method(self) -> str:
            await add(self.session, "method")
            raise Rejected

    mcp.add(Orders)

    @mcp.tool(task="required")
    async def failing_task(session: AsyncSession) -> str:
        await add(session, "failing task")
        raise Rejected


def add_succeeding_tools(mcp: MCPServer) -> None:
    @mcp.tool
    async def order(session: AsyncSession) -> str:
        await add(session, "order")
        return "ordered"

    @mcp.tool
    def order_in_a_thread(session: AsyncSession, context: Context) -> str:
        context.wait(add(session, "order in a thread"))
        return "ordered"

    @mcp.tool
    async def order_after_a_question(session: AsyncSession, context: Context) -> str:
        await add(session, "order after a question")
        await context.elicit("How many?", Amount)
        return "ordered"

    @mcp.tool
    async def returns_an_error(session: AsyncSession) -> dict[str, Any]:
        await add(session, "returns an error")
        return {"content": [{"type": "text", "text": "Half of it was ordered."}], "isError": True}

    @mcp.tool(task="required")
    async def task(session: AsyncSession) -> str:
        await add(session, "task")
        return "ordered"


def add_resources_and_prompts(mcp: MCPServer) -> None:
    @mcp.resource("shop://failing")
    async def failing(session: AsyncSession) -> str:
        await add(session, "failing resource")
        raise Rejected

    @mcp.prompt
    async def failing_prompt(session: AsyncSession) -> str:
        await add(session, "failing prompt")
        raise Rejected

    @mcp.resource("shop://{item}/visits")
    async def visits(item: str, session: AsyncSession) -> str:
        await add(session, "resource")
        return item

    @mcp.prompt
    async def advice(session: AsyncSession) -> str:
        await add(session, "prompt")
        return "Buy tea."


SUCCEEDING = {
    "order": "order",
    "order_in_a_thread": "order in a thread",
    "order_after_a_question": "order after a question",
    "returns_an_error": "returns an error",
    "shop://tea/visits": "resource",
    "advice": "prompt",
}
FAILING_TOOLS = [
    "raises",
    "raises_in_a_thread",
    "tool_error",
    "slow",
    "ignores_the_time_limit",
    "wrong_type",
    "failing_commit",
    "method",
]


async def succeed(client: Client, name: str) -> None:
    if name.startswith("shop:"):
        await client.read_resource(name)
    elif name == "advice":
        await client.get_prompt(name)
    else:
        result = await client.call_tool(name, raise_on_error=name != "returns_an_error")
        assert result.content


async def fail(client: Client, database: Database) -> None:
    """Call each function that fails once."""
    for name in FAILING_TOOLS:
        result = await client.call_tool(name, raise_on_error=False)
        assert result.is_error, name
    for call in (
        client.call_tool("invalid_params"),
        client.read_resource("shop://failing"),
        client.get_prompt("failing_prompt"),
    ):
        with pytest.raises(MCPError):
            await call
    database.entered.clear()
    cancelled = asyncio.create_task(client.call_tool("cancelled"))
    await database.entered.wait()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def leave_unfinished(client: Client) -> None:
    """Ask for a round of questions, and do not answer it."""
    params = {"name": "unfinished", "arguments": {}}
    result = await client.request("tools/call", params)
    assert result["resultType"] == "input_required"


async def run_tasks(client: Client, name: str, count: int) -> list[CallToolResult]:
    tasks = [await client.start_tool(name) for _ in range(count)]
    return list(await asyncio.gather(*(task.result() for task in tasks)))


async def texts_after_calls(database: Database, revision: str) -> tuple[list[str], list[str]]:
    """Make the calls; return the texts in the table and those of the calls that succeeded."""
    await database.create()
    answers = accept(*[{"count": 1}] * SUCCESSES)
    async with Client(make_shop(database), revision=revision, elicit=answers) as client:
        for _ in range(ROUNDS):
            await fail(client, database)
            if revision == "2026-07-28":
                await leave_unfinished(client)
        for name in SUCCEEDING:
            for _ in range(SUCCESSES):
                await succeed(client, name)
        assert all(result.is_error for result in await run_tasks(client, "failing_task", ROUNDS))
        assert not any(result.is_error for result in await run_tasks(client, "task", SUCCESSES))
        texts = await database.texts()
    await database.engine.dispose()
    return texts, sorted(["task", *SUCCEEDING.values()] * SUCCESSES)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_sqlite_has_the_lines_of_the_successes(tmp_path: Path, revision: str) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/shop.db")
    texts, expected = await texts_after_calls(database, revision)
    assert texts == expected


async def test_postgresql_has_the_lines_of_the_successes(postgres: str) -> None:
    texts, expected = await texts_after_calls(Database(postgres), "2026-07-28")
    assert texts == expected


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_server() as server:
        yield server.url.replace("postgresql:", "postgresql+psycopg:")


def test_fastmcp_also_has_the_lines_of_results_of_a_wrong_type(tmp_path: Path) -> None:
    python = require("FastMCP (scripts/setup-fastmcp.sh)", FASTMCP if FASTMCP.exists() else None)
    url = f"sqlite+aiosqlite:///{tmp_path}/shop.db"
    script = Path(__file__).parent / "fastmcp_shop.py"
    command = [str(python), str(script), url, str(ROUNDS)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    texts = json.loads(ended.stdout.splitlines()[-1])
    succeeding = ["order", "order in a thread", "resource", "prompt", "returns an error"]
    assert texts == sorted([*succeeding, "wrong type"] * ROUNDS)  # FastMCP commits before it looks at the result
