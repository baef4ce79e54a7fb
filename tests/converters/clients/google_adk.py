"""google-adk: MCP tools as declarations of Gemini's API, in JSON Schema."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams

from tests.converters.clients import playing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Connection:
    def __init__(self, toolset: McpToolset, tools: list[Any]) -> None:
        self._toolset = toolset
        self._tools = {tool.name: tool for tool in tools}

    async def declarations(self) -> dict[str, dict[str, Any]]:
        return {"gemini json": playing.each(_declaration, list(self._tools.values()))}

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        session = await self._tools[name]._mcp_session_manager.create_session()
        result = await session.call_tool(self._tools[name].raw_mcp_tool.name, arguments=arguments)
        if result.is_error:
            raise playing.CallError(result.content[0].text)
        return json.dumps(result.model_dump(mode="json", exclude_none=True))

    async def read(self, uri: str, name: str) -> str:
        return json.dumps([item.model_dump(mode="json") for item in await self._toolset.read_resource(name)])

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        raise NotImplementedError("google-adk has no prompts of MCP.")


def _declaration(tool: Any) -> dict[str, Any]:
    declaration = tool._get_declaration().model_dump(mode="json", by_alias=True, exclude_none=True)
    return {**declaration, "parameters": declaration["parametersJsonSchema"]}


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=url))
    try:
        yield Connection(toolset, await toolset.get_tools())
    finally:
        await toolset.close()


if __name__ == "__main__":
    playing.main(connect, "google/adk", "google/genai", "mcp/")
