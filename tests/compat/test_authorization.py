"""`auth=` of components: who sees and uses them over HTTP, and what checks may do."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp import MCPServer
from funcmcp.compat import (
    AccessToken,
    AuthContext,
    AuthMiddleware,
    AuthorizationError,
    FastMCP,
    StaticTokenVerifier,
    Tool,
    VersionSpec,
    get_access_token,
    require_roles,
    require_scopes,
    restrict_tag,
    run_auth_checks,
)
from funcmcp.testing import Client
from funcmcp.transforms import ResourcesAsTools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOKENS: dict[str, dict[str, Any]] = {
    "admin": {"client_id": "app", "scopes": ["admin", "read"], "roles": ["cook"]},
    "reader": {"client_id": "app", "scopes": ["read"], "roles": "guest"},
}
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


async def is_admin(context: AuthContext) -> bool:
    return context.token is not None and "admin" in context.token.scopes


def refuse(context: AuthContext) -> bool:
    raise AuthorizationError(f"not {context.component.name}")


def fail(_: AuthContext) -> bool:
    raise LookupError("broken")


def shop(**options: Any) -> FastMCP:
    """Return a server whose features are for admins, in several ways, but for one of each kind."""
    mcp = FastMCP("shop", **options)

    @mcp.tool
    def menu() -> str:
        return "soup"

    @mcp.tool(auth=require_scopes("admin"))
    def close() -> str:
        return "closed"

    @mcp.tool(auth=[require_scopes("read"), is_admin])
    def count() -> str:
        return "3"

    @mcp.tool(auth=require_roles("cook", extract=lambda claims: claims["roles"]))
    def cook() -> str:
        return "done"

    @mcp.tool(auth=restrict_tag("secret", scopes=["admin"]), tags={"secret"})
    def recipe() -> str:
        return "salt"

    @mcp.tool(auth=refuse)
    def never() -> str:
        return "never"

    @mcp.tool(auth=fail)
    def broken() -> str:
        return "never"

    add_others(mcp)
    return mcp


def add_others(mcp: FastMCP) -> None:
    @mcp.resource("data://open")
    def open_data() -> str:
        return "open"

    @mcp.resource("data://books", auth=require_scopes("admin"))
    def books() -> str:
        return "books"

    @mcp.resource("item://{name}", auth=is_admin)
    def item(name: str) -> str:
        return name

    @mcp.prompt(auth=require_scopes("admin"))
    def greet() -> str:
        return "hi"


class Caller:
    """A client of one request at a time, with a token."""

    def __init__(self, http: httpx2.AsyncClient, token: str | None) -> None:
        self._http = http
        self._headers = HEADERS if token is None else {**HEADERS, "authorization": f"Bearer {token}"}

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = await self._http.post("/mcp", json=message, headers=self._headers)
        answer: dict[str, Any] = response.json()
        return answer

    async def names(self, method: str, member: str) -> set[str]:
        return {item["name"] for item in (await self.send(method))["result"][member]}


@asynccontextmanager
async def callers(mcp: Any) -> AsyncIterator[tuple[Caller, Caller]]:
    """Yield an admin and a reader."""
    transport = httpx2.ASGITransport(app=mcp)
    async with mcp.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        yield Caller(http, "admin"), Caller(http, "reader")


def protected_shop() -> FastMCP:
    return shop(auth=StaticTokenVerifier(TOKENS), stateless_http=True)


def mounted_shop() -> FastMCP:
    above = FastMCP("above", auth=StaticTokenVerifier(TOKENS), stateless_http=True)
    above.mount(shop())
    return above


@pytest.mark.parametrize("make", [protected_shop, mounted_shop])
async def test_lists_have_what_the_caller_may_use(make: Any) -> None:
    async with callers(make()) as (admin, reader):
        assert await admin.names("tools/list", "tools") == {"menu", "close", "count", "cook", "recipe"}
        assert await reader.names("tools/list", "tools") == {"menu"}
        assert await admin.names("resources/list", "resources") == {"open_data", "books"}
        assert await reader.names("resources/list", "resources") == {"open_data"}
        assert await reader.names("resources/templates/list", "resourceTemplates") == set()
        assert await reader.names("prompts/list", "prompts") == set()
        assert await admin.names("prompts/list", "prompts") == {"greet"}


REFUSED: list[tuple[str, dict[str, Any]]] = [
    *(("tools/call", {"name": name, "arguments": {}}) for name in ("close", "count", "cook", "recipe")),
    ("resources/read", {"uri": "data://books"}),
    ("resources/read", {"uri": "item://5"}),
    ("prompts/get", {"name": "greet"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": ""}}),
]


@pytest.mark.parametrize(("method", "params"), REFUSED)
@pytest.mark.parametrize("make", [protected_shop, mounted_shop])
async def test_what_is_hidden_from_a_caller_does_not_exist_for_it(
    make: Any, method: str, params: dict[str, Any]
) -> None:
    async with callers(make()) as (admin, reader):
        refused = await reader.send(method, **params)
        if method == "tools/call":
            assert refused["result"]["content"][0]["text"] == f"Unknown tool: {params['name']!r}"
        else:
            assert refused["error"]["code"] in {-32602, -32002}
        if method != "completion/complete":
            answer = await admin.send(method, **params)
            assert answer["result"].get("isError") is not True


async def test_an_error_does_not_say_whether_a_hidden_component_exists() -> None:
    async with callers(protected_shop()) as (_, reader):
        for method, key, hidden in (("resources/read", "uri", "data://books"), ("prompts/get", "name", "greet")):
            refused = await reader.send(method, **{key: hidden})
            unknown = await reader.send(method, **{key: "data://none"})
            assert refused["error"]["code"] == unknown["error"]["code"]
            assert refused["error"]["message"].replace(hidden, "data://none") == unknown["error"]["message"]


async def test_a_check_that_fails_or_refuses_hides_the_component_from_everybody() -> None:
    async with callers(protected_shop()) as (admin, _):
        for name in ("never", "broken"):
            result = (await admin.send("tools/call", name=name, arguments={}))["result"]
            assert result["content"][0]["text"] == f"Unknown tool: {name!r}"


async def test_a_server_without_auth_shows_a_caller_without_a_token_what_needs_none() -> None:
    async with callers(shop(stateless_http=True)) as (anybody, _):
        assert await anybody.names("tools/list", "tools") == {"menu"}


async def test_a_native_server_that_mounts_the_components_checks_them_as_well() -> None:
    above = MCPServer("above")
    above.mount(shop())
    async with Client(above) as client:
        assert [tool.name for tool in await client.list_tools()] == ["menu"]


async def test_tools_that_read_resources_do_not_read_hidden_ones() -> None:
    mcp = protected_shop()
    mcp.add_transform(ResourcesAsTools(mcp))
    async with callers(mcp) as (admin, reader):
        arguments = {"uri": "data://books"}
        refused = await reader.send("tools/call", name="read_resource", arguments=arguments)
        assert "books" in str((await admin.send("tools/call", name="read_resource", arguments=arguments))["result"])
        assert refused.get("result", {}).get("isError") is True or "error" in refused
        assert "data://books" not in str(await reader.send("tools/call", name="list_resources", arguments={}))


async def test_searches_do_not_find_hidden_tools() -> None:
    mcp = protected_shop()
    mcp.tool_search()
    async with callers(mcp) as (admin, reader):
        search = {"name": "search_tools", "arguments": {"query": "close"}}
        assert '"close"' in str((await admin.send("tools/call", **search))["result"]).replace("'", '"')
        assert '"close"' not in str((await reader.send("tools/call", **search))["result"]).replace("'", '"')


async def test_middleware_checks_the_version_that_a_request_names() -> None:
    check = restrict_tag("secret", scopes=["admin"])
    mcp = FastMCP("x", auth=StaticTokenVerifier(TOKENS), middleware=[AuthMiddleware(check)], stateless_http=True)
    mcp.tool(lambda: "old", name="price", version="1", tags={"secret"})
    mcp.tool(lambda: "new", name="price", version="2")
    async with callers(mcp) as (admin, reader):
        old = {"name": "price", "arguments": {}, "_meta": {"fastmcp": {"version": "1"}}}
        assert "insufficient scope" in str(await reader.send("tools/call", **old))
        assert "'old'" in str(await admin.send("tools/call", **old))
        assert "'new'" in str(await reader.send("tools/call", name="price", arguments={}))
    with pytest.raises(AuthorizationError, match="insufficient permissions"):
        await mcp.call_tool("price", version=VersionSpec(lt="2"))


async def test_a_component_is_found_by_those_who_may_use_it() -> None:
    mcp = protected_shop()

    @mcp.tool
    async def look() -> list[bool]:
        found = [await mcp.get_tool("close"), await mcp.get_resource("data://books"), await mcp.get_tool("menu")]
        return [item is not None for item in found]

    async with callers(mcp) as (admin, reader):
        call = {"name": "look", "arguments": {}}
        assert (await admin.send("tools/call", **call))["result"]["structuredContent"] == {"result": [True] * 3}
        assert (await reader.send("tools/call", **call))["result"]["structuredContent"] == {
            "result": [False, False, True]
        }
    assert await mcp.get_tool("close") is None


async def test_a_direct_call_within_a_request_has_the_caller_of_the_request() -> None:
    mcp = protected_shop()

    @mcp.tool
    async def through() -> list[str]:
        token = get_access_token()
        assert token is not None
        return [token.token, *sorted(tool.name for tool in await mcp.list_tools())]

    async with callers(mcp) as (_, reader):
        result = (await reader.send("tools/call", name="through", arguments={}))["result"]
        assert result["structuredContent"] == {"result": ["reader", "menu", "through"]}
    assert [tool.name for tool in await mcp.list_tools()] == ["menu", "through"]


@pytest.mark.parametrize("auth", ["admin", ["admin"], {"scopes": ["admin"]}, 5])
def test_a_rule_that_is_no_check_stops_the_start(auth: Any) -> None:
    with pytest.raises(TypeError, match="auth of the tool add must be a function such as require_scopes"):
        FastMCP("x").tool("add", auth=auth)(lambda: "x")


def test_a_rule_without_roles_stops_the_start() -> None:
    with pytest.raises(ValueError, match="at least one role"):
        require_roles(extract=lambda claims: claims["roles"])


def test_a_context_knows_its_tool() -> None:
    tool = Tool(lambda: "x", "add")
    assert AuthContext(None, tool).tool is tool
    assert AuthContext(None, object()).tool is None


@pytest.mark.parametrize(("check", "passes"), [(fail, False), (is_admin, True), ([], True), ([is_admin, fail], False)])
async def test_checks_are_combined(check: Any, passes: bool) -> None:
    token = AccessToken(token="x", client_id="app", scopes=["admin"])
    assert await run_auth_checks(check, AuthContext(token, Tool(lambda: "x", "add"))) is passes
    with pytest.raises(AuthorizationError):
        await run_auth_checks([is_admin, refuse], AuthContext(token, Tool(lambda: "x", "add")))
