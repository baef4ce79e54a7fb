"""The commands record and replay, each in a process of its own, with clients on stdio and over HTTP."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from mcp import Client as SDKClient
from mcp import StdioServerParameters, stdio_client

from funcmcp.client import Client, StdioCommand
from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path

SERVER = '''
from funcmcp import Context, MCPServer

mcp = MCPServer("shop")
print("output of the server's code")


@mcp.tool
async def price(item: str, context: Context) -> int:
    """Return the price of an item."""
    await context.report_progress(1)
    return len(item)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


def command(folder: Path, *arguments: str) -> StdioCommand:
    environment = {"SHOP_TOKEN": "correct-horse"}
    return StdioCommand(sys.executable, "-m", "funcmcp", *arguments, cwd=folder, env=environment)


async def test_a_server_is_recorded_and_played_on_stdio(folder: Path) -> None:
    progress: list[object] = []
    async with Client(
        command(folder, "record", "server.py", "--to", "calls.json"), on_progress=progress.append
    ) as client:
        assert (await client.call_tool("price", {"item": "tea"})).text == "3"
        await client.call_tool("price", {"item": "correct-horse"})  # a secret in the environment
    assert len(progress) == 2
    calls = json.loads((folder / "calls.json").read_text())["calls"]
    items = [call["request"]["params"]["arguments"] for call in calls[-2:]]
    assert items == [{"item": "tea"}, {"item": "REMOVED"}]
    (folder / "server.py").unlink()  # the next client lists the tools, which this one did not
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "funcmcp", "replay", str(folder / "calls.json")], cwd=str(folder)
    )
    async with SDKClient(stdio_client(parameters)) as sdk_client:
        result = await sdk_client.call_tool("price", {"item": "tea"})
        assert result.structured_content == {"result": 3}


def test_a_cassette_is_not_replaced_unless_asked(folder: Path) -> None:
    (folder / "calls.json").write_text("{}")
    run = funcmcp("record", "server.py", "--to", "calls.json", folder=folder)
    assert run.returncode == 1
    assert "calls.json exists. Pass --replace" in run.stderr


def test_another_file_is_not_played(folder: Path) -> None:
    run = funcmcp("replay", "server.py", folder=folder)
    assert run.returncode == 1
    assert "server.py is not a cassette" in run.stderr
    assert "There is no cassette" in funcmcp("replay", "missing.json", folder=folder).stderr
