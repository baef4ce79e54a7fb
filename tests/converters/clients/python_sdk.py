"""The official Python SDK: 1.x in the environment sdk1, 2.x in the others."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import mcp

from tests.converters.clients import playing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Connection:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def declarations(self) -> dict[str, dict[str, Any]]:
        return {"": playing.each(_declaration, (await self._client.list_tools()).tools)}

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        result = await self._client.call_tool(name, arguments)
        dumped = result.model_dump(mode="json", by_alias=True)
        if dumped["isError"]:
            raise playing.CallError(result.content[0].text)
        return str(result.model_dump_json())

    async def read(self, uri: str, name: str) -> str:
        return str((await self._client.read_resource(uri)).model_dump_json())

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return str((await self._client.get_prompt(name, arguments)).model_dump_json())


def _declaration(tool: Any) -> dict[str, Any]:
    listed = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"name": listed["name"], "description": listed.get("description"), "parameters": listed["inputSchema"]}


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    async with AsyncExitStack() as stack:
        if hasattr(mcp, "Client"):  # 2.x
            yield Connection(await stack.enter_async_context(mcp.Client(url)))
            return
        from mcp.client import streamable_http

        connecting = streamable_http.streamable_http_client(url)
        read, write, *_ = await stack.enter_async_context(connecting)
        session = await stack.enter_async_context(mcp.ClientSession(read, write))
        await session.initialize()
        yield Connection(session)


if __name__ == "__main__":
    playing.main(connect, "mcp/")
