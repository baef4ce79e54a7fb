"""FastMCP's `ServerExtension`: what a server declares, its methods, and calls of tools."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from funcmcp import MCPError
from funcmcp.compat import FastMCP, ServerExtension, ToolResult
from funcmcp.compat.fastmcp.server.extensions import MethodBinding, read_client_extension_settings
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

NAME = "com.example/search"


class Params(BaseModel):
    text: str


class Search(ServerExtension):
    identifier = NAME
    auto_register = True

    def __init__(self) -> None:
        self.log: list[str] = []

    def settings(self) -> dict[str, Any]:
        return {"version": 1}

    def methods(self) -> Sequence[MethodBinding]:
        async def search(_context: Any, params: Params) -> dict[str, Any]:
            return {"found": [tool.name for tool in await self.server.list_tools()], "text": params.text}

        return [MethodBinding("com.example/search/find", Params, search)]

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self.log.append("start")
        yield
        self.log.append("stop")

    async def intercept_tool_call(self, params: Any, context: Any, call_next: Any) -> Any:
        self.log.append(params.name)
        if params.name == "blocked":
            return ToolResult(content="No.")
        assert context.fastmcp is self.server
        return await call_next()


@pytest.fixture
def mcp() -> FastMCP:
    server = FastMCP("Server")
    server.tool(lambda: "yes", name="allowed")
    server.tool(lambda: "yes", name="blocked")
    return server


async def test_an_extension_is_declared_and_serves_its_methods(mcp: FastMCP) -> None:
    extension = Search()
    mcp.add_extension(extension)
    async with Client(mcp) as client:
        assert client.capabilities["extensions"][NAME] == {"version": 1}
        result = await client.request("com.example/search/find", {"text": "a"})
        assert (result["found"], result["text"]) == (["allowed", "blocked"], "a")
        with pytest.raises(MCPError, match="Invalid params"):
            await client.request("com.example/search/find", {})
        assert extension.log == ["start"]
    assert extension.log == ["start", "stop"]


async def test_an_extension_runs_around_calls(mcp: FastMCP) -> None:
    extension = Search()
    mcp.add_extension(extension)
    async with Client(mcp) as client:
        assert (await client.call_tool("allowed")).content[0].text == "yes"
        assert (await client.call_tool("blocked")).content[0].text == "No."
    assert extension.log == ["start", "allowed", "blocked", "stop"]


async def test_a_server_above_gets_an_extension_that_is_shared(mcp: FastMCP) -> None:
    mcp.add_extension(Search())
    above = FastMCP("Above")
    above.mount(mcp)
    async with Client(above) as client:
        assert NAME in client.capabilities["extensions"]


async def test_an_extension_is_added_once_and_before_the_start(mcp: FastMCP) -> None:
    mcp.add_extension(Search())
    with pytest.raises(ValueError, match="already registered"):
        mcp.add_extension(Search())

    class Other(ServerExtension):
        identifier = "com.example/other"

    async with Client(mcp):
        with pytest.raises(RuntimeError, match="lifespan has already started"):
            mcp.add_extension(Other())


def test_an_extension_needs_a_name_and_a_server() -> None:
    with pytest.raises(TypeError, match="reverse-DNS"):
        type("Bad", (ServerExtension,), {"identifier": "bad"})
    with pytest.raises(RuntimeError, match="not bound"):
        _ = Search().server


def test_the_settings_of_a_client_are_in_the_request() -> None:
    meta = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {NAME: {"limit": 5}}}}
    assert Search().client_settings(SimpleNamespace(meta=meta)) == {"limit": 5}
    assert read_client_extension_settings(SimpleNamespace(params={"_meta": meta}), NAME) == {"limit": 5}
    assert read_client_extension_settings(SimpleNamespace(params=None), NAME) is None
