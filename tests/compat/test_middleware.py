"""Middleware classes of FastMCP and middleware functions of the official SDK 2.x."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError
from funcmcp.compat import (
    CallNext,
    Context,
    ErrorHandlingMiddleware,
    FastMCP,
    LoggingMiddleware,
    MCPServer,
    Message,
    Middleware,
    MiddlewareContext,
    NotFoundError,
    PromptError,
    PromptResult,
    ResourceContent,
    ResourceResult,
    TextResource,
    TimingMiddleware,
    ToolError,
    ToolResult,
    ValidationError,
)
from funcmcp.content import Text
from funcmcp.middleware import log_requests
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp.compat.mcp.server.context import CallNext as SDKCallNext
    from funcmcp.compat.mcp.server.context import HandlerResult, ServerRequestContext

pytestmark = pytest.mark.branches("Notifications of clients reach those who listen.")


def server(*middleware: Any) -> FastMCP:
    mcp = FastMCP("m", middleware=middleware)

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool
    def fail() -> str:
        raise ValueError("no")

    @mcp.resource("note://one")
    def note() -> str:
        return "First."

    return mcp


async def test_hooks_run_around_their_requests() -> None:
    seen: list[Any] = []

    class Recorder(Middleware):
        async def on_message(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            seen.append(context.method)
            return await call_next(context)

        async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            assert context.fastmcp_context is not None
            seen.append((context.message.name, context.message.arguments, context.fastmcp_context.fastmcp.name))
            context.message.arguments = {**context.message.arguments, "b": 40}
            result = await call_next(context)
            seen.append(result.structured_content)
            return result

        async def on_list_tools(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            return [tool for tool in await call_next(context) if tool.name != "fail"]

        async def on_read_resource(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            seen.append(context.message.uri)
            return await call_next(context.copy())

    async with Client(server(Recorder()), revision="2025-11-25") as client:
        assert [tool.name for tool in await client.list_tools()] == ["add"]
        assert (await client.call_tool("add", {"a": 2, "b": 1})).text == "42"
        assert (await client.read_resource("note://one")).text == "First."
    seen.remove("notifications/initialized")
    assert seen == [
        "initialize",
        "tools/list",
        "tools/call",
        ("add", {"a": 2, "b": 1}, "m"),
        {"result": 42},
        "resources/read",
        "note://one",
    ]


async def test_middleware_changes_results_and_handles_errors() -> None:
    class Changing(Middleware):
        async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            try:
                result = await call_next(context)
            except ToolError as error:
                return ToolResult(content=f"handled {error}")
            return ToolResult([*result.content, "more"], {"result": 0})

    mcp = server(Changing())
    assert (
        await mcp.call_tool("fail")
    ).text == "handled Error calling tool 'fail': no"  # without structured content, as in FastMCP
    changed = await mcp.call_tool("add", {"a": 1, "b": 2})
    assert [block.text for block in changed.content] == ["3", "more"]
    assert changed.structured_content == {"result": 0}


async def test_a_result_that_does_not_fit_the_output_schema_is_sent_as_in_fastmcp() -> None:
    class Changing(Middleware):
        async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            return ToolResult(structured_content={"result": "three"})

    result = await server(Changing()).call_tool("add", {"a": 1, "b": 2})
    assert result.structured_content == {"result": "three"}


async def test_middleware_refuses_calls() -> None:
    class Refusing(Middleware):
        async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            if context.message.name == "add":
                raise ToolError("not today")
            return await call_next(context)

    with pytest.raises(ToolError, match=r"^not today$"):
        await server(Refusing()).call_tool("add", {"a": 1, "b": 2})


async def test_middleware_of_the_frameworks(caplog: pytest.LogCaptureFixture) -> None:
    errors: list[str] = []
    mcp = server(
        LoggingMiddleware(include_payloads=True),
        TimingMiddleware(),
        ErrorHandlingMiddleware(error_callback=lambda error, context: errors.append(f"{context.method} {error}")),
        log_requests(),
    )
    with caplog.at_level(logging.INFO):
        assert (await mcp.call_tool("add", {"a": 1, "b": 2})).text == "3"
        with pytest.raises(MCPError, match="Invalid params: Error calling tool 'fail': no") as failure:
            await mcp.call_tool("fail")
    assert failure.value.code == -32602
    assert "Request tools/call completed in" in caplog.text
    assert "Error in tools/call: ToolError: Error calling tool 'fail': no" in caplog.text
    assert '"arguments":{"a":1,"b":2}' in caplog.text
    assert "payload_type=CallToolRequestParams" in caplog.text
    assert errors == ["tools/call Error calling tool 'fail': no"]


async def test_middleware_functions_of_the_sdk() -> None:
    mcp = MCPServer("s")

    @mcp.tool()
    def present() -> str:
        return "yes"

    async def reject_unknown(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "tools/call" and ctx.params["name"] != "present":
            raise MCPError(-32602, f"Unknown tool: {ctx.params['name']}")
        return await call_next(ctx)

    mcp.middleware.append(reject_unknown)
    assert (await mcp.call_tool("present")).content[0].text == "yes"
    async with Client(mcp) as client:
        with pytest.raises(MCPError, match="Unknown tool: other"):
            await client.call_tool("other")


async def test_middleware_of_the_sdk_is_for_messages_of_clients() -> None:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[int]:
        yield 1

    mcp, seen = MCPServer("s", lifespan=lifespan), list[str]()

    @mcp.tool()
    def present() -> str:
        return "yes"

    async def record(ctx: ServerRequestContext, call_next: SDKCallNext) -> HandlerResult:
        seen.append(f"{ctx.method} {ctx.lifespan_context}")
        return await call_next(ctx)

    mcp.middleware.append(record)
    assert (await mcp.call_tool("present")).content[0].text == "yes"  # a call without a client, before the lifespan
    assert seen == []
    async with Client(mcp) as client:
        await client.call_tool("present")
    assert seen[-1] == "tools/call 1"


async def test_the_cause_of_an_error_of_middleware_of_the_sdk_is_not_the_error_itself() -> None:
    mcp, errors = MCPServer("s"), list[BaseException]()

    async def fail(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "tools/list":
            errors.append(ValueError("no"))
            raise errors[0]
        return await call_next(ctx)

    mcp.middleware.append(fail)
    async with Client(mcp) as client:
        with pytest.raises(MCPError):
            await client.list_tools()
    assert errors[0].__cause__ is None


async def test_middleware_filters_by_tags_and_changes_results_in_place() -> None:
    class Filter(Middleware):
        async def on_list_tools(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            return [tool for tool in await call_next(context) if "admin" not in tool.tags]

        async def on_list_prompts(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            return [prompt for prompt in await call_next(context) if not prompt.tags]

        async def on_list_resources(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            return [resource for resource in await call_next(context) if not resource.tags]

        async def on_list_resource_templates(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            return [template for template in await call_next(context) if not template.tags]

        async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            tool = await context.fastmcp_context.fastmcp.get_tool(context.message.name)  # type: ignore[union-attr]
            result = await call_next(context)
            if "loud" in tool.tags:
                result.content.append(Text("more"))
                result.structured_content["result"] += 1
            return result

    mcp = FastMCP("m", middleware=[Filter()])
    for tags in ({"admin"}, {"loud"}, set()):
        name = next(iter(tags), "plain")
        mcp.tool(one, name=name, tags=tags)
        mcp.prompt(lambda: "p", name=name, tags=tags)
        mcp.resource(f"a://{name}", tags=tags)(lambda: "r")
        mcp.resource(f"b://{name}/{{x}}", name=name, tags=tags)(lambda x: x)
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["loud", "plain"]
        assert [prompt.name for prompt in await client.list_prompts()] == ["plain"]
        assert [resource.uri for resource in await client.list_resources()] == ["a://plain"]
        assert [template.uri_template for template in await client.list_resource_templates()] == ["b://plain/{x}"]
        loud, plain = await client.call_tool("loud"), await client.call_tool("plain")
    assert (loud.text, loud.structured_content) == ("1\nmore", {"result": 2})
    assert (plain.text, plain.structured_content) == ("1", {"result": 1})


def one() -> int:
    return 1


async def test_middleware_gets_the_exception_of_a_tool_as_the_cause() -> None:
    causes: list[BaseException | None] = []
    mcp = FastMCP("Shop")

    class Watch(Middleware):
        async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            try:
                return await call_next(context)
            except ToolError as error:
                causes.append(error.__cause__)
                raise

    mcp.add_middleware(Watch())

    @mcp.tool
    def fail() -> str:
        raise LookupError("no such item")

    assert (await mcp.call_tool("fail", raise_on_error=False)).is_error
    assert [repr(cause) for cause in causes] == ["LookupError('no such item')"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_middleware_of_the_sdk_may_name_another_tool_in_place_or_in_a_copy(revision: str) -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    def public(to: str = "") -> str:
        return "public"

    @mcp.tool()
    def private() -> str:
        return "private"

    async def rename(context: Any, call_next: Any) -> Any:
        if context.method == "tools/call" and context.params["name"] != "public":
            context.params["name"] = "public"
        elif context.method == "tools/call":
            context = replace(context, params={"name": context.params["arguments"]["to"], "arguments": {}})
        elif context.method == "resources/list":
            context = replace(context, method="prompts/list")
        return await call_next(context)

    mcp.middleware.append(rename)
    mcp.add_resource(TextResource("shop://a", "a"))
    async with Client(mcp, revision=revision) as client:
        assert (await client.call_tool("private")).text == "public"
        assert (await client.call_tool("public", {"to": "private"})).text == "private"
        unknown = await client.call_tool("public", {"to": "nothing"}, raise_on_error=False)
        assert (unknown.is_error, unknown.text) == (True, "Unknown tool: nothing")
        with pytest.raises(MCPError):
            await client.list_resources()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_middleware_of_the_sdk_edits_answers_and_handles_errors(revision: str) -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    def price() -> str:
        return "5"

    @mcp.tool()
    def hidden() -> str:
        return "secret"

    @mcp.prompt()
    def greet() -> str:
        return "Hello"

    mcp.add_resource(TextResource("shop://a", "a"))

    async def edit(context: Any, call_next: Any) -> Any:
        try:
            result = await call_next(context)
        except MCPError as error:
            if "lost" in error.message:
                return {"messages": []}
            raise
        if context.method == "tools/list":
            return {**result, "tools": [tool for tool in result["tools"] if tool["name"] != "hidden"]}
        if context.method == "prompts/list":
            result["prompts"] = []
        if context.method == "resources/read":
            result["contents"][0]["text"] = "b"
        return result

    mcp.middleware.append(edit)
    async with Client(mcp, revision=revision) as client:
        assert [tool.name for tool in await client.list_tools()] == ["price"]
        assert await client.list_prompts() == []
        assert (await client.read_resource("shop://a")).text == "b"
        assert (await client.call_tool("price")).text == "5"
        assert (await client.get_prompt("lost")).messages == []
        with pytest.raises(MCPError, match="Unknown prompt: gone"):
            await client.get_prompt("gone")


def shop(*middleware: Any) -> FastMCP:
    mcp = FastMCP("Shop", middleware=middleware)

    @mcp.tool
    def price(item: str) -> str:
        """Return a price."""
        return f"{item}: 5"

    @mcp.resource("shop://a", mime_type="text/plain")
    def stock() -> str:
        """Return the stock."""
        return "a"

    @mcp.resource("shop://{item}/photo")
    def photo(item: str) -> bytes:
        """Return a photo."""
        return item.encode()

    @mcp.prompt
    def greet() -> str:
        """Greet."""
        return "Hello"

    return mcp


async def test_middleware_edits_components_in_lists() -> None:
    class Editing(Middleware):
        async def on_list_tools(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            tools = await call_next(context)
            return [tool.model_copy(update={"description": "new", "meta": {"a": 1}}, deep=True) for tool in tools]

        async def on_list_resources(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            resources = await call_next(context)
            for resource in resources:
                resource.description = None
                resource.mime_type = "text/html"
            return resources

        async def on_list_resource_templates(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            templates = await call_next(context)
            templates[0].title = "Photo"
            return templates

        async def on_list_prompts(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            prompts = await call_next(context)
            return [prompt.model_copy() for prompt in prompts if prompt.tags == set()]

    async with Client(shop(Editing())) as client:
        tool = (await client.list_tools())[0]
        assert (tool.description, tool.meta, tool.name) == ("new", {"a": 1}, "price")
        resource = (await client.list_resources())[0]
        assert (resource.description, resource.mime_type) == (None, "text/html")
        assert (await client.list_resource_templates())[0].title == "Photo"
        assert (await client.list_prompts())[0].description == "Greet."


async def test_middleware_copies_messages_and_edits_results() -> None:
    class Editing(Middleware):
        async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            arguments = {"item": context.message.model_dump()["arguments"]["item"].upper()}
            message = context.message.model_copy(update={"arguments": arguments}, deep=True)
            result = await call_next(context.copy(message=message))
            result.content[0].text += "!"
            return result

        async def on_read_resource(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            result = await call_next(context)
            part = result.contents[0]
            part.content = "b" if part.content == b"pen" else part.content.encode() + b"!"
            return result

        async def on_get_prompt(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            result = await call_next(context)
            result.messages[0].content.text += ", Ann"
            return result

    async with Client(shop(Editing())) as client:
        assert (await client.call_tool("price", {"item": "pen"})).text == "PEN: 5!"
        assert (await client.read_resource("shop://pen/photo")).text == "b"
        assert (await client.read_resource("shop://a")).contents[0].data == b"a!"
        assert (await client.get_prompt("greet")).messages[0].content.text == "Hello, Ann"


async def test_middleware_returns_results_of_resources_and_prompts() -> None:
    class Adding(Middleware):
        async def on_read_resource(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            return ResourceResult([*(await call_next(context)).contents, ResourceContent("b", mime_type="text/html")])

        async def on_get_prompt(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            return PromptResult([*(await call_next(context)).messages, Message("Bye")], description="Two")

    async with Client(shop(Adding())) as client:
        parts = (await client.read_resource("shop://a")).contents
        assert [(part.text, part.mime_type) for part in parts] == [("a", "text/plain"), ("b", "text/html")]
        prompt = await client.get_prompt("greet")
        assert [message.content.text for message in prompt.messages] == ["Hello", "Bye"]
        assert prompt.description == "Two"


REQUESTS = {
    "tool": lambda client: client.call_tool("price", {"item": "pen"}),
    "resource": lambda client: client.read_resource("shop://a"),
    "prompt": lambda client: client.get_prompt("greet"),
}


@pytest.mark.parametrize(
    ("kind", "error", "code", "text"),
    [  # the answers of FastMCP 4.2.3
        ("tool", NotFoundError("n"), None, "Unknown tool: 'price'"),
        ("resource", NotFoundError("n"), -32602, "Resource not found"),
        ("prompt", NotFoundError("n"), -32602, "Unknown prompt: greet"),
        ("tool", ValidationError("v"), None, "v"),
        ("resource", ValidationError("v"), -32602, "v"),
        ("prompt", ValidationError("v"), -32602, "v"),
        ("tool", ToolError("t"), None, "t"),
        ("resource", ToolError("t"), -32603, "t"),
        ("prompt", ToolError("t"), -32603, "t"),
        ("prompt", PromptError("p"), -32603, "p"),
        ("resource", ValueError("no key"), -32603, "no key"),
    ],
)
async def test_errors_that_middleware_raises_have_their_text(
    kind: str, error: Exception, code: int | None, text: str
) -> None:
    class Raising(Middleware):
        async def on_request(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            if context.method in {"tools/call", "resources/read", "prompts/get"}:
                raise error
            return await call_next(context)

    async with Client(shop(Raising()), revision="2026-07-28") as client:
        if code is None:
            result = await REQUESTS[kind](client)
            assert (result.is_error, result.text) == (True, text)
        else:
            with pytest.raises(MCPError) as raised:
                await REQUESTS[kind](client)
            assert (raised.value.code, raised.value.message) == (code, text)


async def test_middleware_and_tools_catch_that_a_feature_does_not_exist() -> None:
    seen: list[str] = []

    class Catching(Middleware):
        async def on_request(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            try:
                if getattr(context.message, "name", "") == "renamed":
                    context.message.name = "lost"
                return await call_next(context)
            except NotFoundError as error:
                seen.append(str(error))
                raise

    mcp = shop(Catching())

    @mcp.tool
    async def look(ctx: Context) -> list[str]:
        for call in (ctx.read_resource("shop:b"), ctx.get_prompt("nobody")):
            with pytest.raises(NotFoundError):
                await call
        message = (await ctx.get_prompt("greet")).messages[0]
        names = [item.name for item in [*await ctx.list_resources(), *await ctx.list_prompts()]]
        return [*names, message.content.text or ""]

    async with Client(mcp) as client:
        for name in ("gone", "renamed"):
            assert (await client.call_tool(name)).is_error
        with pytest.raises(MCPError):
            await client.read_resource("shop:c")
        assert (await client.call_tool("look")).structured_content == {"result": ["stock", "greet", "Hello"]}
    assert seen == [
        "Unknown tool: gone",
        "Unknown tool: lost",
        "Resource not found",
        "Resource not found",
        "Unknown prompt: nobody",
    ]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_middleware_sees_notifications(revision: str) -> None:
    seen: list[Any] = []
    progressed = asyncio.Event()

    class Watching(Middleware):
        async def on_message(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            seen.append((context.type, context.method))
            return await call_next(context)

        async def on_notification(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            if context.method == "notifications/progress":
                assert context.fastmcp_context is not None
                seen.append((context.message["progress"], context.fastmcp_context.fastmcp.name))
                progressed.set()
            return await call_next(context)

    async with Client(server(Watching()), revision=revision) as client:
        await client.notify("notifications/progress", {"progressToken": "a", "progress": 1})
        await client.call_tool("add", {"a": 1, "b": 2})
        await progressed.wait()
    assert ("notification", "notifications/progress") in seen
    assert (1, "m") in seen
    assert ("request", "tools/call") in seen


async def test_hints_of_listed_tools_and_answers_to_discovery_are_edited() -> None:
    class Hinting(Middleware):
        async def on_list_tools(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            tools = await call_next(context)
            tools[0].annotations = {}
            tools[0].annotations.read_only_hint = True
            return tools

        async def on_discover(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            assert context.message.method == "server/discover"
            result = await call_next(context)
            return result.model_copy(update={"instructions": "changed"})

    async with Client(server(Hinting()), revision="2026-07-28") as client:
        assert (await client.list_tools())[0].annotations == {"readOnlyHint": True}
        assert client.instructions == "changed"


async def test_calls_leave_the_middleware_out() -> None:
    seen: list[str | None] = []

    class Watching(Middleware):
        async def on_request(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            seen.append(context.method)
            return await call_next(context)

    mcp = server(Watching())

    @mcp.tool
    async def outer(ctx: Context) -> str:
        return str((await ctx.fastmcp.call_tool("add", {"a": 1, "b": 2})).structured_content["result"])

    assert (await mcp.call_tool("outer", run_middleware=False)).text == "3"
    assert seen == ["tools/call"]  # of the tool that the tool calls
    await mcp.list_tools(run_middleware=False)
    await mcp.read_resource("note://one", run_middleware=False)
    assert seen == ["tools/call"]
    await mcp.read_resource("note://one")
    assert seen == ["tools/call", "resources/read"]


async def test_an_error_after_the_answer_to_initialize_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Late(Middleware):
        async def on_initialize(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            assert context.message.params.client_info.name
            await call_next(context)
            raise MCPError(-32000, "too late")

    async with Client(server(Late()), revision="2025-11-25") as client:
        assert len(await client.list_tools()) == 2
    assert "Middleware failed after initialize was answered: too late" in caplog.text


class Refusing(Middleware):
    """Refuses two URIs, by their spelling."""

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        if str(context.message.uri) in {"menu://secret", "Staff://Ann/salary"}:
            raise NotFoundError("refused")
        return await call_next(context)


@pytest.mark.parametrize("uri", ["menu://secret", "MENU://secret", "Staff://Ann/salary", "staff://Ann/salary"])
async def test_middleware_that_compares_uris_is_not_passed_by_in_another_case(uri: str) -> None:
    mcp = server(Refusing())
    mcp.resource("menu://secret")(lambda: "never")
    mcp.resource("Staff://{name}/salary")(salary)
    async with Client(mcp, revision="2025-11-25") as client:
        assert (await client.read_resource("STAFF://Bob/salary")).contents[0].text == "never, Bob"
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource(uri)


def salary(name: str) -> str:
    return f"never, {name}"
