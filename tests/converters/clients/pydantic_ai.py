"""pydantic-ai, with the models of OpenAI and Google."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.google import GoogleModel, _function_declaration_from_tool
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RunUsage

from tests.converters.clients import playing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


OPENAI = OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(api_key="none"))
GOOGLE = GoogleModel("gemini-3-pro", provider=GoogleProvider(api_key="none"))


class Connection:
    def __init__(self, toolset: MCPToolset[None], tools: dict[str, Any]) -> None:
        self._toolset = toolset
        self._tools = tools

    async def declarations(self) -> dict[str, dict[str, Any]]:
        definitions = [tool.tool_def for tool in self._tools.values()]
        return {"openai": playing.each(_for_openai, definitions), "gemini json": playing.each(_for_google, definitions)}

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        tool = self._tools[name]
        validated = tool.args_validator.validate_python(arguments)
        return str(await self._toolset.call_tool(name, validated, _context(), tool))

    async def read(self, uri: str, name: str) -> str:
        return str(await self._toolset.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return str(await self._toolset.get_prompt(name, arguments))


def _context() -> RunContext[None]:
    return RunContext(deps=None, model=TestModel(), usage=RunUsage())


def _for_openai(definition: Any) -> dict[str, Any]:
    _, request = OPENAI.prepare_request(None, ModelRequestParameters(function_tools=[definition]))
    return dict(OPENAI._map_tool_definition(request.function_tools[0], visibility="visible"))


def _for_google(definition: Any) -> dict[str, Any]:
    _, request = GOOGLE.prepare_request(None, ModelRequestParameters(function_tools=[definition]))
    declared = _function_declaration_from_tool(request.function_tools[0])
    return {**declared, "parameters": declared["parameters_json_schema"]}


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    async with MCPToolset(url) as toolset:
        yield Connection(toolset, await toolset.get_tools(_context()))


if __name__ == "__main__":
    playing.main(connect, "pydantic_ai", "fastmcp", "mcp/")
