"""Mounted servers: names, rules and changes of features that another server serves, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import (
    Completion,
    Context,
    MCPError,
    MCPServer,
    Principal,
    ProtocolOptions,
    RegistrationError,
    ToolError,
)
from funcmcp._authoring.calling.lifespans import LifespanError
from funcmcp._serving.composition import runtime_of
from funcmcp.auth import APIKeys, Auth
from funcmcp.content import ResourceInfo
from funcmcp.testing import Client, MemoryRequest, accept
from tests import schemas

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp.middleware import CallNext, Reply, RequestContext

pytestmark = pytest.mark.branches("Features of a mounted server come and go.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
KEY = "a-key-of-16-characters"


class Store:
    pass


def billing(**options: Any) -> MCPServer:
    mcp = MCPServer("billing", **options)

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool
    def fail(kind: str) -> str:
        if kind == "tool":
            raise ToolError("Sold out.")
        raise LookupError("secret")

    @mcp.tool
    async def ask(context: Context) -> str:
        answer = await context.elicit_url("Pay", "https://example.com/pay")
        return answer.action

    @mcp.resource("data://info")
    def info() -> str:
        return "info"

    @mcp.resource("data://days/{day}", completions={"day": lambda value: Completion([f"{value}day"])})
    def day(day: str) -> bytes:
        return day.encode()

    @mcp.resource_lister("data")
    def days() -> list[ResourceInfo]:
        return [ResourceInfo("data://days/today", name="today")]

    @mcp.prompt
    def greet(name: str) -> str:
        return f"Greet {name}."

    return mcp


def shop(mounted: MCPServer, prefix: str | None = "billing", **options: Any) -> MCPServer:
    mcp = MCPServer("shop", **options)

    @mcp.tool
    def plain() -> str:
        return "plain"

    mcp.mount(mounted, prefix)
    return mcp


async def seen(mcp: MCPServer) -> list[str]:
    """Return the names and URIs in all lists."""
    return [
        *[tool.name for tool in await mcp.list_tools()],
        *[resource.uri for resource in await mcp.list_resources()],
        *[template.uri_template for template in await mcp.list_resource_templates()],
        *[prompt.name for prompt in await mcp.list_prompts()],
    ]


def audit(notes: list[Any]) -> Any:
    async def note(context: RequestContext, call_next: CallNext) -> Reply:
        reply = await call_next(context)
        params = context.request.params
        notes.append((params.get("name") or params.get("uri"), reply.error))
        return reply

    return note


@EVERY_REVISION
@pytest.mark.parametrize("has_middleware", [False, True])
async def test_features_are_served_under_the_prefix(revision: str, has_middleware: bool) -> None:
    notes: list[Any] = []
    mcp = shop(billing(middleware=[audit(notes)] if has_middleware else []))
    async with Client(mcp, revision=revision, elicit=accept({})) as client:
        assert (await client.call_tool("billing_add", {"a": 1, "b": 2})).text == "3"
        assert (await client.call_tool("plain")).text == "plain"
        info = await client.read_resource("data://billing/info")
        assert (info.text, info.contents[0].uri) == ("info", "data://billing/info")
        day = await client.read_resource("data://billing/days/Monday")
        assert (day.contents[0].data, day.contents[0].uri) == (b"Monday", "data://billing/days/Monday")
        assert (await client.get_prompt("billing_greet", {"name": "Ada"})).messages[0].content.text == "Greet Ada."
        assert (await client.call_tool("billing_add", {"a": "x", "b": 2})).is_error
        with pytest.raises(MCPError):
            await client.get_prompt("billing_greet")
        with pytest.raises(MCPError):
            await client.call_tool("add", {"a": 1, "b": 2})
        if revision >= "2025-11-25":
            assert (await client.call_tool("billing_ask")).text == "accept"
        reference = {"type": "ref/resource", "uri": "data://billing/days/{day}"}
        assert (await client.complete(reference, "day", "Mon")).values == ["Monday"]
        schemas.validate_as(await client.call_tool("billing_add", {"a": 1, "b": 2}), revision, "CallToolResult")
        schemas.validate_as(info, revision, "ReadResourceResult")
    assert bool(notes) == has_middleware
    if has_middleware:
        assert notes[:4] == [("add", None), ("data://info", None), ("data://days/Monday", None), ("greet", None)]


async def test_lists_have_the_new_names() -> None:
    assert await seen(shop(billing())) == [
        "plain",
        "billing_add",
        "billing_fail",
        "billing_ask",
        "data://billing/info",
        "data://billing/days/today",
        "data://billing/days/{day}",
        "billing_greet",
    ]


async def test_without_a_prefix_names_do_not_change() -> None:
    mcp = shop(billing(), None)
    assert (await mcp.call_tool("add", {"a": 1, "b": 2})).text == "3"
    assert (await mcp.read_resource("data://info")).text == "info"
    assert "data://days/today" in await seen(mcp)


async def test_a_uri_without_an_authority_has_the_prefix_before_its_path() -> None:
    mounted = MCPServer("billing")
    mounted.resource("urn:info", name="info")(lambda: "info")
    mcp = shop(mounted)
    assert await seen(mcp) == ["plain", "billing+urn:info"]
    assert (await mcp.read_resource("billing+urn:info")).text == "info"


async def test_features_that_are_added_removed_and_hidden_later_are_followed() -> None:
    mounted = MCPServer("billing")
    mcp = shop(mounted)
    mounted.tool(name="later", tags={"beta"})(lambda: "later")
    assert (await mcp.call_tool("billing_later")).text == "later"
    mounted.disable({"later"})
    assert await seen(mcp) == ["plain"]
    mounted.enable({"later"})
    assert await seen(mcp) == ["plain", "billing_later"]
    mcp.disable(tags={"beta"})
    assert await seen(mcp) == ["plain"]
    assert await seen(mounted) == ["later"]
    mounted.remove_tool("later")
    mcp.enable(tags={"beta"})
    assert await seen(mcp) == ["plain"]


def test_clients_are_notified_of_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = billing()
    mcp = shop(mounted)
    changes: list[Any] = []
    monkeypatch.setattr(runtime_of(mcp).server.hub, "publish", changes.append)
    monkeypatch.setattr(runtime_of(mcp).server.catalog, "_publish", changes.append)
    mounted.tool(name="later")(lambda: "")
    mounted.notify_resource_updated("data://info")
    mounted.notify_resources_changed()
    assert [(change.method, change.uri) for change in changes] == [
        ("notifications/tools/list_changed", None),
        ("notifications/resources/updated", "data://billing/info"),
        ("notifications/resources/list_changed", None),
    ]


async def test_a_second_level_has_both_prefixes() -> None:
    notes: list[Any] = []
    lowest = billing(middleware=[audit(notes)])
    middle = MCPServer("middle", middleware=[audit(notes)])
    mcp = MCPServer("top")
    mcp.mount(middle, "middle")
    middle.mount(lowest, "billing")
    assert (await mcp.call_tool("middle_billing_add", {"a": 1, "b": 2})).text == "3"
    result = await mcp.read_resource("data://middle/billing/info")
    assert (result.text, result.contents[0].uri) == ("info", "data://middle/billing/info")
    lowest.tool(name="later")(lambda: "later")
    assert (await mcp.call_tool("middle_billing_later")).text == "later"
    assert notes[:4] == [("add", None), ("billing_add", None), ("data://info", None), ("data://billing/info", None)]


@pytest.mark.parametrize("has_middleware", [False, True])
async def test_the_error_policy_is_that_of_the_mounted_server(
    has_middleware: bool, caplog: pytest.LogCaptureFixture
) -> None:
    middleware = [audit([])] if has_middleware else []
    shown = shop(billing(show_errors=LookupError, middleware=middleware))
    assert (await shown.call_tool("billing_fail", {"kind": "other"})).text == "secret"
    hidden = shop(billing(middleware=middleware), show_errors=True)
    assert "secret" not in (await hidden.call_tool("billing_fail", {"kind": "other"})).text
    assert (await hidden.call_tool("billing_fail", {"kind": "tool"})).text == "Sold out."
    assert "secret" in caplog.text


async def test_middleware_of_the_mounted_server_can_refuse() -> None:
    async def refuse(context: RequestContext, call_next: CallNext) -> Reply:
        raise MCPError(-1, "No.")

    mcp = shop(billing(middleware=[refuse]))
    for call in (
        mcp.call_tool("billing_add", {"a": 1, "b": 2}),
        mcp.read_resource("data://billing/info"),
        mcp.get_prompt("billing_greet", {"name": "Ada"}),
    ):
        with pytest.raises(MCPError, match=r"^No\.$") as refused:
            await call
        assert refused.value.code == -1
    assert (await mcp.call_tool("plain")).text == "plain"


@pytest.mark.parametrize("has_middleware", [False, True])
async def test_results_have_the_name_of_the_server_above(has_middleware: bool) -> None:
    middle = MCPServer("middle", middleware=[audit([])] if has_middleware else [])
    middle.mount(billing(middleware=[audit([])] if has_middleware else []))
    requests: dict[str, dict[str, Any]] = {
        "tools/call": {"name": "billing_add", "arguments": {"a": 1, "b": 2}},
        "resources/read": {"uri": "data://billing/info"},
        "prompts/get": {"name": "billing_greet", "arguments": {"name": "Ada"}},
    }
    async with Client(shop(middle), revision="2026-07-28") as client:
        for method, params in requests.items():
            result = await client.request(method, params)
            assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "shop"


async def test_lifespans_and_services_are_those_of_the_mounted_server() -> None:
    notes: list[str] = []
    mounted, mcp = MCPServer("billing"), MCPServer("shop")

    async def opened() -> Any:
        yield Store()
        notes.append("closed")

    mounted.services.register_factory(Store, opened, scope="app")
    mcp.mount(mounted, "billing")

    @mounted.add_lifespan
    async def lower() -> AsyncIterator[str]:
        notes.append("+lower")
        yield "lower"
        notes.append("-lower")

    @mcp.add_lifespan
    async def upper() -> AsyncIterator[str]:
        notes.append("+upper")
        yield "upper"
        notes.append("-upper")

    @mounted.tool
    def low(context: Context, store: Store) -> str:
        return str(context.lifespan_context)

    @mcp.tool
    def high(context: Context) -> str:
        return str(context.lifespan_context)

    async with mcp.lifespan():
        assert (await mcp.call_tool("billing_low")).text == "lower"
        assert (await mcp.call_tool("high")).text == "upper"
    assert notes == ["+lower", "+upper", "-upper", "closed", "-lower"]


async def test_the_first_request_enters_the_lifespans_of_mounted_servers() -> None:
    mounted = MCPServer("billing")
    mcp = shop(mounted)

    @mounted.add_lifespan
    async def lower() -> AsyncIterator[str]:
        yield "lower"

    @mounted.tool
    def low(context: Context) -> str:
        return str(context.lifespan_context)

    async with Client(runtime_of(mcp).exchange) as client:
        assert (await client.call_tool("billing_low")).text == "lower"
    await runtime_of(mcp).aclose()


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_failed_lifespan_of_a_mounted_server_is_named_with_its_server(depth: int) -> None:
    mcp = MCPServer("orders")

    @mcp.add_lifespan
    async def connect() -> AsyncIterator[None]:
        for failure in [ConnectionError("refused")]:
            raise failure
        yield

    for name in ("office", "firm")[:depth]:
        above = MCPServer(name)
        above.mount(mcp)
        mcp = above
    with pytest.raises(LifespanError) as caught:
        async with mcp.lifespan():
            pass
    assert "the lifespan test_a" in str(caught.value)
    assert str(caught.value).endswith("connect of its mounted server 'orders' failed with ConnectionError: refused")
    assert isinstance(caught.value.__cause__, ConnectionError)


async def test_a_server_with_lifespans_can_not_be_mounted_in_one_that_has_started() -> None:
    mcp, mounted = MCPServer("shop"), MCPServer("billing")
    for server in (mcp, mounted):

        @server.add_lifespan
        async def lifespan() -> AsyncIterator[None]:
            yield

    async with mcp.lifespan():
        with pytest.raises(RuntimeError, match="shop has started, and billing has lifespans"):
            mcp.mount(mounted, "billing")
        mcp.mount(billing(), "other")
        assert (await mcp.call_tool("other_add", {"a": 1, "b": 2})).text == "3"


async def test_access_rules_and_scopes_hold() -> None:
    mounted = MCPServer("billing", auth=Auth(APIKeys({"x": KEY}), scopes=["billing"]))
    mounted.tool(name="rules", scopes=["write"])(lambda: "done")
    mounted.tool(name="open", allow_anonymous=True)(lambda: "open")
    mcp = shop(mounted, auth=APIKeys({"ada": KEY}))
    for scopes, allowed in (({"billing"}, False), ({"write"}, False), ({"billing", "write"}, True)):
        principal = Principal("ada", scopes=frozenset(scopes))
        if allowed:
            assert (await mcp.call_tool("billing_rules", principal=principal)).text == "done"
        else:
            with pytest.raises(MCPError, match="More scopes are needed"):
                await mcp.call_tool("billing_rules", principal=principal)
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["billing_open"]


async def test_custom_routes_keep_their_paths() -> None:
    mounted = MCPServer("billing")
    mounted.custom_route("/health")(lambda: "ok")
    mcp = shop(mounted)
    mounted.custom_route("/later")(lambda: "later")
    for path, body in (("/health", b"ok"), ("/later", b"later")):
        response = await runtime_of(mcp).exchange(MemoryRequest("GET", path, [(b"host", b"127.0.0.1")], b""))
        assert (response.status, response.body) == (200, body)


async def test_the_page_of_a_tool_has_the_prefix() -> None:
    mounted = MCPServer("billing")
    mounted.resource("ui://total", name="page")(lambda: "<p>")
    mounted.tool(name="total", ui="ui://total")(lambda: 3)
    [_, tool] = await shop(mounted).list_tools()
    assert tool["_meta"]["ui"]["resourceUri"] == "ui://billing/total"


@pytest.mark.parametrize("prefix", ["", "a b", "a/b", 5, "x" * 64, "_a"])
def test_a_malformed_prefix_is_refused(prefix: Any) -> None:
    with pytest.raises(ValueError, match=r"prefix must have letters.* begin with a letter or digit"):
        shop(billing(), prefix)


def test_only_servers_can_be_mounted() -> None:
    with pytest.raises(TypeError, match=r"mcp\.mount takes an MCPServer or an Upstream, not str"):
        MCPServer("shop").mount("billing")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"not str\. A server at a URL is an Upstream: mcp\.mount\(Upstream\('https://"):
        MCPServer("shop").mount("https://example.com/mcp")  # type: ignore[arg-type]


def test_servers_can_not_mount_each_other() -> None:
    first, second, third = MCPServer("first"), MCPServer("second"), MCPServer("third")
    first.mount(second, "second")
    second.mount(third, "third")
    with pytest.raises(RegistrationError, match="would mount each other"):
        third.mount(first, "first")
    with pytest.raises(RegistrationError, match="would mount each other"):
        third.mount(third, "third")


async def test_a_taken_name_is_refused_and_nothing_is_mounted() -> None:
    mcp = MCPServer("shop")
    mcp.tool(name="billing_ask")(lambda: "mine")
    with pytest.raises(RegistrationError, match="Duplicate tool name 'billing_ask'"):
        mcp.mount(billing(), "billing")
    assert await seen(mcp) == ["billing_ask"]


async def test_a_name_that_is_taken_later_is_refused_in_both_servers() -> None:
    mounted = MCPServer("billing")
    mcp = shop(mounted)
    mcp.tool(name="billing_later")(lambda: "mine")
    with pytest.raises(RegistrationError, match="Duplicate tool name 'billing_later'"):
        mounted.tool(name="later")(lambda: "theirs")
    assert await seen(mounted) == []
    assert (await mcp.call_tool("billing_later")).text == "mine"


def test_a_name_that_becomes_too_long_is_refused() -> None:
    mounted = MCPServer("billing")
    mounted.tool(name="x" * 120)(lambda: "")
    with pytest.raises(RegistrationError, match="has more than 128 characters"):
        MCPServer("shop").mount(mounted, "billing1")


def test_a_server_that_would_lose_a_rule_is_refused() -> None:
    with pytest.raises(RegistrationError, match="billing has auth, and shop, which mounts it, has none"):
        shop(billing(auth=APIKeys({"ada": KEY})))
    with pytest.raises(RegistrationError, match="billing does not speak 2024-11-05, 2025-03-26"):
        shop(billing(protocol=ProtocolOptions(revisions=["2026-07-28"])))


async def test_services_of_servers_that_are_mounted_at_any_depth_are_closed() -> None:
    notes: list[str] = []

    def level(name: str) -> MCPServer:
        mcp = MCPServer(name)

        async def open_store() -> AsyncIterator[Store]:
            notes.append(f"open {name}")
            yield Store()
            notes.append(f"close {name}")

        mcp.services.register_factory(Store, open_store, scope="app")

        @mcp.tool(name=f"use_{name}")
        def use(store: Store) -> str:
            return name

        return mcp

    top, middle, bottom = level("top"), level("middle"), level("bottom")
    middle.mount(bottom, prefix="b")
    top.mount(middle, prefix="m")
    late = level("late")
    async with Client(top) as client:
        top.mount(late, prefix="l")
        for name in ("use_top", "m_use_middle", "m_b_use_bottom", "l_use_late"):
            await client.call_tool(name)
    assert sorted(notes) == sorted(
        f"{step} {name}" for step in ("open", "close") for name in ("top", "middle", "bottom", "late")
    )


async def test_a_server_that_mounts_one_with_tools_only_has_empty_lists() -> None:
    above = MCPServer("above")
    mounted = MCPServer("tools")
    mounted.tool("done")(lambda: "done")
    above.mount(mounted, prefix="below")
    async with Client(above) as client:
        for method, member in (("resources/list", "resources"), ("prompts/list", "prompts")):
            assert (await client.request(method))[member] == []
