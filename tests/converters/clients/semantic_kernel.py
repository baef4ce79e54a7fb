"""Semantic Kernel: MCP tools as a plugin, declared for OpenAI's API."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from semantic_kernel import Kernel
from semantic_kernel.connectors.ai.function_calling_utils import kernel_function_metadata_to_function_call_format
from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin

from tests.converters.clients import playing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Plugin(MCPStreamableHttpPlugin):
    """Raises where a result is an error: the library gives its text to the model like any other."""

    async def call_tool(self, tool_name: str, **arguments: Any) -> Any:
        result = await self.session.call_tool(tool_name, arguments)
        if result.isError:
            raise playing.CallError(result.content[0].text)
        return await super().call_tool(tool_name, **arguments)


class Connection:
    def __init__(self, kernel: Kernel, plugin: Plugin) -> None:
        self._kernel = kernel
        self._plugin = plugin
        self._functions = kernel.get_plugin("server").functions

    async def declarations(self) -> dict[str, dict[str, Any]]:
        names = [tool.name for tool in (await self._plugin.session.list_tools()).tools]
        tools = [self._functions[name] for name in names if name in self._functions]  # prompts are functions, too
        return {"openai": playing.each(_declaration, tools)}

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        result = await self._kernel.invoke(self._functions[name], **arguments)
        return str(result)

    async def read(self, uri: str, name: str) -> str:
        return (await self._plugin.session.read_resource(uri)).model_dump_json()

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return str(await self._kernel.invoke(self._functions[name], **arguments))


def _declaration(function: Any) -> dict[str, Any]:
    declaration = kernel_function_metadata_to_function_call_format(function.metadata)["function"]
    return {**declaration, "name": function.name}  # without the plugin's name


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    kernel = Kernel()
    async with Plugin(name="server", url=url) as plugin:
        kernel.add_plugin(plugin)
        yield Connection(kernel, plugin)


if __name__ == "__main__":
    playing.main(connect, "semantic_kernel", "mcp/")
