"""mcp-use: its adapter for LangChain, declared for OpenAI's API."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from langchain_openai import ChatOpenAI
from mcp_use import MCPClient
from mcp_use.agents.adapters import LangChainAdapter

from tests.converters.clients import playing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


MODEL = ChatOpenAI(model="gpt-5", api_key="none")


class Connection:
    def __init__(self, connector: Any) -> None:
        self._connector = connector
        self._adapter = LangChainAdapter()
        self._tools: dict[str, Any] = {}

    async def declarations(self) -> dict[str, dict[str, Any]]:
        return {"openai": playing.each(self._declaration, await self._connector.list_tools())}

    def _declaration(self, listed: Any) -> dict[str, Any]:
        tool = self._tools[listed.name] = self._adapter._convert_tool(listed, self._connector)
        (declared,) = MODEL.bind_tools([tool]).kwargs["tools"]
        declaration: dict[str, Any] = declared["function"]
        return declaration

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        result = await self._tools[name].ainvoke(arguments)
        if isinstance(result, dict) and "error" in result:
            raise playing.CallError(json.dumps(result))
        return json.dumps(result)

    async def read(self, uri: str, name: str) -> str:
        return (await self._connector.read_resource(uri)).model_dump_json()

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self._connector.get_prompt(name, arguments)).model_dump_json()


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    client = MCPClient({"mcpServers": {"server": {"url": url}}})
    try:
        session = await client.create_session("server")
        yield Connection(session.connector)
    finally:
        await client.close_all_sessions()


if __name__ == "__main__":
    playing.main(connect, "mcp_use", "jsonschema_pydantic", "langchain", "mcp/")
