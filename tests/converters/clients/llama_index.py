"""LlamaIndex: MCP tools as function tools, declared for OpenAI's API."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from llama_index.core.tools.function_tool import FunctionTool
from llama_index.core.tools.types import ToolMetadata
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

from tests.converters.clients import playing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Connection:
    def __init__(self, client: BasicMCPClient) -> None:
        self._client = client
        self._tools: dict[str, Any] = {}

    async def declarations(self) -> dict[str, dict[str, Any]]:
        listed = (await self._client.list_tools()).tools
        return {"openai": playing.each(self._declaration, listed)}

    def _declaration(self, listed: Any) -> dict[str, Any]:
        """Do what `McpToolSpec.to_tool_list_async` does, for one tool."""
        spec = McpToolSpec(self._client)
        model = spec.create_model_from_json_schema(listed.input_schema, model_name=f"{listed.name}_Schema")
        metadata = ToolMetadata(name=listed.name, description=listed.description, fn_schema=model)
        function = spec._create_tool_fn(listed.name)
        self._tools[listed.name] = FunctionTool.from_defaults(async_fn=function, tool_metadata=metadata)
        declaration: dict[str, Any] = metadata.to_openai_tool()["function"]
        return declaration

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        output = await self._tools[name].acall(**arguments)
        if output.is_error or output.raw_output.is_error:
            raise playing.CallError(output.content)
        return str(output.content)

    async def read(self, uri: str, name: str) -> str:
        return (await self._client.read_resource(uri)).model_dump_json()

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return str(await self._client.get_prompt(name, arguments))


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    yield Connection(BasicMCPClient(url))


if __name__ == "__main__":
    playing.main(connect, "llama_index", "mcp/")
