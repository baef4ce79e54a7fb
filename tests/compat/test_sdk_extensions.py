"""Extensions of the official SDK: their tools, resources and methods, and what they do around calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp import types
from pydantic import BaseModel

from funcmcp import MCPError
from funcmcp.compat import MCPServer
from funcmcp.compat.mcp import (
    Extension,
    MethodBinding,
    ResourceBinding,
    TextResource,
    ToolBinding,
    require_client_extension,
)
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import Sequence


class Query(BaseModel):
    text: str


class Search(Extension):
    identifier = "com.example/search"

    def __init__(self, versions: frozenset[str] | None = None) -> None:
        self.versions = versions

    def settings(self) -> dict[str, Any]:
        return {"languages": ["en"]}

    def tools(self) -> Sequence[ToolBinding]:
        def find(text: str) -> str:
            return f"found {text}"

        return [ToolBinding(find, meta={"a": 1}, kwargs={"title": "Find"})]

    def resources(self) -> Sequence[ResourceBinding]:
        return [ResourceBinding(TextResource("search://help", "Ask."))]

    def methods(self) -> Sequence[MethodBinding]:
        async def query(ctx: Any, params: Query) -> dict[str, Any]:
            if params.text == "secret":
                require_client_extension(ctx, "com.example/secrets")
            return {"found": params.text, "revision": ctx.protocol_version}

        return [MethodBinding("com.example/search/query", Query, query, self.versions)]


class Loud(Extension):
    identifier = "com.example/loud"

    async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Any) -> Any:
        if params.arguments == {"text": "stop"}:
            content: list[types.ContentBlock] = [types.TextContent(type="text", text="stopped")]
            return types.CallToolResult(content=content, structured_content={"result": "stopped"})
        result = await call_next(ctx)
        assert isinstance(result, types.CallToolResult)
        result.content.append(types.TextContent(type="text", text=ctx.method))
        return result


async def test_an_extension_adds_tools_resources_and_methods() -> None:
    async with Client(MCPServer("Shop", extensions=[Search()])) as client:
        assert client.capabilities["extensions"]["com.example/search"] == {"languages": ["en"]}
        (tool,) = await client.list_tools()
        assert (tool["title"], tool["_meta"]) == ("Find", {"a": 1})
        assert (await client.call_tool("find", {"text": "tea"})).text == "found tea"
        assert (await client.read_resource("search://help")).text == "Ask."
        result = await client.request("com.example/search/query", {"text": "tea"})
        assert (result["found"], result["revision"]) == ("tea", "2026-07-28")
        with pytest.raises(MCPError, match="Invalid params"):
            await client.request("com.example/search/query", {"text": 5})
        with pytest.raises(MCPError, match="did not declare required extension") as error:
            await client.request("com.example/search/query", {"text": "secret"})
        assert (error.value.code, error.value.data) == (
            -32021,
            {"requiredCapabilities": {"extensions": {"com.example/secrets": {}}}},
        )


async def test_a_method_exists_in_its_revisions_only() -> None:
    server = MCPServer("Shop", extensions=[Search(frozenset({"2025-11-25"}))])
    async with Client(server, revision="2026-07-28") as client:
        with pytest.raises(MCPError, match="Method not found"):
            await client.request("com.example/search/query", {"text": "tea"})


async def test_an_extension_runs_around_calls_of_all_tools() -> None:
    mcp = MCPServer("Shop", extensions=[Loud(), Search()])
    async with Client(mcp) as client:
        assert (await client.call_tool("find", {"text": "stop"})).text == "stopped"
        result = await client.call_tool("find", {"text": "tea"})
        assert [block["text"] for block in result["content"]] == ["found tea", "tools/call"]
        assert result.structured_content == {"result": "found tea"}


def test_extensions_that_the_sdk_refuses_are_refused() -> None:
    with pytest.raises(TypeError, match="reverse-DNS prefix required"):
        type("Wrong", (Extension,), {"identifier": "search"})
    with pytest.raises(TypeError, match="reverse-DNS prefix required"):
        MCPServer("Shop", extensions=[Extension()])
    with pytest.raises(ValueError, match="already registered"):
        MCPServer("Shop", extensions=[Search(), Search()])
    with pytest.raises(ValueError, match="which is already registered"):
        MCPServer("Shop", extensions=[Search(), type("Other", (Search,), {"identifier": "com.example/other"})()])
    with pytest.raises(ValueError, match="cannot bind spec method"):
        MethodBinding("tools/list", Query, lambda *_: None)  # type: ignore[arg-type] # never called
    with pytest.raises(ValueError, match="empty protocol_versions"):
        Search(frozenset()).methods()
