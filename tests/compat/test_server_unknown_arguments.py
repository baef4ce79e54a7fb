"""Unknown arguments are refused or dropped as in the original: by FastMCP, and by the official SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from funcmcp.compat import Context, Depends, FastMCP, MCPServer
from funcmcp.testing import Client
from tests.compat.unknown_arguments_client import PROMPTS, TOOLS, errors_of, register
from tests.patience import PATIENCE
from tests.requirements import require

REPOSITORY = Path(__file__).parents[2]
FASTMCP = REPOSITORY / ".servers/fastmcp/bin/python"


def original(framework: str) -> list[bool]:
    python = sys.executable
    if framework == "FastMCP":
        python = require("FastMCP (scripts/setup-fastmcp.sh)", str(FASTMCP) if FASTMCP.exists() else None)
    ended = subprocess.run(
        [python, "-m", "tests.compat.unknown_arguments_client", framework],
        capture_output=True,
        check=True,
        text=True,
        timeout=PATIENCE,
        cwd=REPOSITORY,
    )
    errors: list[bool] = json.loads(ended.stdout)
    return errors


@pytest.mark.slow("The original answers the same calls.")
@pytest.mark.parametrize("server", [FastMCP, MCPServer])
async def test_unknown_arguments_have_the_outcome_of_the_original(server: Any) -> None:
    async with Client(register(server("a"))) as client:
        errors = await errors_of(client)
    calls = [*TOOLS, *PROMPTS]
    expected = original(server.__name__)
    assert dict(zip(map(str, calls), errors, strict=True)) == dict(zip(map(str, calls), expected, strict=True))


@pytest.mark.parametrize("server", [FastMCP, MCPServer])
async def test_the_option_of_funcmcp_is_for_tools_and_prompts(server: Any) -> None:
    async with Client(register(server("a", unknown_arguments="refuse"))) as client:
        errors = [error for error in await errors_of(client) if not error]
    assert len(errors) == 3
    async with Client(register(server("a", unknown_arguments="ignore"))) as client:
        assert (await client.call_tool("weather", {"city": "Rome", "sessionId": "1"})).text == "Rome 1"
        assert (await client.call_tool("weather", {"city": "Rome", "day": 1})).is_error
        assert "x dry" in str(await client.get_prompt("ask", {"topic": "x", "sessionId": "1"}))


@pytest.mark.parametrize("server", [FastMCP, MCPServer])
async def test_a_client_can_not_send_what_the_server_injects(server: Any) -> None:
    mcp = server("a")

    def query(sql: str, ctx: Context, database: str = Depends(lambda: "own")) -> str:
        return f"{sql} {database} {type(ctx).__name__}"

    mcp.tool()(query)
    async with Client(mcp) as client:
        for injected in ("ctx", "database"):
            result = await client.call_tool("query", {"sql": "x", injected: "theirs"})
            assert result.text == ("x own Context" if server is MCPServer else f"{injected}: is not an argument")
