"""Callers see and may do the same as on FastMCP: rules of visibility, mounted servers, headers, tokens, middleware."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from funcmcp import MCPError, MCPServer
from funcmcp.compat import FastMCP
from funcmcp.testing import Client
from tests.compat import access_cases
from tests.patience import PATIENCE
from tests.requirements import require

REPOSITORY = Path(__file__).parents[2]
FASTMCP = REPOSITORY / ".servers/fastmcp/bin/python"


@pytest.fixture(scope="module")
def answers_of_fastmcp() -> dict[str, dict[str, Any]]:
    python = require("FastMCP (scripts/setup-fastmcp.sh)", str(FASTMCP) if FASTMCP.exists() else None)
    command = [python, "-m", "tests.compat.access_cases"]
    ended = subprocess.run(command, capture_output=True, check=True, text=True, timeout=PATIENCE, cwd=REPOSITORY)
    answers: dict[str, dict[str, Any]] = json.loads(ended.stdout)
    return answers


async def test_callers_see_and_may_do_the_same_as_on_fastmcp(answers_of_fastmcp: dict[str, dict[str, Any]]) -> None:
    assert await access_cases.outcomes(access_cases.compat()) == answers_of_fastmcp


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("server", [FastMCP, MCPServer])
async def test_a_hidden_resource_is_not_read_through_a_template(server: Any, revision: str) -> None:
    child, parent = server("child"), server("parent")

    @child.resource("shop://secret", tags=["secret"])
    def secret() -> str:
        return "secret"

    @child.resource("shop://{item}")
    def item(item: str) -> str:
        return item

    parent.mount(child, prefix="p")
    child.disable(tags={"secret"})
    for mcp, prefix in ((child, ""), (parent, "p/")):
        async with Client(mcp, revision=revision) as client:
            assert (await client.read_resource(f"shop://{prefix}tea")).text == "tea"
            with pytest.raises(MCPError, match="not found"):
                await client.read_resource(f"shop://{prefix}secret")
    child.enable(tags={"secret"})
    async with Client(parent, revision=revision) as client:
        assert (await client.read_resource("shop://p/secret")).text == "secret"


@pytest.mark.parametrize(
    ("conditions", "error"),
    [
        ({"names": "notes"}, TypeError),
        ({"tags": "private"}, TypeError),
        ({"keys": "tool:notes@"}, TypeError),
        ({"keys": {"notes@"}}, ValueError),
        ({"components": {"tols"}}, ValueError),
        ({"version": "1.0"}, TypeError),
        ({"match_all": True}, TypeError),
    ],
)
def test_what_is_not_a_condition_is_refused(conditions: dict[str, Any], error: type[Exception]) -> None:
    mcp = FastMCP("shop")
    with pytest.raises(error):
        mcp.disable(**conditions)
    with pytest.raises(error):
        mcp.enable(**conditions, only=True)
