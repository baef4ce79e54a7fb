"""langchain-mcp-adapters, with the models of OpenAI and Google."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI

from tests.converters.clients import playing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Connection:
    def __init__(self, session: Any, tools: list[Any]) -> None:
        self._session = session
        self._tools = {tool.name: tool for tool in tools}

    async def declarations(self) -> dict[str, dict[str, Any]]:
        tools = list(self._tools.values())
        return {"openai": playing.each(_for_openai, tools), "gemini": playing.each(_for_google, tools)}

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        request = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
        message = await self._tools[name].ainvoke(request)
        if message.status == "error":
            raise playing.CallError(str(message.content))
        return json.dumps(message.content)

    async def read(self, uri: str, name: str) -> str:
        (blob,) = await load_mcp_resources(self._session, uris=uri)
        return repr(blob.data)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        (message,) = await load_mcp_prompt(self._session, name, arguments=arguments)
        return str(message.content)


OPENAI = ChatOpenAI(model="gpt-5", api_key="none")
GOOGLE = ChatGoogleGenerativeAI(model="gemini-3-pro", google_api_key="none")


def _for_openai(tool: Any) -> dict[str, Any]:
    (declared,) = OPENAI.bind_tools([tool]).kwargs["tools"]
    declaration: dict[str, Any] = declared["function"]
    return declaration


def _for_google(tool: Any) -> dict[str, Any]:
    request = GOOGLE._prepare_request([HumanMessage("Hello")], tools=GOOGLE.bind_tools([tool]).kwargs["tools"])
    (declared,) = request["config"].tools
    declaration: dict[str, Any] = declared.function_declarations[0].model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    return declaration


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    client = MultiServerMCPClient({"server": {"transport": "streamable_http", "url": url}})
    async with client.session("server") as session:
        yield Connection(session, await load_mcp_tools(session))


if __name__ == "__main__":
    playing.main(connect, "langchain", "mcp/")
