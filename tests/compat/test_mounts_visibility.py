"""What clients see of a mounted server: what its middleware, its overridden lists and its session rules leave."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError
from funcmcp.compat import CallNext, Context, FastMCP, Middleware, MiddlewareContext, require_scopes
from funcmcp.testing import Client
from funcmcp.transforms import ResourcesAsTools


class Hiding(Middleware):
    """Leaves names with "secret" out of all lists."""

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return [item for item in await call_next(context) if "secret" not in item.name]

    on_list_resources = on_list_resource_templates = on_list_prompts = on_list_tools


class Refusing(Middleware):
    """Answers no list."""

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        raise PermissionError

    on_list_resources = on_list_resource_templates = on_list_prompts = on_list_tools


class Overriding(FastMCP):
    """Leaves names with "secret" out of its lists of tools."""

    async def list_tools(self, **options: Any) -> Any:
        return [tool for tool in await super().list_tools(**options) if "secret" not in tool.name]


def filled(mcp: FastMCP) -> FastMCP:
    for name in ("open", "secret"):
        mcp.tool(lambda: "tool", name=name, tags={name})
        mcp.resource(f"x://{name}", name=name, tags={name})(lambda: "resource")
        mcp.resource(f"{name}://item/{{number}}", name=name, tags={name})(template)
        mcp.prompt(lambda: "prompt", name=name, tags={name})

    @mcp.tool
    async def hide(ctx: Context) -> None:
        await ctx.disable_components(names={"secret", "x://secret"})

    @mcp.tool
    async def reset(ctx: Context) -> None:
        await ctx.reset_visibility()

    return mcp


def template(number: str) -> str:
    return f"template {number}"


async def listed(client: Client) -> list[str]:
    names = [tool.name for tool in await client.list_tools()]
    names += [resource.name for resource in await client.list_resources()]
    names += [resource.name for resource in await client.list_resource_templates()]
    return names + [prompt.name for prompt in await client.list_prompts()]


def mounted(child: FastMCP, *namespaces: str | None) -> FastMCP:
    """Return a server above another one, through as many levels as there are namespaces."""
    for namespace in namespaces:
        above = FastMCP("above")
        above.mount(child, namespace)
        child = above
    return child


@pytest.mark.parametrize("namespaces", [("child",), (None,), ("child", "a")])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_lists_pass_the_hooks_of_mounted_servers(namespaces: tuple[str | None, ...], revision: str) -> None:
    for hook, count in ((Hiding(), 6), (Refusing(), 0)):
        mcp = mounted(filled(FastMCP("child", middleware=[hook])), *namespaces)
        async with Client(mcp, revision=revision) as client:
            names = await listed(client)
            assert len(names) == count
            assert not any("secret" in name for name in names)
            tool = "_".join([*(name for name in reversed(namespaces) if name), "secret"])
            assert (await client.call_tool(tool)).text == "tool"  # a hook of lists does not forbid calls


async def test_lists_pass_the_overridden_lists_and_later_middleware_of_mounted_servers() -> None:
    child = filled(Overriding("child"))
    mcp = mounted(child, "child")
    async with Client(mcp) as client:
        names = await listed(client)
        assert "child_open" in names
        assert [name for name in names if "secret" in name] == ["secret", "secret", "child_secret"]  # not the tool
        child.add_middleware(Hiding())
        assert not any("secret" in name for name in await listed(client))


async def test_tools_that_read_resources_list_what_hooks_of_mounted_servers_leave() -> None:
    mcp = mounted(filled(FastMCP("child", middleware=[Hiding()])), "child")
    mcp.add_transform(ResourcesAsTools(mcp))
    async with Client(mcp) as client:
        text = (await client.call_tool("list_resources")).text
        assert "x://child/open" in text
        assert "secret" not in text


@pytest.mark.parametrize("namespaces", [("child",), (None,), ("child", "a")])
async def test_rules_of_a_session_hold_for_the_features_of_the_mounted_server(
    namespaces: tuple[str | None, ...],
) -> None:
    mcp = mounted(filled(FastMCP("child")), *namespaces)
    prefix = "".join(f"{name}_" for name in reversed(namespaces) if name)
    async with Client(mcp, revision="2025-11-25") as client, Client(mcp, revision="2025-11-25") as other:
        await client.call_tool(f"{prefix}hide")
        assert not any("secret" in name for name in await listed(client))
        assert (await client.call_tool(f"{prefix}secret")).text == f"Unknown tool: '{prefix}secret'"
        with pytest.raises(MCPError, match="Unknown prompt"):
            await client.get_prompt(f"{prefix}secret")
        assert f"{prefix}secret" in await listed(other)
        await client.call_tool(f"{prefix}reset")
        assert (await client.call_tool(f"{prefix}secret")).text == "tool"


async def test_checks_of_components_hold_in_mounted_servers_for_direct_lists() -> None:
    child = FastMCP("child")
    child.tool(lambda: "tool", name="guarded", auth=require_scopes("admin"))
    mcp = mounted(child, "child")
    assert await mcp.list_tools() == []


@pytest.mark.parametrize("namespaces", [("child",), ("child", "a")])
async def test_a_mounted_server_shows_one_client_what_it_hides(namespaces: tuple[str, ...]) -> None:
    child = filled(FastMCP("child"))

    @child.tool
    async def show(ctx: Context) -> None:
        await ctx.enable_components(tags={"secret"})

    child.disable(tags={"secret"})
    mcp = mounted(child, *namespaces)
    prefix = "_".join(reversed(namespaces))
    path = "/".join(reversed(namespaces))
    async with Client(mcp, revision="2025-11-25") as client:
        hidden = await listed(client)
        with pytest.raises(MCPError, match="nknown"):
            await client.get_prompt(f"{prefix}_secret")
        await client.call_tool(f"{prefix}_show")
        assert set(await listed(client)) - set(hidden) == {"secret", f"{prefix}_secret"}
        assert (await client.call_tool(f"{prefix}_secret")).text == "tool"
        assert (await client.read_resource(f"x://{path}/secret")).text == "resource"
        assert (await client.read_resource(f"secret://{path}/item/5")).text == "template 5"
        assert len((await client.get_prompt(f"{prefix}_secret")).messages) == 1
        child.tool(lambda: "later", name="later", tags={"secret"})
        assert (await client.call_tool(f"{prefix}_later")).text == "later"
        child.remove_tool("later")
        child.enable(tags={"open"})
        child.disable(tags={"open"})
        assert f"{prefix}_later" not in await listed(client)
        assert f"{prefix}_open" not in await listed(client)
        await client.call_tool(f"{prefix}_reset")
        assert not any("secret" in name or "open" in name for name in await listed(client))


async def test_a_server_that_is_mounted_later_shows_what_clients_see_of_it_already() -> None:
    child = FastMCP("child")

    @child.tool
    async def show(ctx: Context) -> None:
        await ctx.enable_components(names={"late"})

    child.tool(lambda: "late", name="late")
    child.disable({"late"})
    async with Client(child, revision="2025-11-25") as client:
        await client.call_tool("show")
    async with Client(mounted(child, "a"), revision="2025-11-25") as client:
        await client.call_tool("a_show")
        assert (await client.call_tool("a_late")).text == "late"
