"""openai-agents, with and without strict schemas."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStreamableHttp, MCPUtil
from agents.models.chatcmpl_converter import Converter
from agents.tool_context import ToolContext

from tests.converters.clients import playing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Server(MCPServerStreamableHttp):
    """Raises where a result is an error: the library gives its text to the model like any other."""

    async def call_tool(self, *arguments: Any, **options: Any) -> Any:
        result = await super().call_tool(*arguments, **options)
        if result.isError:
            raise playing.CallError(result.content[0].text)
        return result


class Connection:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._tools: dict[str, Any] = {}

    async def declarations(self) -> dict[str, dict[str, Any]]:
        strict = await self._function_tools(strict=True)
        loose = await self._function_tools(strict=False)
        self._tools = {tool.name: tool for tool in loose}
        return {"openai strict": playing.each(_declaration, strict), "openai": playing.each(_declaration, loose)}

    async def _function_tools(self, *, strict: bool) -> list[Any]:
        agent, run = Agent(name="agent"), RunContextWrapper(context=None)
        return await MCPUtil.get_function_tools(self._server, strict, run, agent, failure_error_function=None)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        text = json.dumps(arguments)
        context = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=text)
        return json.dumps(await self._tools[name].on_invoke_tool(context, text))

    async def read(self, uri: str, name: str) -> str:
        return (await self._server.read_resource(uri)).model_dump_json()

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self._server.get_prompt(name, arguments)).model_dump_json()


def _declaration(tool: Any) -> dict[str, Any]:
    return dict(Converter.tool_to_openai(tool)["function"])


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    async with Server({"url": url}, name="server", cache_tools_list=True) as server:
        yield Connection(server)


if __name__ == "__main__":
    playing.main(connect, "agents/", "mcp/")
