"""Options of servers and components: which features clients see, authorization, and options without a meaning."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer as NativeMCPServer
from funcmcp import ToolError
from funcmcp._protocol.errors import MCPError
from funcmcp.compat import Context, FastMCP, MCPServer, TextResource, Tool
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.mark.parametrize("make", [FastMCP, MCPServer])
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
@pytest.mark.parametrize(
    ("options", "has_sessions"),
    [
        ({}, True),
        ({"sessions": "memory"}, True),
        ({"sessions": "memory", "stateless_http": False}, True),
        ({"stateless_http": None}, True),
        ({"sessions": None}, False),
        ({"sessions": None, "stateless_http": True}, False),
        ({"stateless_http": True}, False),
    ],
)
async def test_a_server_without_sessions_is_stateless(
    make: type[FastMCP], revision: str, options: dict[str, Any], has_sessions: bool
) -> None:
    mcp = make("s", **options)
    assert mcp.settings.stateless_http is not has_sessions
    async with Client(mcp, revision=revision) as client:
        assert (client.session_id is not None) is has_sessions


async def test_the_constructor_decides_about_sessions_and_not_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTMCP_STATELESS_HTTP", "true")
    assert FastMCP("s").settings.stateless_http
    assert not FastMCP("s", sessions="memory").settings.stateless_http


@pytest.mark.parametrize(("sessions", "stateless"), [(None, False), ("memory", True)])
def test_contradictory_options_of_sessions_are_refused(sessions: Any, stateless: bool) -> None:
    with pytest.raises(TypeError, match=f"contradicts stateless_http={stateless}. Leave out one of them."):
        FastMCP("s", sessions=sessions, stateless_http=stateless)


def shop(**options: Any) -> FastMCP:
    """Return a server with features of several tags."""
    mcp = FastMCP("Shop", **options)
    mcp.tool(lambda: "count", name="count", tags={"public"})
    mcp.tool(lambda: "clear", name="clear", tags={"public", "admin"})
    mcp.tool(lambda: "plain", name="plain")
    mcp.tool(lambda: "off", name="off", tags={"public"}, enabled=False)
    mcp.resource("shop://public", tags={"public"})(lambda: "p")
    mcp.resource("shop://admin", tags={"admin"})(lambda: "a")
    mcp.resource("shop://admin/{name}", name="admin page", tags={"admin"})(lambda name: name)
    mcp.prompt(lambda: "p", name="public", tags={"public"})
    mcp.prompt(lambda: "a", name="admin", tags={"admin"})
    return mcp


async def listed(mcp: FastMCP) -> list[str]:
    """Return what clients see in the lists."""
    return [
        *(tool.name for tool in await mcp.list_tools()),
        *(resource.uri for resource in await mcp.list_resources()),
        *(template.uri_template for template in await mcp.list_resource_templates()),
        *(prompt.name for prompt in await mcp.list_prompts()),
    ]


ADMIN = ["clear", "shop://admin", "shop://admin/{name}", "admin"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["count", "clear", "plain", "shop://public", "shop://admin", "shop://admin/{name}", "public", "admin"]),
        ({"exclude_tags": {"admin"}}, ["count", "plain", "shop://public", "public"]),
        ({"include_tags": {"public"}}, ["count", "clear", "shop://public", "public"]),
        ({"include_tags": ["public"], "exclude_tags": ["admin"]}, ["count", "shop://public", "public"]),
        ({"include_tags": {"admin"}}, ADMIN),
        ({"include_tags": set()}, []),
    ],
)
async def test_clients_see_included_and_no_excluded_tags(options: dict[str, Any], expected: list[str]) -> None:
    assert await listed(shop(**options)) == expected


async def test_hidden_features_cannot_be_used() -> None:
    async with Client(shop(exclude_tags={"admin"})) as client:
        with pytest.raises(ToolError, match="clear"):
            await client.call_tool("clear", raise_on_error=True)
        with pytest.raises(ToolError, match="off"):
            await client.call_tool("off", raise_on_error=True)
        with pytest.raises(MCPError):
            await client.read_resource("shop://admin")
        with pytest.raises(MCPError):
            await client.read_resource("shop://admin/x")
        with pytest.raises(MCPError):
            await client.get_prompt("admin")


async def test_tags_of_both_servers_filter_the_features_of_a_mounted_server() -> None:
    above = FastMCP("Above", exclude_tags={"admin"})
    above.mount(shop(), prefix="s")
    assert await listed(above) == ["s_count", "s_plain", "shop://s/public", "s_public"]

    above = FastMCP("Above")
    above.mount(shop(include_tags={"admin"}), prefix="s")
    assert await listed(above) == ["s_clear", "shop://s/admin", "shop://s/admin/{name}", "s_admin"]


def test_tags_must_be_a_collection_of_strings() -> None:
    for option in ("include_tags", "exclude_tags"):
        with pytest.raises(TypeError, match="tags must be a set of strings"):
            FastMCP("t", **{option: "admin"})


async def test_a_component_is_switched_on_and_off() -> None:
    mcp = FastMCP("t")
    tool = Tool.from_function(lambda: "x", name="x", enabled=False)
    note = TextResource("note://one", "First.", name="x")
    mcp.add_tool(tool)
    mcp.add_resource(note)
    assert (tool.enabled, await listed(mcp)) == (False, ["note://one"])
    tool.enable()
    note.disable()
    assert (tool.enabled, note.enabled, await listed(mcp)) == (True, False, ["x"])
    mcp.disable({"x"})
    mcp.enable({"note://one"})
    assert await listed(mcp) == ["note://one"]


async def test_a_component_that_is_switched_on_stays_hidden_by_tags() -> None:
    mcp = FastMCP("t", include_tags={"public"}, exclude_tags={"admin"})
    tools = [
        mcp.add_tool(Tool.from_function(lambda: "x", name="admin", tags={"public", "admin"}, enabled=False)),
        mcp.add_tool(Tool.from_function(lambda: "x", name="plain", enabled=False)),
        mcp.add_tool(Tool.from_function(lambda: "x", name="public", tags={"public"}, enabled=False)),
    ]
    for tool in tools:
        tool.enable()
    assert await listed(mcp) == ["public"]


async def test_a_tool_that_replaces_a_disabled_one_is_enabled(caplog: pytest.LogCaptureFixture) -> None:
    mcp = FastMCP("t")
    mcp.tool(lambda: "first", name="t", enabled=False)
    mcp.tool(lambda: "second", name="t")
    assert "The tool t exists already and is replaced." in caplog.text
    assert (await mcp.call_tool("t")).text == "second"


async def test_each_ignored_option_of_a_component_is_logged_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    mcp = FastMCP("t")
    mcp.tool(lambda: "x", name="b", serializer=str)
    mcp.tool(lambda: "x", name="a", serializer=str)
    mcp.prompt("c", task=True)(lambda: "x")
    mcp.resource("data://d", name="d", task=True)(lambda: "x")
    above = NativeMCPServer("above")
    above.mount(mcp)
    async with above.lifespan():
        assert caplog.messages == [
            "funcmcp.compat ignores serializer of these tools: a, b.",
            "funcmcp.compat ignores task of these prompts: c.",
            "funcmcp.compat ignores task of these resources: d.",
        ]


async def test_the_lifespan_of_a_mounted_server_runs_and_its_tools_get_its_value() -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def lifespan(server: FastMCP) -> AsyncIterator[dict[str, str]]:
        steps.append(f"start {server.name}")
        yield {"name": server.name}
        steps.append(f"stop {server.name}")

    above, billing = FastMCP("Shop", lifespan=lifespan), FastMCP("Billing", lifespan=lifespan)

    def name(ctx: Context) -> str:
        return str(ctx.request_context.lifespan_context["name"])

    above.tool(name)
    billing.tool(name)
    above.mount(billing, prefix="billing")
    async with Client(above) as client:
        assert (await client.call_tool("billing_name")).text == "Billing"
        assert (await client.call_tool("name")).text == "Shop"
    assert steps == ["start Billing", "start Shop", "stop Shop", "stop Billing"]


async def test_the_environment_sets_options_that_the_constructor_does_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FASTMCP_INCLUDE_TAGS", '["public"]')
    monkeypatch.setenv("FASTMCP_EXCLUDE_TAGS", "admin, old")
    monkeypatch.setenv("FASTMCP_MASK_ERROR_DETAILS", "true")
    monkeypatch.setenv("FASTMCP_TRANSPORT", "http")
    monkeypatch.setenv("FASTMCP_HTTP_ALLOWED_HOSTS", '["shop.example"]')
    monkeypatch.setenv("FASTMCP_STATELESS_HTTP", "1")
    monkeypatch.setenv("FASTMCP_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("FASTMCP_SHOW_SERVER_BANNER", "false")
    monkeypatch.setenv("FASTMCP_HOME", "")
    mcp = shop()
    assert await listed(mcp) == ["count", "shop://public", "public"]
    assert await listed(shop(include_tags={"admin"}, exclude_tags=[])) == ADMIN

    @mcp.tool(tags={"public"})
    def fail() -> str:
        raise ValueError("the disk is full")

    assert "disk" not in (await mcp.call_tool("fail", raise_on_error=False)).text
    settings = mcp.settings
    assert (settings.transport, settings.http_allowed_hosts, settings.stateless_http) == (
        "http",
        ["shop.example"],
        True,
    )
    caplog.clear()
    async with mcp.lifespan():
        assert caplog.messages == [
            "funcmcp.compat ignores variables of the environment: FASTMCP_LOG_LEVEL, FASTMCP_SHOW_SERVER_BANNER."
        ]


@pytest.mark.parametrize("variable", ["FASTMCP_SERVER_AUTH", "FASTMCP_DEFAULT_AUTH_PROVIDER"])
def test_a_sign_in_of_the_environment_is_not_lost_silently(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "fastmcp.server.auth.providers.github.GitHubProvider")
    with pytest.raises(TypeError, match=f"{variable} selects a sign-in"):
        FastMCP("a")


async def test_options_of_mount_are_logged_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    mcp = FastMCP("m")
    mcp.mount(FastMCP("a"), "a", as_proxy=True, tool_separator="_", resource_separator=None)
    async with mcp.lifespan():
        assert caplog.messages == ["mount of funcmcp.compat ignores options: as_proxy, tool_separator."]
    with pytest.raises(TypeError, match="Unknown option 'colour' of mount"):
        mcp.mount(FastMCP("b"), "b", colour="red")


async def test_keys_select_features_as_in_fastmcp() -> None:
    mcp = shop()
    assert mcp.disable(keys={"tool:count", "prompt:public@", "resource:shop://public@"}) is mcp
    assert await listed(mcp) == ["clear", "plain", "shop://admin", "shop://admin/{name}", "admin"]
    mcp.enable(keys={"tool:count", "prompt:public@1.0"})  # the first one is not a key, and the prompt has no version
    assert await listed(mcp) == ["clear", "plain", "shop://admin", "shop://admin/{name}", "admin"]
    mcp.enable(keys={"tool:count@"}).disable(names={"admin"}, components={"prompt"})
    assert await listed(mcp) == ["count", "clear", "plain", "shop://admin", "shop://admin/{name}"]
    mcp.enable(tags={"admin"}, only=True)
    assert await listed(mcp) == ADMIN
    with pytest.raises(ValueError, match="Invalid key 'count'"):
        mcp.enable(keys={"count"})
    with pytest.raises(TypeError, match="Unknown option 'name' of enable and disable"):
        mcp.enable(name="count")
    with pytest.raises(TypeError, match="names must be a set of strings"):
        mcp.disable(names="count")
    with pytest.raises(TypeError, match="version must be a VersionSpec"):
        mcp.enable(version="1")


@pytest.mark.parametrize(
    ("options", "ttl", "read_ttl", "scope", "read_scope"),
    [
        ({}, 0, 0, "public", "private"),
        ({"cache_ttl": 60}, 60_000, 60_000, "private", "private"),
        ({"cache_ttl": 60, "cache_scope": "public"}, 60_000, 60_000, "public", "public"),
    ],
)
async def test_cache_hints(options: dict[str, Any], ttl: int, read_ttl: int, scope: str, read_scope: str) -> None:
    mcp = FastMCP("c", **options)
    mcp.resource("x://one", name="one")(lambda: "1")
    async with Client(mcp, revision="2026-07-28") as client:
        listed = await client.request("resources/list", {})
        read = await client.request("resources/read", {"uri": "x://one"})
    assert (listed["ttlMs"], listed["cacheScope"]) == (ttl, scope)
    assert (read["ttlMs"], read["cacheScope"]) == (read_ttl, read_scope)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cache_ttl": 0}, "cache_ttl must be a positive integer"),
        ({"cache_scope": "public"}, "cache_scope requires cache_ttl"),
        ({"list_page_size": 0}, "list_page_size must be a positive integer"),
    ],
)
def test_numbers_that_fastmcp_refuses_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FastMCP("c", **options)
