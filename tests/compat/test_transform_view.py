"""Transforms of an author's own, which are asked by each request."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError, MCPServer, RegistrationError, ToolError
from funcmcp.compat import (
    CatalogTransform,
    Context,
    FastMCP,
    Namespace,
    StaticTokenVerifier,
    Tool,
    Transform,
    VersionFilter,
    get_access_token,
)
from funcmcp.testing import Client

pytestmark = pytest.mark.branches("Requests get the features of a view.")


class Guarded(Transform):
    """Hides what is tagged "secret", in lists and calls, from all but Ann."""

    def shown(self, component: Any) -> bool:
        token = get_access_token()
        return "secret" not in component.tags or (token is not None and token.client_id == "ann")

    async def list_tools(self, tools: Any) -> Any:
        return [tool for tool in tools if self.shown(tool)]

    async def get_tool(self, name: str, call_next: Any, *, version: Any = None) -> Any:
        tool = await call_next(name, version=version)
        return tool if tool is not None and self.shown(tool) else None

    async def list_resources(self, resources: Any) -> Any:
        return [resource for resource in resources if self.shown(resource)]

    async def get_resource(self, uri: str, call_next: Any, *, version: Any = None) -> Any:
        resource = await call_next(uri, version=version)
        return resource if resource is not None and self.shown(resource) else None


class Louder(Transform):
    """Changes all tools: their names and their results."""

    async def list_tools(self, tools: Any) -> Any:
        return [self.louder(tool) for tool in tools]

    async def get_tool(self, name: str, call_next: Any, *, version: Any = None) -> Any:
        tool = await call_next(name.lower(), version=version)
        return None if tool is None or not name.isupper() else self.louder(tool)

    def louder(self, tool: Any) -> Tool:
        async def run(**arguments: Any) -> str:
            result = await tool.run(arguments)
            return str(result.content[0].text).upper()

        louder: Tool = Tool.from_tool(tool, name=tool.name.upper(), transform_fn=run)
        return louder


def shop(*transforms: Any, **options: Any) -> FastMCP:
    mcp = FastMCP("shop", transforms=transforms, **options)
    mcp.tool(lambda: "open", name="open")
    mcp.tool(lambda: "secret", name="secret", tags={"secret"})
    mcp.resource("shop://secret", name="secret", tags={"secret"})(lambda: "secret")
    mcp.resource("shop://{name}", name="any")(lambda name: f"template {name}")
    return mcp


async def test_what_a_transform_hides_from_a_caller_is_not_served() -> None:
    tokens: dict[str, Any] = {name: {"client_id": name, "scopes": []} for name in ("ann", "bob")}
    mcp = shop(Guarded(), auth=StaticTokenVerifier(tokens))
    for name, sees in (("ann", True), ("bob", False)):
        async with Client(mcp, headers={"authorization": f"Bearer {name}"}) as client:
            assert ("secret" in [tool.name for tool in await client.list_tools()]) is sees
            assert (len(await client.list_resources()) == 1) is sees
            if sees:
                assert (await client.call_tool("secret")).text == "secret"
                assert (await client.read_resource("shop://secret")).text == "secret"
                continue
            with pytest.raises(ToolError, match="Unknown tool"):
                await client.call_tool("secret", raise_on_error=True)
            with pytest.raises(MCPError, match="not found"):
                await client.read_resource("shop://secret")
            assert (await client.read_resource("shop://other")).text == "template other"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_transform_changes_names_and_results(revision: str) -> None:
    mcp = shop(Louder())
    child = MCPServer("child")
    child.tool(name="far")(lambda: "far")
    mcp.mount(child)
    async with Client(mcp, revision=revision) as client:
        assert [tool.name for tool in await client.list_tools()] == ["OPEN", "SECRET", "FAR"]
        assert (await client.call_tool("OPEN")).text == "OPEN"
        assert (await client.call_tool("FAR")).text == "FAR"
        with pytest.raises(ToolError, match="Unknown tool"):
            await client.call_tool("open", raise_on_error=True)
    tool = await mcp.get_tool("OPEN")
    assert tool is not None
    assert await mcp.get_tool("open") is None


async def test_a_transform_gives_nobody_the_rights_of_others() -> None:
    tokens: dict[str, Any] = {name: {"client_id": name, "scopes": [name]} for name in ("user", "admin")}
    mcp = FastMCP("shop", auth=StaticTokenVerifier(tokens), transforms=[Louder()])
    mcp.tool(lambda: "erased", name="erase", scopes=["admin"])
    for name, may_use in (("user", False), ("admin", True)):
        async with Client(mcp, headers={"authorization": f"Bearer {name}"}) as client:
            if may_use:
                assert (await client.call_tool("ERASE")).text == "ERASED"
                continue
            with pytest.raises(ToolError):
                await client.call_tool("ERASE", raise_on_error=True)


async def test_transforms_and_rules_apply_in_their_order() -> None:
    mcp = shop(Louder(), Namespace("api"))
    mcp.disable(names={"api_SECRET"}).disable(names={"open"})
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["api_OPEN"]
        assert (await client.call_tool("api_OPEN")).text == "OPEN"
        assert (await client.read_resource("shop://api/secret")).text == "secret"
        assert (await client.read_resource("shop://api/x")).text == "template x"
        for name in ("api_SECRET", "SECRET", "secret", "open"):
            with pytest.raises(ToolError, match="Unknown tool"):
                await client.call_tool(name, raise_on_error=True)
        for uri in ("shop://secret", "shop://x"):
            with pytest.raises(MCPError, match="not found"):
                await client.read_resource(uri)
        mcp.enable(names={"api_SECRET"}, only=True)
        assert [tool.name for tool in await client.list_tools()] == ["api_SECRET"]
        assert await client.list_resources() == []


async def test_a_catalog_is_read_with_the_caller_and_without_the_transform() -> None:
    class Counting(CatalogTransform):
        async def transform_tools(self, tools: Any) -> Any:
            return [self.count_tool()]

        async def get_tool(self, name: str, call_next: Any, *, version: Any = None) -> Any:
            return self.count_tool() if name == "count" else await call_next(name, version=version)

        def count_tool(self) -> Tool:
            async def count(ctx: Context) -> str:
                tools = await self.get_tool_catalog(ctx)
                return ", ".join(f"{tool.name} {tool.version} {tool.get_meta()['fastmcp']}" for tool in tools)

            return Tool(count, "count")

    mcp = FastMCP("shop")
    for version in ("1", "2", "3"):
        mcp.tool(lambda: "x", name="read", version=version)
    mcp.add_transform(VersionFilter(version_lt="3"))
    mcp.add_transform(Counting())
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["count"]
        text = (await client.call_tool("count")).text
        assert text.startswith("read 2 ")
        assert "'versions': ['2', '1']" in text
        assert (await client.call_tool("read")).text == "x"


def test_a_server_with_such_transforms_is_not_mounted_or_searched_without_them() -> None:
    above, mcp = FastMCP("above"), shop(Guarded())
    with pytest.raises(RegistrationError, match="Add them to above"):
        above.mount(mcp)
    with pytest.raises(RegistrationError, match="transforms for each request"):
        mcp.tool_search()
    mounted = shop()
    above.mount(mounted)
    with pytest.raises(RegistrationError, match="is mounted"):
        mounted.add_transform(Guarded())
    assert not mounted.has_view
