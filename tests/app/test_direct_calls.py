"""Calls of a server's own features, without a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from funcmcp import Context, MCPError, MCPServer, Principal, ProtocolOptions, ToolError, compat
from funcmcp.auth import APIKeys
from funcmcp.client import CallToolResult, Client, GetPromptResult, ReadResourceResult
from tests import schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, MutableMapping

    from funcmcp.middleware import CallNext, Reply, RequestContext

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
KEY = "a-key-of-16-characters"


class Answer(BaseModel):
    sure: bool


def shop(**options: object) -> MCPServer:
    mcp = MCPServer("shop", **options)  # type: ignore[arg-type] # passed on

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool
    def fail() -> str:
        raise ToolError("Sold out.")

    @mcp.resource("menu://today")
    def menu() -> str:
        return "soup"

    @mcp.resource("menu://days/{day}")
    def menu_of(day: str) -> str:
        return f"soup on {day}"

    @mcp.prompt
    def greet(name: str) -> str:
        return f"Greet {name}."

    return mcp


async def test_a_tool_returns_what_a_client_gets() -> None:
    mcp = shop()
    result = await mcp.call_tool("add", {"a": 1, "b": 2})
    async with Client(mcp) as client:
        assert result == await client.call_tool("add", {"a": 1, "b": 2})
    assert isinstance(result, CallToolResult)
    assert result.structured_content == {"result": 3}


@EVERY_REVISION
async def test_the_result_is_one_of_the_newest_revision_of_the_server(revision: str) -> None:
    mcp = shop(protocol=ProtocolOptions(revisions=[revision]))
    result = await mcp.call_tool("add", {"a": 1, "b": 2})
    assert result.text == "3"
    schemas.validate_as(result, revision, "CallToolResult")
    async with Client(mcp, revision=revision) as client:
        assert await mcp.list_tools() == await client.list_tools()


async def test_arguments_are_validated_and_failures_are_results() -> None:
    mcp = shop()
    assert (await mcp.call_tool("add", {"a": "one", "b": 2})).is_error
    assert (await mcp.call_tool("fail")).text == "Sold out."
    with pytest.raises(ToolError, match=r"^Sold out\.$"):
        await mcp.call_tool("fail", raise_on_error=True)


async def test_resources_templates_and_prompts() -> None:
    mcp = shop()
    resource = await mcp.read_resource("menu://today")
    assert isinstance(resource, ReadResourceResult)
    assert resource.text == "soup"
    assert (await mcp.read_resource("menu://days/Monday")).text == "soup on Monday"
    prompt = await mcp.get_prompt("greet", {"name": "Ada"})
    assert isinstance(prompt, GetPromptResult)
    assert prompt.messages[0].content.text == "Greet Ada."


async def test_lists_have_the_definitions_of_all_pages() -> None:
    mcp = shop(protocol=ProtocolOptions(page_size=1))
    assert [tool.name for tool in await mcp.list_tools()] == ["add", "fail"]
    assert [resource.uri for resource in await mcp.list_resources()] == ["menu://today"]
    assert [template.uri_template for template in await mcp.list_resource_templates()] == ["menu://days/{day}"]
    assert [prompt.arguments[0].name for prompt in await mcp.list_prompts()] == ["name"]


async def test_a_server_without_features_has_empty_lists() -> None:
    mcp = MCPServer("empty", protocol=ProtocolOptions(offer_tools=None))
    assert await mcp.list_tools() == []
    assert await mcp.list_resources() == []
    assert await mcp.list_resource_templates() == []
    assert await mcp.list_prompts() == []


async def test_an_unknown_feature_is_an_error_of_the_protocol() -> None:
    with pytest.raises(MCPError, match="Unknown tool: nope") as unknown:
        await shop().call_tool("nope")
    assert unknown.value.code == -32602
    with pytest.raises(MCPError, match="Resource not found") as missing:
        await shop().read_resource("menu://nope")
    assert missing.value.data == {"uri": "menu://nope"}


async def test_middleware_sees_direct_calls() -> None:
    methods = []

    async def audit(context: RequestContext, call_next: CallNext) -> Reply:
        methods.append((context.request.method, context.principal, context.http))
        return await call_next(context)

    mcp = shop(middleware=[audit])
    await mcp.call_tool("add", {"a": 1, "b": 2})
    await mcp.list_tools()
    assert methods == [("tools/call", None, None), ("tools/list", None, None)]


def guarded() -> MCPServer:
    mcp = MCPServer("guarded", auth=APIKeys({"ada": KEY}))

    @mcp.tool
    def who(context: Context) -> str:
        return "author" if context.principal is None else context.principal.subject

    @mcp.tool(scopes=["admin"])
    def clear() -> str:
        return "cleared"

    @mcp.tool(authorize=lambda principal: principal.subject == "grace")
    def audit() -> str:
        return "audited"

    return mcp


async def test_the_author_may_use_and_list_every_feature() -> None:
    mcp = guarded()
    assert (await mcp.call_tool("clear")).text == "cleared"
    assert (await mcp.call_tool("who")).text == "author"
    assert [tool.name for tool in await mcp.list_tools()] == ["who", "clear", "audit"]


async def test_the_rules_of_access_hold_for_a_principal() -> None:
    mcp, ada = guarded(), Principal("ada")
    assert (await mcp.call_tool("who", principal=ada)).text == "ada"
    with pytest.raises(MCPError, match="More scopes are needed"):
        await mcp.call_tool("clear", principal=ada)
    with pytest.raises(MCPError, match="You may not do this"):
        await mcp.call_tool("audit", principal=ada)
    admin = Principal("ada", scopes=frozenset({"admin"}))
    assert (await mcp.call_tool("clear", principal=admin)).text == "cleared"
    assert len(await mcp.list_tools(principal=ada)) == 3


async def test_a_principal_may_use_a_server_without_authentication() -> None:
    assert (await shop().call_tool("add", {"a": 1, "b": 2}, principal=Principal("ada"))).text == "3"


async def test_a_tool_calls_another_one_as_its_own_caller() -> None:
    mcp = guarded()

    @mcp.tool
    async def relay(context: Context) -> str:
        return (await mcp.call_tool("who", principal=context.principal)).text

    async with Client(mcp, headers={"x-api-key": KEY}) as client:
        assert (await client.call_tool("relay")).text == "ada"


@EVERY_REVISION
async def test_a_feature_can_not_ask_and_its_messages_are_dropped(revision: str) -> None:
    mcp = MCPServer("asks", protocol=ProtocolOptions(revisions=[revision]))

    @mcp.tool
    async def ask(context: Context) -> str:
        return str(await context.elicit("Sure?", Answer))

    @mcp.tool
    async def report(context: Context) -> str:
        await context.report_progress(1, 2)
        await context.info("half")
        return "done"

    assert (await mcp.call_tool("report")).text == "done"
    if revision == "2026-07-28":
        with pytest.raises(MCPError, match="needs a client that declares: elicitation"):
            await mcp.call_tool("ask")
    else:
        assert (await mcp.call_tool("ask")).text == "This needs a client that supports: elicitation."


async def test_a_tool_that_runs_as_a_task_runs_within_a_direct_call() -> None:
    mcp = MCPServer("tasks")

    @mcp.tool(task="required")
    async def report() -> str:
        return "done"

    assert (await mcp.call_tool("report")).text == "done"


def fetch() -> str:
    return "soup"


async def call(mcp: MCPServer) -> None:
    await mcp.call_tool("add", {"a": 1, "b": 2})


async def list_tools(mcp: MCPServer) -> None:
    await mcp.list_tools()


async def serve_a_request(mcp: MCPServer) -> None:
    async def never() -> dict[str, object]:
        raise AssertionError

    async def send(message: MutableMapping[str, Any]) -> None:
        raise AssertionError(message)

    headers = [(b"host", b"127.0.0.1")]
    await mcp({"type": "http", "method": "GET", "path": "/mcp", "headers": headers, "query_string": b""}, never, send)


@pytest.mark.parametrize("use", [call, list_tools, serve_a_request])
@pytest.mark.parametrize(
    "make", [shop, lambda: compat.FastMCP("shop", tools=[fetch]), lambda: compat.MCPServer("shop")]
)
def test_an_event_loop_of_another_library_is_refused_with_the_remedy(
    make: Callable[[], MCPServer], use: Callable[[MCPServer], Coroutine[object, object, None]]
) -> None:
    with pytest.raises(RuntimeError, match=r"^funcmcp needs a running event loop of asyncio\. trio is not supported"):
        use(make()).send(None)
