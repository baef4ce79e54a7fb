"""google-genai: MCP tools as declarations of Gemini's API."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from google.genai._adapters import McpToGenAiToolAdapter
from google.genai.types import FunctionCall
from mcp import Client

from tests.converters.clients import playing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Connection:
    def __init__(self, client: Client, listed: Any) -> None:
        self._client = client
        self._listed = listed
        self._adapter = McpToGenAiToolAdapter(client.session, listed)

    async def declarations(self) -> dict[str, dict[str, Any]]:
        try:
            tools = self._adapter.tools  # all or none, as in a request
        except Exception:
            from google.genai._mcp_utils import mcp_to_gemini_tool

            return {"gemini": playing.each(lambda tool: _declaration(mcp_to_gemini_tool(tool)), self._listed.tools)}
        return {"gemini": {tool.function_declarations[0].name: _declaration(tool) for tool in tools}}

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        result = await self._adapter.call_tool(FunctionCall(name=name, args=arguments))
        if result.is_error:
            raise playing.CallError(result.content[0].text)
        return result.model_dump_json(exclude_none=True)

    async def read(self, uri: str, name: str) -> str:
        return (await self._client.read_resource(uri)).model_dump_json()

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self._client.get_prompt(name, arguments)).model_dump_json()


def _declaration(tool: Any) -> dict[str, Any]:
    declaration: dict[str, Any] = tool.function_declarations[0].model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    return declaration


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    async with Client(url, mode="legacy") as client:
        yield Connection(client, await client.list_tools())


if __name__ == "__main__":
    playing.main(connect, "google/genai", "mcp/")
