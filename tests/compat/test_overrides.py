"""Subclasses that override what answers requests in FastMCP and the official SDK."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import (
    CallNext,
    Context,
    FastMCP,
    MCPServer,
    Middleware,
    MiddlewareContext,
    ResourceContent,
    ResourceResult,
    ToolError,
)
from funcmcp.content import Text
from funcmcp.testing import Client

pytestmark = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


def fill(mcp: FastMCP) -> Any:
    """Register a feature of each kind."""

    @mcp.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool()
    async def add_twice(ctx: Context, a: int) -> str:
        result = await ctx.fastmcp.call_tool("add", {"a": a, "b": a})
        return str(result.structured_content["result"])

    @mcp.resource("note://one")
    def note() -> str:
        return "First."

    @mcp.prompt()
    def greet(name: str) -> str:
        return f"Hello {name}"

    return mcp


class FilteringServer(FastMCP):
    """A server as FastMCP 2 lets authors write it: the lists of the protocol are filtered."""

    async def _list_tools_mcp(self) -> list[Any]:
        assert self._mcp_server.request_context.lifespan_context == {}
        return [tool for tool in (await self.get_tools()).values() if tool.name != "add_twice"]

    async def list_resources(self, **_: Any) -> list[Any]:
        return []


class StrictServer(MCPServer):
    """A server of the SDK 2.x whose calls are checked."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:  # type: ignore[override]
        if "c" in arguments:
            raise ToolError("c is not an argument")
        result = await super().call_tool(name, {**arguments, "b": 40}, context)
        assert result.structured_content is not None
        return result


class CountingServer(FastMCP):
    """A server that counts the calls of its methods."""

    calls = 0

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:  # type: ignore[override]
        self.calls += 1
        return await super().call_tool(name, arguments, **options)


class ReplacingServer(FastMCP):
    """A server that answers in the forms of the originals, without their own answers."""

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:  # type: ignore[override]
        if name == "blocks":
            return [Text("one"), Text("two")]
        return ([Text("3")], {"sum": 3}) if name == "both" else {"sum": 3}

    async def read_resource(self, uri: Any) -> Any:  # type: ignore[override]
        return ResourceResult([ResourceContent(f"of {uri}", "text/html")])

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:  # type: ignore[override]
        answer = await super().get_prompt(name, {"name": "Ada"})
        answer.description = "changed"
        return answer


async def test_an_override_filters_lists(revision: str) -> None:
    async with Client(fill(FilteringServer("f")), revision=revision) as client:
        assert [tool.name for tool in await client.list_tools()] == ["add"]
        assert await client.list_resources() == []
        assert (await client.call_tool("add_twice", {"a": 2})).text == "4"


async def test_an_override_checks_and_changes_calls(revision: str) -> None:
    async with Client(fill(StrictServer("s")), revision=revision) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "41"
        refused = await client.call_tool("add", {"a": 1, "b": 2, "c": 3})
    assert (refused.is_error, refused.text) == (True, "c is not an argument")


async def test_an_override_runs_once_for_each_call(revision: str) -> None:
    mcp = fill(CountingServer("c"))
    async with Client(mcp, revision=revision) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert mcp.calls == 1
        assert (await client.call_tool("add_twice", {"a": 2})).text == "4"  # whose tool makes another call
        assert mcp.calls == 3
    await mcp.call_tool("add", {"a": 1, "b": 2})
    assert mcp.calls == 4


async def test_an_override_answers_in_the_forms_of_the_originals(revision: str) -> None:
    async with Client(fill(ReplacingServer("r")), revision=revision) as client:
        assert [block.text for block in (await client.call_tool("blocks")).content] == ["one", "two"]
        for name in ("both", "structured"):
            assert (await client.call_tool(name)).structured_content == {"sum": 3}
        (contents,) = (await client.read_resource("note://one")).contents
        assert (contents.text, contents.mime_type) == ("of note://one", "text/html")
        answer = await client.get_prompt("greet", {"name": "Bob"})
        assert (answer.description, answer.messages[0].content.text) == ("changed", "Hello Ada")


async def test_an_override_of_get_tool_hides_and_adds_tools(revision: str) -> None:
    class Dynamic(FastMCP):
        async def get_tool(self, name: str) -> Any:  # type: ignore[override]
            if name == "dynamic":
                return self._tool_class(lambda: "made for this call", "dynamic")
            return None if name == "add_twice" else await super().get_tool(name)

    async with Client(fill(Dynamic("d")), revision=revision) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert (await client.call_tool("dynamic")).text == "made for this call"
        with pytest.raises(Exception, match="Unknown tool"):
            await client.call_tool("add_twice", {"a": 1}, raise_on_error=True)


async def test_middleware_runs_inside_of_an_override(revision: str) -> None:
    class Doubling(Middleware):
        async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            context.message.arguments["a"] *= 2
            return await call_next(context)

    class Adding(FastMCP):
        async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:  # type: ignore[override]
            return await super().call_tool(name, {**(arguments or {}), "a": 10}, **options)

    async with Client(fill(Adding("a", middleware=[Doubling()])), revision=revision) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "22"


@pytest.mark.parametrize("name", ["_on_call_tool", "_run_middleware", "get_resource"])
def test_an_override_that_nothing_calls_is_refused(name: str, revision: str) -> None:
    del revision

    async def override(self: Any, *arguments: Any) -> Any:
        raise NotImplementedError

    mixin = type("Mixin", (), {name: override})
    with pytest.raises(TypeError, match=f"Shop overrides {name}, which funcmcp does not call for requests"):
        type("Shop", (mixin, FastMCP), {})
