"""Exception groups mean what their members mean over stdio, and over HTTP with each protocol of the server."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from funcmcp import MCPError
from funcmcp.client import Client, StdioCommand
from tests.wire.conftest import serving
from tests.wire.peer import ERAS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

SERVER = """
import asyncio
from funcmcp import InvalidParams, MCPServer, Context, ToolError

mcp = MCPServer("shop")


async def fail(error):
    raise error


async def fail_all(*errors):
    async with asyncio.TaskGroup() as group:
        for error in errors:
            group.create_task(fail(error))


@mcp.tool
async def answers(context: Context) -> None:
    await context.info("before")  # the response is a stream
    await fail_all(ToolError("closed"), ToolError("sold out"))


@mcp.tool
async def hidden() -> None:
    await fail_all(ToolError("closed"), OSError("hunter2"))


@mcp.resource("menu://today")
async def menu() -> str:
    await fail_all(InvalidParams("No such day."))
    return ""


if __name__ == "__main__":
    mcp.run("stdio")
"""


@pytest.fixture(params=["stdio", "direct", "httptools", "h11"])
async def client(request: pytest.FixtureRequest, tmp_path: Path, revision: str) -> AsyncIterator[Client]:
    """A client of the server on one transport."""
    if request.param == "stdio":
        (tmp_path / "shop.py").write_text(SERVER)
        async with Client(StdioCommand(sys.executable, str(tmp_path / "shop.py")), revision=revision) as connected:
            yield connected
        return
    names: dict[str, object] = {"__name__": "shop"}
    exec(SERVER, names)
    with serving(names["mcp"], request.param) as port:  # type: ignore[arg-type] # an MCPServer
        async with Client(f"http://127.0.0.1:{port}/mcp", revision=revision) as connected:
            yield connected


@pytest.mark.parametrize("revision", ERAS)
async def test_a_group_means_what_its_members_mean_on_every_transport(client: Client) -> None:
    assert (await client.call_tool("answers", {}))["content"][0]["text"] == "closed\nsold out"
    hidden = (await client.call_tool("hidden", {}))["content"][0]["text"]
    assert "error id" in hidden
    assert "hunter2" not in hidden
    with pytest.raises(MCPError, match=r"^No such day\.$") as caught:
        await client.read_resource("menu://today")
    assert caught.value.code == -32602
