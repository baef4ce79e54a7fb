"""FastMCP's middleware that caches lists and results."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError
from funcmcp.auth import Principal
from funcmcp.compat import (
    CallNext,
    Context,
    FastMCP,
    Middleware,
    MiddlewareContext,
    ResponseCachingMiddleware,
    ToolResult,
)
from funcmcp.compat.mcp_types import InputRequiredResult
from funcmcp.testing import Client

REVISIONS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


class Shop:
    """A server that counts its calls."""

    def __init__(self, cache: ResponseCachingMiddleware, **options: Any) -> None:
        self.calls: list[str] = []
        self.mcp = FastMCP("shop", middleware=[cache], **options)
        self.mcp.tool(self.price)
        self.mcp.tool(self.broken)
        self.mcp.resource("menu://today")(self.menu)
        self.mcp.prompt(self.ask)

    def price(self, item: str, size: int = 1) -> dict[str, Any]:
        self.calls.append(f"price {item}")
        return {"item": item, "size": size}

    def broken(self) -> ToolResult:
        self.calls.append("broken")
        return ToolResult("away", is_error=True)

    def menu(self) -> bytes:
        self.calls.append("menu")
        return b"tea"

    def ask(self, item: str) -> str:
        self.calls.append(f"ask {item}")
        return f"What does {item} cost?"


@REVISIONS
async def test_answers_are_the_same_as_the_first_ones(revision: str) -> None:
    shop = Shop(cache := ResponseCachingMiddleware())
    async with Client(shop.mcp, revision=revision) as client:
        answers = []
        for arguments in ({"item": "tea", "size": 2}, {"size": 2, "item": "tea"}):
            result = await client.call_tool("price", arguments)
            contents = (await client.read_resource("menu://today")).contents[0]
            message = (await client.get_prompt("ask", {"item": "tea"})).messages[0]
            tools = [tool.name for tool in await client.list_tools()]
            prompts = [prompt.name for prompt in await client.list_prompts()]
            answers.append((result.content, result.structured_content, contents, message, tools, prompts))
            shop.mcp.tool(lambda: "late", name="late")
        assert answers[0] == answers[1]
        assert shop.calls == ["price tea", "menu", "ask tea"]
        await client.call_tool("price", {"item": "cake"})
        for _ in range(2):
            assert (await client.call_tool("broken")).is_error
    assert shop.calls[3:] == ["price cake", "broken", "broken"]
    statistics = cache.statistics()
    assert statistics.read_resource is not None
    assert (statistics.read_resource.get.hit, statistics.read_resource.get.miss) == (1, 1)
    assert statistics.list_resources is None


async def test_settings_choose_what_is_cached() -> None:
    cache = ResponseCachingMiddleware(
        call_tool_settings={"excluded_tools": ["price"]},
        read_resource_settings={"enabled": False},
        get_prompt_settings={"ttl": 0},
        list_tools_settings={"enabled": False},
    )
    shop = Shop(cache)
    async with Client(shop.mcp) as client:
        for _ in range(2):
            await client.call_tool("price", {"item": "tea"})
            await client.read_resource("menu://today")
            await client.get_prompt("ask", {"item": "tea"})
    assert shop.calls == ["price tea", "menu", "ask tea"] * 2


async def test_large_results_are_not_stored() -> None:
    shop = Shop(ResponseCachingMiddleware(max_item_size=10))
    for _ in range(2):
        await shop.mcp.call_tool("price", {"item": "tea"})
    assert shop.calls == ["price tea"] * 2


async def test_callers_do_not_share_answers() -> None:
    class Visible(Middleware):
        async def on_list_tools(self, context: MiddlewareContext, call_next: CallNext) -> Any:
            assert context.fastmcp_context is not None
            token = context.fastmcp_context.access_token
            return [tool for tool in await call_next(context) if token is not None and "all" in token.scopes]

    shop = Shop(ResponseCachingMiddleware())
    shop.mcp.add_middleware(Visible())
    for _ in range(2):
        for name, scopes, count in (("a", {"all"}, 2), ("b", set(), 0)):
            assert len(await shop.mcp.list_tools(principal=Principal(name, scopes=frozenset(scopes)))) == count


@REVISIONS
async def test_results_that_asked_the_client_are_not_stored(revision: str) -> None:
    mcp = FastMCP("questions", middleware=[ResponseCachingMiddleware()])
    asked: list[str] = []

    @mcp.tool
    async def name(ctx: Context) -> str:
        answer = await ctx.elicit("Your name?", str)
        return str(answer.data)

    async def answer(question: dict[str, Any]) -> dict[str, Any]:
        asked.append(question["message"])
        return {"action": "accept", "content": {"value": f"Ada {len(asked)}"}}

    async with Client(mcp, revision=revision, elicit=answer) as client:
        assert (await client.call_tool("name")).text == "Ada 1"
        assert (await client.call_tool("name")).text == "Ada 2"


async def test_pages_of_lists_are_stored_with_their_cursors() -> None:
    mcp = FastMCP("pages", middleware=[ResponseCachingMiddleware()], list_page_size=1)
    for name in ("a", "b", "c"):
        mcp.tool(lambda: "x", name=name)
    async with Client(mcp) as client:
        for _ in range(2):
            assert [tool.name for tool in await client.list_tools()] == ["a", "b", "c"]


async def test_what_is_hidden_is_not_answered_from_the_cache() -> None:
    mcp = FastMCP("shop", middleware=[ResponseCachingMiddleware()])
    for name in ("open", "secret"):
        mcp.tool(lambda: "x", name=name)
        mcp.resource(f"x://{name}")(lambda: "x")

    @mcp.tool
    async def hide(ctx: Context) -> None:
        await ctx.disable_components(names={"secret", "x://secret"})

    async def seen(client: Client) -> list[str]:
        names = [tool.name for tool in await client.list_tools()]
        return names + [resource.uri for resource in await client.list_resources()]

    async with Client(mcp, revision="2025-11-25") as first, Client(mcp, revision="2025-11-25") as second:
        assert {"secret", "x://secret"} < set(await seen(first))
        await first.call_tool("secret")
        await first.read_resource("x://secret")
        await second.call_tool("hide")
        assert await seen(second) == ["open", "hide", "x://open"]
        mcp.disable(names={"open"})
        for client, name in ((second, "secret"), (first, "open")):
            assert (await client.call_tool(name)).text == f"Unknown tool: '{name}'"
        with pytest.raises(MCPError, match="not found"):
            await second.read_resource("x://secret")
        assert (await first.call_tool("secret")).text == "x"


async def test_the_memory_of_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._compat.response_caching._MAX_BYTES", 5_000)
    shop = Shop(ResponseCachingMiddleware())
    async with Client(shop.mcp) as client:
        for item in ("a" * 1_000, "b" * 1_000, "a" * 1_000, "c" * 1_000, "a" * 1_000, "b" * 1_000):
            assert (await client.call_tool("price", {"item": item})).structured_content["item"] == item
    assert [call[6] for call in shop.calls] == ["a", "b", "c", "b"]  # b was used longest ago when c came


@pytest.mark.parametrize("kind", ["prompt", "resource"])
async def test_questions_to_the_client_are_not_stored(kind: str) -> None:
    mcp = FastMCP("asking", middleware=[ResponseCachingMiddleware()])

    def ask(ctx: Context) -> Any:
        if ctx.input_responses is not None:
            return "answered"
        params: dict[str, Any] = {
            "mode": "form",
            "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {}},
        }
        questions: Any = {"who": {"method": "elicitation/create", "params": params}}
        return InputRequiredResult(input_requests=questions)

    mcp.prompt(ask, name="ask")
    mcp.resource("a://b")(ask)

    async def answer(_: Any) -> dict[str, Any]:
        return {"action": "accept", "content": {}}

    async with Client(mcp, elicit=answer) as client:
        for _ in range(2):
            if kind == "prompt":
                (message,) = (await client.get_prompt("ask")).messages
                assert message.content.text == "answered"
            else:
                assert (await client.read_resource("a://b")).text == "answered"


def test_a_result_of_the_sdk_is_one_of_fastmcp() -> None:
    wire = {"content": [{"type": "text", "text": "a"}], "structuredContent": {"b": 1}, "isError": True}
    result: Any = ToolResult.from_mcp_result(wire)
    assert (result.content[0].text, result.structured_content, result.is_error) == ("a", {"b": 1}, True)


class _FaultyStore:
    """A store that fails while it has a fault."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.entries: dict[Any, Any] = {}

    async def get(self, key: str, *, collection: str | None = None) -> Any:
        if self.fault is not None:
            raise self.fault
        return self.entries.get((collection, key))

    async def put(self, key: str, value: Any, *, collection: str | None = None, ttl: Any = None) -> None:
        del ttl
        if self.fault is not None:
            raise self.fault
        self.entries[collection, key] = value


async def test_requests_are_answered_while_the_store_fails(caplog: pytest.LogCaptureFixture) -> None:
    store = _FaultyStore()
    shop = Shop(ResponseCachingMiddleware(cache_storage=store))
    async with Client(shop.mcp) as client:

        async def call() -> None:
            assert (await client.call_tool("price", {"item": "tea"})).structured_content["item"] == "tea"

        store.fault = OSError(28, "No space left on device")
        await call()
        await call()
        assert len(shop.calls) == 2
        store.fault = None
        await call()
        await call()
        assert len(shop.calls) == 3
        store.entries = {place: {"form": "of another version"} for place in store.entries}
        await call()
        assert len(shop.calls) == 4
    warnings = [record.getMessage() for record in caplog.records if "The cache of tools/call" in record.getMessage()]
    assert [text.split(". ")[0] for text in warnings] == [
        "The cache of tools/call failed with OSError: [Errno 28] No space left on device",
        "The cache of tools/call failed with KeyError: 'content'",
    ]
